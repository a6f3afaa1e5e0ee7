"""The structured outcome of a turn."""

from backburner.core import prompt
from backburner.core.errors import BadOutcome
from support.contracts.engine.trial import ModelSubject, Trial
from support.model_api import CallTool, GiveOutcome, Say

COMPLETE = {"complete": True, "message": "All is done.", "result": {"price": 12.5}}


async def an_outcome_is_given_as_it_is(subject: ModelSubject) -> None:
    subject.api.then(GiveOutcome(COMPLETE))

    heard = await Trial(subject).turn(ends_with_outcome=True)

    assert heard.end.outcome == COMPLETE
    assert len(subject.api.requests) == 1


async def an_outcome_may_follow_words_and_calls(subject: ModelSubject) -> None:
    subject.api.then(Say("Looking."), CallTool("look"))
    subject.api.then(Say("Good."), GiveOutcome(COMPLETE))
    trial = Trial(subject)

    heard = await trial.turn(ends_with_outcome=True)

    assert heard.end.outcome == COMPLETE
    assert trial.tools.count("look") == 1


async def what_is_no_valid_outcome_is_not_for_the_engine_to_judge(subject: ModelSubject) -> None:
    both = {"complete": True, "continue": True}
    subject.api.then(GiveOutcome(both))
    subject.api.then(GiveOutcome(COMPLETE))
    trial = Trial(subject)

    first = await trial.turn(ends_with_outcome=True)
    repaired = await trial.turn(
        prompt.for_repair(BadOutcome("Decide for one.")), ends_with_outcome=True
    )

    assert first.end.outcome == both
    assert repaired.end.outcome == COMPLETE
    assert subject.api.requests[1].holds("Decide for one.")
    assert len(subject.api.requests) == 2


async def an_outcome_is_remembered(subject: ModelSubject) -> None:
    subject.api.then(GiveOutcome(COMPLETE))
    trial = Trial(subject)
    await trial.turn(ends_with_outcome=True)

    heard = await trial.turn("And what did you do?")

    assert subject.api.requests[1].holds("All is done.")
    assert heard.end.outcome is None


async def no_outcome_is_asked_for_where_none_is_wanted(subject: ModelSubject) -> None:
    await Trial(subject).turn()

    assert not subject.api.requests[0].wants_outcome
