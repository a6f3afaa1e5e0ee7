"""Every call of a model is paid for, and none is made for which there is nothing left."""

from support.contracts.engine.trial import ModelSubject, Trial
from support.model_api import CallTool, GiveOutcome, Say, Usage


async def each_call_of_the_model_is_paid_for_once(subject: ModelSubject) -> None:
    subject.api.then(CallTool("look"), Usage(input=11, output=12, cache_read=13))
    subject.api.then(Say("Done."), Usage(input=21, output=22))
    trial = Trial(subject)

    await trial.turn()

    assert trial.gate.paid == [
        (subject.model, Usage(input=11, output=12, cache_read=13)),
        (subject.model, Usage(input=21, output=22)),
    ]


async def an_outcome_is_paid_for_too(subject: ModelSubject) -> None:
    subject.api.then(GiveOutcome({"complete": True}), Usage(input=5, output=6))
    trial = Trial(subject)

    await trial.turn(ends_with_outcome=True)

    assert trial.gate.paid == [(subject.model, Usage(input=5, output=6))]


async def without_money_there_is_no_further_call(subject: ModelSubject) -> None:
    subject.api.then(Say("Looking."), CallTool("look"))
    trial = Trial(subject)
    trial.gate.has_money = False

    heard = await trial.turn("Look around.")

    assert heard.ended is None
    assert len(subject.api.requests) == 1
    assert len(trial.gate.paid) == 1

    trial.gate.has_money = True
    assert (await trial.turn("Go on.")).ended
    assert subject.api.requests[1].holds("Look around.")
