"""Calls as servers write them, and names as they take them."""

from dataclasses import replace

from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from support.doubles import tools

from backburner.engine.openai.calls import take_calls
from backburner.engine.openai.naming import LONGEST, name_tools
from backburner.ports import Offer


def offer(name: str, server: str = "one") -> Offer:
    made = tools.TestTools().offer(name)
    return replace(made, tool=replace(made.tool, server=server))


def names(*offers: Offer) -> list[str]:
    return list(name_tools(offers, taken="final_result"))


def test_calls_with_the_same_id_get_different_ones() -> None:
    parts = [ToolCallPart("look", "{}", "call_0"), ToolCallPart("send", "{}", "call_0")]

    mended, calls = take_calls(ModelResponse(parts=[TextPart("Well."), *parts]))

    assert [call.part.tool_call_id for call in calls] == ["call_0", "call_0-1"]
    assert mended.tool_calls == [call.part for call in calls]
    assert mended.parts[0] == TextPart("Well.")


def test_arguments_are_read_however_they_are_written() -> None:
    parts = [
        ToolCallPart("look", {"at": 1}),
        ToolCallPart("look", '{"at": 1}'),
        ToolCallPart("look", ""),
        ToolCallPart("look", None),
    ]

    _, calls = take_calls(ModelResponse(parts=parts))

    assert [call.arguments for call in calls] == [{"at": 1}, {"at": 1}, {}, {}]


def test_arguments_that_cannot_be_read_are_kept_apart_from_what_is_sent_back() -> None:
    broken = ["{", "[1]", "[" * 100_000]

    mended, calls = take_calls(ModelResponse(parts=[ToolCallPart("look", text) for text in broken]))

    assert [call.arguments for call in calls] == [None, None, None]
    assert [call.written for call in calls] == broken
    assert [part.args for part in mended.tool_calls] == ["{}", "{}", "{}"]


def test_a_tool_keeps_its_name_where_it_can() -> None:
    assert names(offer("look"), offer("send-it_2")) == ["look", "send-it_2"]


def test_tools_of_the_same_name_are_told_apart_by_their_server() -> None:
    assert names(offer("search", "one"), offer("search", "two")) == ["one_search", "two_search"]


def test_every_tool_gets_a_name_that_can_be_taken() -> None:
    odd = [offer("a.b"), offer("a/b"), offer(""), offer("final_result"), offer("é" * 100)]

    given = names(*odd, *(offer("x" * 70 + end) for end in "abc"))

    assert given[:4] == ["a_b", "a_b_2", "tool", "final_result_2"]
    assert len(set(given)) == 8
    assert all(0 < len(name) <= LONGEST for name in given)
