"""Tool calls as servers write them, and tool names as servers accept them."""

import re
from dataclasses import replace

from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from support.doubles import tools

from backburner.core.tool_policy import OWN_SERVER
from backburner.engine.openai.tools import name_tools, parameters_for, read_calls
from backburner.ports import Offer


def offer(name: str, server: str = "one") -> Offer:
    made = tools.TestTools().offer(name)
    return replace(made, tool=replace(made.tool, server=server))


def names(*offers: Offer) -> list[str]:
    return list(name_tools(offers))


def test_calls_with_the_same_id_get_different_ids() -> None:
    parts = [ToolCallPart("look", "{}", "call_0"), ToolCallPart("send", "{}", "call_0")]

    repaired, calls = read_calls(ModelResponse(parts=[TextPart("Well."), *parts]))

    assert [call.part.tool_call_id for call in calls] == ["call_0", "call_0-1"]
    assert repaired.tool_calls == [call.part for call in calls]
    assert repaired.parts[0] == TextPart("Well.")


def test_arguments_are_read_in_every_form_that_servers_use() -> None:
    parts = [
        ToolCallPart("look", {"at": 1}),
        ToolCallPart("look", '{"at": 1}'),
        ToolCallPart("look", ""),
        ToolCallPart("look", None),
    ]

    _, calls = read_calls(ModelResponse(parts=parts))

    assert [call.arguments for call in calls] == [{"at": 1}, {"at": 1}, {}, {}]


def test_arguments_that_are_no_json_object_are_not_sent_back() -> None:
    broken = ["{", "[1]", "[" * 100_000]

    repaired, calls = read_calls(
        ModelResponse(parts=[ToolCallPart("look", text) for text in broken])
    )

    assert [call.arguments for call in calls] == [None, None, None]
    assert [call.written for call in calls] == broken
    assert [part.args for part in repaired.tool_calls] == ["{}", "{}", "{}"]


def test_tools_of_ours_keep_their_names() -> None:
    assert names(offer("look", OWN_SERVER), offer("send-it_2", OWN_SERVER)) == ["look", "send-it_2"]


def test_tools_of_connections_have_its_name_before_theirs() -> None:
    found = names(offer("search", "one"), offer("search", "two"), offer("search", OWN_SERVER))

    assert found == ["one__search", "two__search", "search"]


def test_every_tool_gets_a_valid_name_of_its_own() -> None:
    odd = [offer("a.b"), offer("a/b"), offer(""), offer("final_result"), offer("é" * 100)]
    long = [offer("x" * 70 + end) for end in "abc"]

    given = names(*odd, *long, offer("a_b"), offer("x", "y" * 32))

    assert given[:4] == [
        "one__a_b_2e7336",
        "one__a_b_c14cdd",
        "one___e3b0c4",
        "one__final_result",
    ]
    assert len(set(given)) == 10
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in given)


def test_no_tool_takes_the_name_of_another_by_being_called_like_it() -> None:
    (taken,) = names(offer("a.b"))

    assert len(set(names(offer("a.b"), offer(taken.removeprefix("one__"))))) == 2


def test_a_long_description_goes_on_where_the_api_takes_it() -> None:
    texts = ["a" * 1_024, "a" * 10_000]
    offers = [replace(offer(f"look_{len(text)}"), description=text) for text in texts]

    one, two = parameters_for(name_tools(offers), None).function_tools

    assert one.description == texts[0]
    assert "description" not in one.parameters_json_schema
    assert two.description is not None
    assert len(two.description) == 1_024
    assert two.description.endswith("aa [It goes on in the description of its arguments.]")
    assert two.parameters_json_schema["description"] == texts[1]
