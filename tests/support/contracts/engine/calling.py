"""Tools: only through the gate, each call once, and the model is told what came of it."""

from dataclasses import replace

from backburner.ports import Offer, ToolResult
from support.contracts.engine.trial import ModelSubject, Trial
from support.model_api import CallTool, Say


async def a_call_passes_the_gate_and_the_model_sees_its_result(subject: ModelSubject) -> None:
    subject.api.then(CallTool("send", {"to": "a", "lines": [1, {"b": None}]}))
    subject.api.then(Say("Sent."))
    trial = Trial(subject)

    heard = await trial.turn()

    assert trial.gate.called == [("send", {"to": "a", "lines": [1, {"b": None}]})]
    assert trial.tools.count("send") == 1
    assert subject.api.requests[1].holds("send is done.")
    assert heard.end.text == "Sent."


async def a_call_that_failed_is_told_to_the_model(subject: ModelSubject) -> None:
    subject.api.then(CallTool("send"))
    trial = Trial(subject)
    trial.gate.answers.append(ToolResult("There is nobody of that name.", failed=True))

    heard = await trial.turn()

    assert subject.api.requests[1].holds("There is nobody of that name.")
    assert heard.ended


async def several_calls_of_one_message_are_all_made(subject: ModelSubject) -> None:
    subject.api.then(Say("Both."), CallTool("send", {"to": "a"}), CallTool("look", {"at": "b"}))
    trial = Trial(subject)

    heard = await trial.turn()

    calls = sorted(trial.gate.called, key=lambda call: call[0])
    assert calls == [("look", {"at": "b"}), ("send", {"to": "a"})]
    assert subject.api.requests[1].holds("send is done.")
    assert subject.api.requests[1].holds("look is done.")
    assert heard.ended


async def a_tool_that_is_not_there_is_an_answer_to_the_model(subject: ModelSubject) -> None:
    subject.api.then(CallTool("no_such_tool", {"to": "a"}))
    subject.api.then(Say("Never mind."))
    trial = Trial(subject)

    heard = await trial.turn()

    assert trial.gate.calls == []
    assert heard.end.text == "Never mind."


async def arguments_that_cannot_be_read_are_an_answer_to_the_model(subject: ModelSubject) -> None:
    subject.api.then(CallTool("send", '{"to": '))
    subject.api.then(Say("Never mind."))
    trial = Trial(subject)

    heard = await trial.turn()

    assert trial.gate.calls == []
    assert heard.end.text == "Never mind."
    # What was wrong stays in the session, which can still be used.
    assert (await trial.turn()).ended


async def tools_keep_their_names_whatever_a_model_may_call_them(subject: ModelSubject) -> None:
    trial = Trial(subject)
    trial.offers = [
        _named(trial, "search", server="one"),
        _named(trial, "search", server="two"),
        _named(trial, "files.read/all", server="one"),
        _named(trial, "a" * 200, server="one"),
    ]
    for offer in trial.offers:
        subject.api.then_as(
            lambda heard, text=offer.description: [CallTool(heard.name_of(text))]  # type: ignore[misc]
        )

    heard = await trial.turn()

    assert [offer for offer, _ in trial.gate.calls] == trial.offers
    assert heard.ended


async def there_may_be_no_tools_at_all(subject: ModelSubject) -> None:
    trial = Trial(subject, offers=())

    assert (await trial.turn()).ended
    assert (await trial.turn(ends_with_outcome=True)).end.outcome


def _named(trial: Trial, name: str, *, server: str) -> Offer:
    offer = trial.tools.offer(name)
    return replace(
        offer,
        tool=replace(offer.tool, server=server),
        description=f"It is {name} of {server}.",
    )
