"""Tool calls: only through the gate, each once, with the result sent to the model."""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from backburner.ports import Blob, Offer, ToolResult
from backburner.runs.tool_results import MAX_RESULT_CHARS
from support.cases.images import png
from support.contracts.engine.harness import EngineHarness, ModelSubject
from support.model_api import CallTool, ModelRequest, Reply, Say


async def a_call_passes_the_gate_and_the_model_sees_its_result(subject: ModelSubject) -> None:
    subject.api.then(CallTool("send", {"to": "a", "lines": [1, {"b": None}]}))
    subject.api.then(Say("Sent."))
    harness = EngineHarness(subject)

    result = await harness.turn()

    assert harness.gate.called == [("send", {"to": "a", "lines": [1, {"b": None}]})]
    assert harness.tools.count("send") == 1
    assert subject.api.requests[1].holds("send is done.")
    assert result.end.text == "Sent."


async def a_failed_call_is_reported_to_the_model(subject: ModelSubject) -> None:
    subject.api.then(CallTool("send"))
    harness = EngineHarness(subject)
    harness.gate.answers.append(ToolResult("There is nobody of that name.", failed=True))

    result = await harness.turn()

    assert subject.api.requests[1].holds("There is nobody of that name.")
    assert result.ended


async def the_longest_result_reaches_the_model_whole(subject: ModelSubject) -> None:
    subject.api.then(CallTool("look"))
    harness = EngineHarness(subject)
    # Two units each, as some programs count.
    text = "\N{GRINNING FACE}" * MAX_RESULT_CHARS + " And its end."
    harness.gate.answers.append(ToolResult(text))

    await harness.turn()

    assert subject.api.requests[1].holds(text)


async def images_in_results_reach_the_model_and_stay_in_its_session(
    subject: ModelSubject,
) -> None:
    subject.api.then(CallTool("look", {"at": "a"}), CallTool("send", {"to": "b"}))
    images = [png(40 + number, 30) for number in range(3)]
    harness = EngineHarness(subject)
    # Calls of one message may be made at the same time, and in any order.
    for shown in (images[:2], images[2:]):
        blobs = tuple(Blob(image, "image/png", "a.png") for image in shown)
        harness.gate.answers.append(ToolResult("Here it is.", blobs=blobs))

    result = await harness.turn()
    again = await harness.turn("And again?")

    assert result.ended
    assert again.ended
    for request in subject.api.requests[1:]:
        assert request.holds("Here it is.")
        for image in images:
            assert request.holds(b64encode(image).decode())


async def all_calls_of_one_message_are_made(subject: ModelSubject) -> None:
    subject.api.then(Say("Both."), CallTool("send", {"to": "a"}), CallTool("look", {"at": "b"}))
    harness = EngineHarness(subject)

    result = await harness.turn()

    calls = sorted(harness.gate.called, key=lambda call: call[0])
    assert calls == [("look", {"at": "b"}), ("send", {"to": "a"})]
    assert subject.api.requests[1].holds("send is done.")
    assert subject.api.requests[1].holds("look is done.")
    # Marked as data: others may have written it.
    assert subject.api.requests[1].holds("</outside ")
    assert result.ended


async def unknown_tools_and_invalid_arguments_are_reported_to_the_model(
    subject: ModelSubject,
) -> None:
    subject.api.then(CallTool("no_such_tool", {"to": "a"}))
    subject.api.then(CallTool("send", '{"to": '))
    subject.api.then(Say("Never mind."))
    harness = EngineHarness(subject)

    result = await harness.turn()

    assert harness.gate.calls == []
    assert result.end.text == "Never mind."
    assert len(subject.api.requests) == 3
    # The invalid calls stay in the session, which can still be used.
    assert (await harness.turn()).ended


async def a_tool_keeps_its_name_whatever_names_the_model_api_accepts(subject: ModelSubject) -> None:
    harness = EngineHarness(subject)
    harness.offers = [
        _named(harness, "search", server="one"),
        _named(harness, "search", server="two"),
        _named(harness, "files.read/all", server="one"),
        _named(harness, "a" * 200, server="one"),
    ]
    for offer in harness.offers:
        subject.api.then_as(
            lambda result, text=offer.description: [CallTool(result.name_of(text))]  # type: ignore[misc]
        )

    result = await harness.turn()

    assert [offer for offer, _ in harness.gate.calls] == harness.offers
    assert result.ended


async def a_tool_has_the_same_name_whatever_else_is_offered(subject: ModelSubject) -> None:
    harness = EngineHarness(subject)
    offers = [
        _named(harness, "send_mail", server="one"),
        _named(harness, "send_mail", server="two"),
        _named(harness, "send.mail", server="one"),
    ]
    for offered in (offers[:1], offers[2:], offers):
        harness.offers = offered
        await harness.turn()

    *alone, together = subject.api.requests
    for offer, request in zip(offers[::2], alone, strict=True):
        assert request.name_of(offer.description) == together.name_of(offer.description)


async def schemas_that_no_model_api_takes_break_no_request(subject: ModelSubject) -> None:
    arguments = {"$filter": "a", "page size": 3, "page_size": 4, "kind": "b"}
    texts = [{"type": "string"}, {"type": "string", "pattern": r"^\p{L}(?=\.)"}]
    properties = {name: texts[number % 2] for number, name in enumerate(arguments)}
    odd: list[dict[str, Any]] = [
        {"properties": properties, "required": ["$filter"]},
        {"anyOf": [{"properties": properties}, {"properties": {"kind": {"const": "c"}}}]},
        {"$ref": "#/definitions/all", "definitions": {"all": {"properties": properties}}},
        {"properties": properties | {"more": {"$ref": "#/definitions/lost"}}, "enum": [{}]},
        {"properties": properties | {"n": {"minimum": 1, "exclusiveMinimum": True}}},
        {"properties": properties | {"n": {"type": "array"}, "m": {"items": [{}]}}, "not": {}},
    ]
    harness = EngineHarness(subject)
    harness.offers = [
        replace(_named(harness, f"odd_{number}", server="one"), parameters={"type": "object"} | one)
        for number, one in enumerate(odd)
    ]
    for offer in harness.offers:
        subject.api.then_as(partial(_call, offer, arguments))

    result = await harness.turn()

    assert subject.api.complaints == []
    assert harness.gate.calls == [(offer, arguments) for offer in harness.offers]
    assert result.ended


async def a_turn_may_have_no_tools(subject: ModelSubject) -> None:
    harness = EngineHarness(subject, offers=())

    assert (await harness.turn()).ended
    assert (await harness.turn(ends_with_outcome=True)).end.outcome


def _call(offer: Offer, arguments: Mapping[str, Any], asked: ModelRequest) -> Reply:
    """Give arguments in the order of the schema, whatever they are called there."""
    shown = asked.schema_of(offer.description)["properties"]
    given = dict(zip(shown, arguments.values(), strict=False))
    return [CallTool(asked.name_of(offer.description), given)]


def _named(harness: EngineHarness, name: str, *, server: str) -> Offer:
    offer = harness.tools.offer(name)
    return replace(
        offer,
        tool=replace(offer.tool, server=server),
        description=f"It is {name} of {server}.",
    )
