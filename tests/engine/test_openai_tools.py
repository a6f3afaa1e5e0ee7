"""Tool calls as servers write them, and tool names as servers accept them."""

from dataclasses import replace

from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from support.doubles import tools

from backburner.engine.openai.tools import MAX_NAME_CHARS, name_tools, read_calls
from backburner.ports import Offer


def offer(name: str, server: str = "one") -> Offer:
    made = tools.TestTools().offer(name)
    return replace(made, tool=replace(made.tool, server=server))


def names(*offers: Offer) -> list[str]:
    return list(name_tools(offers, reserved="final_result"))


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


def test_a_tool_keeps_a_valid_name() -> None:
    assert names(offer("look"), offer("send-it_2")) == ["look", "send-it_2"]


def test_tools_of_the_same_name_get_their_server_as_a_prefix() -> None:
    assert names(offer("search", "one"), offer("search", "two")) == ["one_search", "two_search"]


def test_every_tool_gets_a_valid_unique_name() -> None:
    odd = [offer("a.b"), offer("a/b"), offer(""), offer("final_result"), offer("é" * 100)]

    given = names(*odd, *(offer("x" * 70 + end) for end in "abc"))

    assert given[:4] == ["a_b", "a_b_2", "tool", "final_result_2"]
    assert len(set(given)) == 8
    assert all(0 < len(name) <= MAX_NAME_CHARS for name in given)
