"""Tool definitions, and the errors for invalid arguments."""

from pydantic import Field

from backburner.core.errors import Conflict
from backburner.tools.define import Arguments, define_tool


class Greeting(Arguments):
    name: str = Field(description="Whom to greet.")
    times: int = Field(default=1, ge=1, description="How often.")


async def greet(asked: Greeting) -> str:
    """Greet somebody.

    As often as needed.
    """
    if asked.name == "nobody":
        raise Conflict("There is nobody.", hint="Name somebody.")
    return " ".join([f"Hello {asked.name}."] * asked.times)


OFFER = define_tool("greet", Greeting, greet, free=True)


def test_the_agent_reads_the_docstring_and_the_descriptions_of_the_arguments() -> None:
    assert OFFER.description == "Greet somebody. As often as needed."
    assert OFFER.parameters == {
        "type": "object",
        "additionalProperties": False,
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "description": "Whom to greet."},
            "times": {"type": "integer", "default": 1, "minimum": 1, "description": "How often."},
        },
    }


async def test_a_call_passes_the_validated_arguments() -> None:
    result = await OFFER.run({"name": "Ada", "times": 2})
    assert (result.text, result.failed) == ("Hello Ada. Hello Ada.", False)


async def test_wrong_arguments_are_refused_in_words_and_nothing_is_called() -> None:
    result = await OFFER.run({"times": 0, "loud": True})
    assert result.failed
    for part in ("greet was not called.", "name: ", "times: ", "loud: "):
        assert part in result.text


async def test_the_refusal_of_a_tool_comes_with_its_hint() -> None:
    result = await OFFER.run({"name": "nobody"})
    assert (result.text, result.failed) == ("There is nobody. Name somebody.", True)


def test_a_tool_whose_words_change_is_another_tool_to_those_who_allowed_it() -> None:
    async def other(asked: Greeting) -> str:
        """Greet somebody else."""
        return asked.name

    changed = define_tool("greet", Greeting, other)
    assert changed.tool.definition != OFFER.tool.definition
