"""Models that refuse, break off or talk nonsense; and memory that nobody can read."""

import asyncio
from datetime import timedelta

from backburner.core.errors import EngineFailed, SessionGone
from support.contracts.engine.trial import PATIENCE, SOON, ModelSubject, Trial
from support.model_api import CallTool, Cut, Garbage, Refuse, Reply, Say, Stall

#: An engine may try again itself, but not without end.
MOST_TRIES = 5


async def a_key_that_is_not_accepted_is_permanent_and_says_what_to_do(
    subject: ModelSubject,
) -> None:
    error = await _fail(subject, [Refuse(401, message="invalid x-api-key")])

    assert error.permanent
    assert "key" in str(error)


async def too_many_requests_pass_after_the_time_the_model_names(subject: ModelSubject) -> None:
    error = await _fail(subject, [Refuse(429, retry_after="7")])

    assert not error.permanent
    assert error.retry_after == timedelta(seconds=7)


async def too_many_requests_pass_also_if_no_time_is_named(subject: ModelSubject) -> None:
    error = await _fail(subject, [Refuse(429)])

    assert not error.permanent
    assert error.retry_after is None


async def a_server_error_passes(subject: ModelSubject) -> None:
    assert not (await _fail(subject, [Refuse(500)])).permanent


async def a_model_that_is_overloaded_may_be_tried_again(subject: ModelSubject) -> None:
    assert not (await _fail(subject, [Refuse(529, message="Overloaded")])).permanent


async def a_model_that_is_overloaded_in_the_middle_may_be_tried_again(
    subject: ModelSubject,
) -> None:
    assert not (await _fail(subject, [Say("Well"), Refuse(529, message="Overloaded")])).permanent


async def a_connection_that_is_cut_may_be_tried_again(subject: ModelSubject) -> None:
    assert not (await _fail(subject, [Say("Well"), Cut()])).permanent


async def a_connection_that_is_cut_in_a_call_makes_no_call(subject: ModelSubject) -> None:
    trial = Trial(subject)

    await _fail(subject, [CallTool("send", '{"to": "An'), Cut()], trial=trial)

    assert trial.gate.calls == []


async def a_model_that_stalls_is_left(subject: ModelSubject) -> None:
    error = await _fail(subject, [Say("Well"), Stall()], stall=timedelta(seconds=0.5))

    assert not error.permanent
    for request in subject.api.requests:
        await asyncio.wait_for(request.gone.wait(), SOON)


async def nonsense_may_be_tried_again(subject: ModelSubject) -> None:
    assert not (await _fail(subject, [Garbage()])).permanent


async def nonsense_in_the_middle_may_be_tried_again(subject: ModelSubject) -> None:
    assert not (await _fail(subject, [Say("Well"), Garbage()])).permanent


async def a_session_outlives_a_failure(subject: ModelSubject) -> None:
    trial = Trial(subject)
    subject.api.then(Say("The word is plum."))
    await trial.turn("What is the word?")
    usual = subject.api.otherwise
    await _fail(subject, [Say("Well"), Cut()], trial=trial)
    subject.api.otherwise = usual

    heard = await trial.turn("Say it again.")

    assert heard.ended
    assert subject.api.requests[-1].holds("The word is plum.")
    assert subject.api.complaints == []


async def what_was_done_is_known_though_the_model_fails_afterwards(subject: ModelSubject) -> None:
    trial = Trial(subject)
    subject.api.then(Say("Sending."), CallTool("send"))
    usual = subject.api.otherwise
    await _fail(subject, [Refuse(500)], trial=trial, limit=MOST_TRIES + 1)
    subject.api.otherwise = usual

    await trial.turn("Go on.")

    assert trial.tools.count("send") == 1
    assert subject.api.requests[-1].holds("send is done.")
    assert subject.api.complaints == []


async def memory_that_cannot_be_read_is_a_session_that_is_gone(subject: ModelSubject) -> None:
    trial = Trial(subject)
    await trial.turn("Hello!")
    for damaged in (["{not json"], ['{"no": "message"}'], [trial.memory[0][:-9]]):
        again = Trial(subject, session_id=trial.session_id, memory=damaged)
        before = len(subject.api.requests)
        try:
            await again.turn("Hello again!")
        except SessionGone:
            pass
        else:
            raise AssertionError(f"{damaged} was taken for memory.")
        assert len(subject.api.requests) == before


async def _fail(
    subject: ModelSubject,
    reply: Reply,
    *,
    trial: Trial | None = None,
    stall: timedelta = PATIENCE,
    limit: int = MOST_TRIES,
) -> EngineFailed:
    """Let a model fail from now on, however often it is asked."""
    before = len(subject.api.requests)
    subject.api.otherwise = lambda _: reply
    failed: EngineFailed | None = None
    try:
        await (trial or Trial(subject)).turn("Try.", stall=stall)
    except EngineFailed as error:
        failed = error
    assert failed is not None, "It did not fail."
    assert not isinstance(failed, SessionGone)
    assert 1 <= len(subject.api.requests) - before <= limit
    return failed
