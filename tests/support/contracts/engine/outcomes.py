"""The structured outcome of a turn."""

from backburner.core import prompt
from backburner.core.errors import BadOutcome
from support.contracts.engine.harness import EngineHarness, ModelSubject
from support.model_api import CallTool, GiveOutcome, Say, Usage

COMPLETE = {"complete": True, "message": "All is done.", "result": {"price": 12.5}}


async def an_outcome_is_passed_on_unchanged_and_paid_for(subject: ModelSubject) -> None:
    subject.api.then(GiveOutcome(COMPLETE), Usage(input=5, output=6))
    harness = EngineHarness(subject)

    result = await harness.turn(ends_with_outcome=True)

    assert result.end.outcome == COMPLETE
    assert len(subject.api.requests) == 1
    assert harness.gate.paid == [(subject.model, Usage(input=5, output=6))]


async def an_outcome_may_follow_text_and_calls(subject: ModelSubject) -> None:
    subject.api.then(Say("Looking."), CallTool("look"))
    subject.api.then(Say("Good."), GiveOutcome(COMPLETE))
    harness = EngineHarness(subject)

    result = await harness.turn(ends_with_outcome=True)

    assert result.end.outcome == COMPLETE
    assert harness.tools.count("look") == 1


async def an_engine_passes_on_an_invalid_outcome(subject: ModelSubject) -> None:
    both = {"complete": True, "continue": True}
    subject.api.then(GiveOutcome(both))
    subject.api.then(GiveOutcome(COMPLETE))
    harness = EngineHarness(subject)

    first = await harness.turn(ends_with_outcome=True)
    repaired = await harness.turn(
        prompt.for_repair(BadOutcome("Decide for one.")), ends_with_outcome=True
    )

    assert first.end.outcome == both
    assert repaired.end.outcome == COMPLETE
    assert subject.api.requests[1].holds("Decide for one.")
    assert len(subject.api.requests) == 2


async def an_outcome_is_remembered(subject: ModelSubject) -> None:
    subject.api.then(GiveOutcome(COMPLETE))
    harness = EngineHarness(subject)
    await harness.turn(ends_with_outcome=True)

    result = await harness.turn("And what did you do?")

    assert subject.api.requests[1].holds("All is done.")
    assert result.end.outcome is None
