"""Every call of the model is paid for, and none is made beyond the allowance."""

from support.contracts.engine.harness import EngineHarness, ModelSubject
from support.model_api import CallTool, Say, Usage


async def each_call_of_the_model_is_paid_for_once(subject: ModelSubject) -> None:
    subject.api.then(CallTool("look"), Usage(input=11, output=12, cache_read=13))
    subject.api.then(Say("Done."), Usage(input=21, output=22))
    harness = EngineHarness(subject)

    await harness.turn()

    assert harness.gate.paid == [
        (subject.model, Usage(input=11, output=12, cache_read=13)),
        (subject.model, Usage(input=21, output=22)),
    ]


async def a_used_up_allowance_allows_no_further_call(subject: ModelSubject) -> None:
    subject.api.then(Say("Looking."), CallTool("look"))
    harness = EngineHarness(subject)
    harness.gate.has_allowance = False

    result = await harness.turn("Look around.")

    assert result.ended is None
    assert len(subject.api.requests) == 1
    assert len(harness.gate.paid) == 1

    harness.gate.has_allowance = True
    assert (await harness.turn("Go on.")).ended
    assert subject.api.requests[1].holds("Look around.")
