"""Models that refuse, are cut off or respond with garbage; and memory that cannot be read."""

import asyncio
from datetime import timedelta

from backburner.core.errors import (
    EngineFailed,
    ModelAccessDenied,
    ModelUnavailable,
    SessionGone,
)
from support.contracts.engine.harness import END_SECONDS, STALL_LIMIT, EngineHarness, ModelSubject
from support.model_api import CallTool, Cut, Garbage, Refuse, Reply, Say, Stall

#: An engine may retry by itself, but not endlessly.
MAX_TRIES = 5


async def a_refused_key_is_a_permanent_failure_that_names_the_key(
    subject: ModelSubject,
) -> None:
    error = await _fail(subject, [Refuse(401, message="invalid x-api-key")])

    assert isinstance(error, ModelAccessDenied)
    assert error.permanent
    assert "key" in str(error)


async def a_rate_limit_is_a_temporary_failure_with_the_time_to_retry(subject: ModelSubject) -> None:
    error = await _fail(subject, [Refuse(429, retry_after="7")])

    assert isinstance(error, ModelUnavailable)
    assert error.retry_after == timedelta(seconds=7)


async def a_rate_limit_without_a_time_is_a_temporary_failure(subject: ModelSubject) -> None:
    error = await _fail(subject, [Refuse(429)])

    assert isinstance(error, ModelUnavailable)
    assert error.retry_after is None


async def a_server_error_is_a_temporary_failure(subject: ModelSubject) -> None:
    assert isinstance(await _fail(subject, [Refuse(500)]), ModelUnavailable)


async def an_overloaded_model_is_a_temporary_failure(subject: ModelSubject) -> None:
    failed = await _fail(subject, [Refuse(529, message="Overloaded")])
    assert isinstance(failed, ModelUnavailable)


async def a_model_overloaded_during_its_response_is_a_temporary_failure(
    subject: ModelSubject,
) -> None:
    failed = await _fail(subject, [Say("Well"), Refuse(529, message="Overloaded")])
    assert isinstance(failed, ModelUnavailable)


async def a_cut_connection_is_a_temporary_failure(subject: ModelSubject) -> None:
    assert isinstance(await _fail(subject, [Say("Well"), Cut()]), ModelUnavailable)


async def a_connection_cut_within_a_call_makes_no_call(subject: ModelSubject) -> None:
    harness = EngineHarness(subject)

    await _fail(subject, [CallTool("send", '{"to": "An'), Cut()], harness=harness)

    assert harness.gate.calls == []


async def a_stalled_model_is_a_temporary_failure(subject: ModelSubject) -> None:
    error = await _fail(subject, [Say("Well"), Stall()], stall=timedelta(seconds=0.5))

    assert not error.permanent
    for request in subject.api.requests:
        await asyncio.wait_for(request.gone.wait(), END_SECONDS)


async def garbage_as_a_response_is_a_temporary_failure(subject: ModelSubject) -> None:
    assert not (await _fail(subject, [Garbage()])).permanent


async def garbage_during_a_response_is_a_temporary_failure(subject: ModelSubject) -> None:
    assert not (await _fail(subject, [Say("Well"), Garbage()])).permanent


async def a_session_outlives_a_failure(subject: ModelSubject) -> None:
    harness = EngineHarness(subject)
    subject.api.then(Say("The word is plum."))
    await harness.turn("What is the word?")
    usual = subject.api.otherwise
    await _fail(subject, [Say("Well"), Cut()], harness=harness)
    subject.api.otherwise = usual

    result = await harness.turn("Say it again.")

    assert result.ended
    assert subject.api.requests[-1].holds("The word is plum.")
    assert subject.api.complaints == []


async def a_call_is_remembered_if_the_model_fails_after_it(subject: ModelSubject) -> None:
    harness = EngineHarness(subject)
    subject.api.then(Say("Sending."), CallTool("send"))
    usual = subject.api.otherwise
    await _fail(subject, [Refuse(500)], harness=harness, limit=MAX_TRIES + 1)
    subject.api.otherwise = usual

    await harness.turn("Go on.")

    assert harness.tools.count("send") == 1
    assert subject.api.requests[-1].holds("send is done.")
    assert subject.api.complaints == []


async def a_session_whose_memory_cannot_be_read_is_gone(subject: ModelSubject) -> None:
    harness = EngineHarness(subject)
    await harness.turn("Hello!")
    for damaged in (["{not json"], ['{"no": "message"}'], [harness.memory[0][:-9]]):
        again = EngineHarness(subject, session_id=harness.session_id, memory=damaged)
        before = len(subject.api.requests)
        try:
            await again.turn("Hello again!")
        except SessionGone:
            pass
        else:
            raise AssertionError(f"{damaged} was accepted as memory.")
        assert len(subject.api.requests) == before


async def _fail(
    subject: ModelSubject,
    reply: Reply,
    *,
    harness: EngineHarness | None = None,
    stall: timedelta = STALL_LIMIT,
    limit: int = MAX_TRIES,
) -> EngineFailed:
    """Run a turn with a model that fails at every request."""
    before = len(subject.api.requests)
    subject.api.otherwise = lambda _: reply
    failed: EngineFailed | None = None
    try:
        await (harness or EngineHarness(subject)).turn("Try.", stall=stall)
    except EngineFailed as error:
        failed = error
    assert failed is not None, "The turn did not fail."
    assert not isinstance(failed, SessionGone)
    assert 1 <= len(subject.api.requests) - before <= limit
    return failed
