"""Every call of the model is paid for, and none is made beyond the allowance."""

from collections.abc import Mapping

import pytest

from backburner.core.errors import ModelAccessDenied
from support.contracts.engine.harness import EngineHarness, ModelSubject, Shared
from support.model_api import CallTool, Refuse, Say, Usage


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


async def a_key_of_the_user_is_used_for_their_turn_and_for_no_other(subject: ModelSubject) -> None:
    harness = EngineHarness(Shared(subject.engine()))
    await harness.turn()
    harness.own_key = "own-key"
    await harness.turn()
    harness.own_key = None
    await harness.turn()

    first, own, last = (_keys(request.headers) for request in subject.api.requests)
    assert own == ["own-key"]
    assert first == last
    assert len(first) == 1
    assert first != own


async def a_key_of_the_user_that_is_refused_is_not_quoted(subject: ModelSubject) -> None:
    harness = EngineHarness(subject, own_key="own-key")
    subject.api.then(Refuse(401, message="The key own-key is not valid."))

    with pytest.raises(ModelAccessDenied) as refused:
        await harness.turn()

    assert "own-key" not in str(refused.value)
    assert [_keys(request.headers) for request in subject.api.requests] == [["own-key"]]


def _keys(headers: Mapping[str, str]) -> list[str]:
    names = ("x-api-key", "authorization")
    return [headers[name].removeprefix("Bearer ") for name in names if name in headers]
