"""What follows a failure: a retry, a question, or giving up."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.stage import make
from support.stage.make import NOON

from backburner.core.conversation import Conversation, Kind, OnRepeatedFailure
from backburner.core.retry import (
    ACCESS_DENIED_REST,
    FIRST_REST,
    MAX_OUTAGE_WAIT,
    MAX_REST,
    MAX_RETRY_AFTER,
    MAX_RETRY_DELAY,
    MAX_UNTRIED_TIME,
    OUTAGE_KINDS,
    AskUser,
    AtLimit,
    Outage,
    RetryAt,
    Waiting,
    correct_wait,
    count_failure,
    failure_limit,
    gives_up_replying,
    has_waited_too_long,
    judge,
    keep_trying,
    keep_waiting,
    max_outage_wait,
    note_trouble,
    own_delay,
    resume,
    retry_delay,
    wait_in_trouble,
    waits_since,
)
from backburner.core.run import NO_WAIT, Failure, FailureKind, ModelWait, Run, RunKind

SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)
TASK = make.conversation(on_repeated_failure=OnRepeatedFailure.PAUSE)
CHAT = make.conversation(on_repeated_failure=OnRepeatedFailure.NOTIFY)
PASSING = sorted(set(FailureKind) - {FailureKind.TOOL})


@pytest.mark.parametrize("kind", PASSING)
def test_a_passing_failure_is_retried_after_a_delay(kind: FailureKind) -> None:
    assert judge(TASK, make.failure(kind), now=NOON) == RetryAt(NOON + 30 * SECOND)


@pytest.mark.parametrize("failures", [0, 1, 7])
def test_a_failure_that_only_the_user_can_resolve_is_asked_immediately(failures: int) -> None:
    failed = make.conversation(failures=failures)

    assert judge(failed, make.failure(FailureKind.TOOL), now=NOON) == AskUser()


def test_a_task_has_two_failures_in_a_row_and_a_chat_three() -> None:
    assert (failure_limit(TASK), failure_limit(CHAT)) == (2, 3)


@pytest.mark.parametrize(
    ("policy", "failures", "verdict"),
    [
        (OnRepeatedFailure.PAUSE, 0, RetryAt(NOON + 30 * SECOND)),
        (OnRepeatedFailure.PAUSE, 1, AtLimit(newly=True)),
        (OnRepeatedFailure.PAUSE, 2, AtLimit(newly=False)),
        (OnRepeatedFailure.NOTIFY, 0, RetryAt(NOON + 30 * SECOND)),
        (OnRepeatedFailure.NOTIFY, 1, RetryAt(NOON + 60 * SECOND)),
        (OnRepeatedFailure.NOTIFY, 2, AtLimit(newly=True)),
        (OnRepeatedFailure.NOTIFY, 3, AtLimit(newly=False)),
    ],
)
def test_the_limit_is_reached_anew_only_once(
    policy: OnRepeatedFailure, failures: int, verdict: RetryAt | AtLimit
) -> None:
    failed = make.conversation(on_repeated_failure=policy, failures=failures)

    assert judge(failed, make.failure(), now=NOON) == verdict


@pytest.mark.parametrize("conversation", [TASK, CHAT])
def test_a_permanent_failure_reaches_the_limit_at_once(conversation: Conversation) -> None:
    hopeless = make.failure(permanent=True)

    assert judge(conversation, hopeless, now=NOON) == AtLimit(newly=True)
    assert count_failure(conversation, hopeless) == failure_limit(conversation)


def test_failures_are_counted_on_beyond_the_limit() -> None:
    failed = make.conversation(failures=9)

    assert count_failure(failed, make.failure()) == 10
    assert count_failure(failed, make.failure(permanent=True)) == 10


def test_each_pause_is_twice_as_long_up_to_an_hour() -> None:
    pauses = [retry_delay(failures) / SECOND for failures in range(1, 10)]

    assert pauses == [30, 60, 120, 240, 480, 960, 1920, 3600, 3600]


@pytest.mark.parametrize(
    ("asked", "pause"),
    [
        (None, 30 * SECOND),
        (timedelta(), 30 * SECOND),
        (-HOUR, 30 * SECOND),
        (5 * SECOND, 30 * SECOND),
        (45 * SECOND, 45 * SECOND),
        (3 * HOUR, 3 * HOUR),
        (9 * DAY, DAY),
    ],
)
def test_a_requested_delay_is_observed_up_to_a_day(
    asked: timedelta | None, pause: timedelta
) -> None:
    assert retry_delay(1, asked) == pause
    assert judge(TASK, make.failure(retry_after=asked), now=NOON) == RetryAt(NOON + pause)


@given(st.integers(1, 10**6), st.none() | st.timedeltas())
def test_a_pause_is_never_shorter_than_the_first_nor_longer_than_a_day(
    failures: int, asked: timedelta | None
) -> None:
    pause = retry_delay(failures, asked)

    assert 30 * SECOND <= pause <= MAX_RETRY_AFTER
    assert pause <= MAX_RETRY_DELAY or asked is not None
    assert retry_delay(failures + 1, asked) >= pause


def replied(kind: FailureKind | None = None, **changes: Any) -> Run:
    failure = make.failure(kind) if kind else None
    return make.run(kind=RunKind.REPLY, failure=failure, **changes)


def test_a_reply_is_given_up_at_the_third_crash_in_a_row() -> None:
    crashed, failed = replied(FailureKind.CRASHED), replied(FailureKind.MODEL)
    work = make.run(kind=RunKind.BACKGROUND)

    assert not gives_up_replying([crashed, crashed])
    assert not gives_up_replying([crashed, replied(), crashed, crashed])
    assert not gives_up_replying([crashed, crashed, failed, crashed])
    assert gives_up_replying([crashed, work, crashed, crashed, replied()])


DOWN = make.failure(FailureKind.UNAVAILABLE)


def meet_trouble(
    outage: Outage | None = None,
    failure: Failure = DOWN,
    *,
    probed: bool = True,
    now: datetime = NOON,
) -> Outage:
    return note_trouble(outage, "one", failure, probed=probed, now=now)


def test_a_profile_rests_longer_with_every_probe_that_fails() -> None:
    outage, now, rests = meet_trouble(probed=False), NOON, []
    assert (outage.since, outage.probes) == (NOON, 1)
    for _ in range(8):
        rests.append(outage.until - now)
        now = outage.until
        outage = meet_trouble(outage, now=now)

    assert rests[:3] == [FIRST_REST, 2 * FIRST_REST, 4 * FIRST_REST]
    assert rests[-1] == MAX_REST
    assert outage.since == NOON


def test_runs_that_were_in_progress_prolong_nothing_unless_they_are_told_to_wait() -> None:
    first = meet_trouble(probed=False)
    later = NOON + SECOND

    assert meet_trouble(first, probed=False, now=later) == first
    busy = make.failure(FailureKind.UNAVAILABLE, retry_after=HOUR)
    longer = meet_trouble(first, busy, probed=False, now=later)
    assert (longer.until, longer.probes) == (later + HOUR, 1)
    # Whoever comes after it has rested is a probe, whether it knows or not.
    assert meet_trouble(first, probed=False, now=first.until).probes == 2


def test_a_profile_rests_as_long_as_its_provider_asks_for_up_to_a_day() -> None:
    for wish, rest in ((HOUR, HOUR), (9 * DAY, MAX_RETRY_AFTER), (SECOND, FIRST_REST)):
        busy = make.failure(FailureKind.UNAVAILABLE, retry_after=wish)
        assert meet_trouble(None, busy, probed=False).until == NOON + rest


def test_a_refused_key_is_tried_rarely() -> None:
    denied = make.failure(FailureKind.ACCESS_DENIED)
    assert meet_trouble(None, denied).until == NOON + ACCESS_DENIED_REST


def wait_again(
    run: Run, outage: Outage | None = None, *, in_outage: bool = True, has_answered: bool = False
) -> ModelWait:
    """Let a run meet trouble at noon."""
    return wait_in_trouble(
        run, DOWN, outage, in_outage=in_outage, has_answered=has_answered, now=NOON
    )


@pytest.mark.parametrize("kind", sorted(FailureKind))
def test_trouble_that_a_run_meets_again_while_the_model_works_is_its_own(kind: FailureKind) -> None:
    run = make.run(failure=make.failure(kind), waits_since=NOON - HOUR)

    expected = NOON if kind in OUTAGE_KINDS else None
    assert wait_again(run, in_outage=False).own_trouble_since == expected
    assert wait_again(run).own_trouble_since is None
    assert wait_again(make.run(), in_outage=False).own_trouble_since is None
    # Its beginning stays, also through outages.
    again = replace(run, own_trouble_since=NOON - HOUR)
    for in_outage in (True, False):
        assert wait_again(again, in_outage=in_outage).own_trouble_since == NOON - HOUR


def test_trouble_is_of_a_run_if_the_model_has_answered_it_or_others_in_between() -> None:
    run = make.run(failure=DOWN, waits_since=NOON - HOUR)
    before, after = (
        replace(meet_trouble(now=NOON - DAY), answered_at=NOON - HOUR + by)
        for by in (-SECOND, SECOND)
    )

    assert wait_again(run, before).own_trouble_since is None
    assert wait_again(run, after).own_trouble_since == NOON
    assert wait_again(run, has_answered=True).own_trouble_since == NOON
    # Its first trouble says nothing.
    assert wait_again(make.run(), after, has_answered=True).own_trouble_since is None


def test_a_run_waits_since_the_first_trouble_after_its_model_answered_it() -> None:
    run = make.run(failure=DOWN, waits_since=NOON - HOUR, own_trouble_since=NOON - DAY)

    assert wait_again(run).since == NOON - HOUR
    assert wait_again(run, has_answered=True).since == NOON
    assert wait_again(make.run()).since == NOON
    # A clock that ran ahead has written both.
    ahead = replace(run, waits_since=NOON + DAY, own_trouble_since=NOON + HOUR)
    right = replace(run, waits_since=NOON, own_trouble_since=NOON)
    assert correct_wait(ahead, now=NOON) == right
    assert correct_wait(run, now=NOON) == run
    assert correct_wait(make.run(), now=NOON) == make.run()
    # An interruption changes nothing of it.
    assert keep_waiting(run, has_answered=True) == NO_WAIT
    assert keep_waiting(make.run(), has_answered=False) == NO_WAIT
    kept = ModelWait(failure=DOWN, since=NOON - HOUR, own_trouble_since=NOON - DAY)
    assert keep_waiting(run, has_answered=False) == kept


def test_a_run_with_trouble_of_its_own_waits_as_long_as_it_has_tried() -> None:
    def delay(since: datetime | None, now: datetime, *, in_outage: bool = False) -> timedelta:
        wait = ModelWait(failure=DOWN, own_trouble_since=since)
        return own_delay(wait, in_outage=in_outage, now=now)

    assert delay(NOON, NOON) == FIRST_REST
    assert delay(NOON, NOON + HOUR / 2) == HOUR / 2
    assert delay(NOON, NOON + DAY) == MAX_RETRY_DELAY
    assert delay(NOON, NOON + HOUR, in_outage=True) == timedelta()
    assert delay(None, NOON + HOUR) == timedelta()


@pytest.mark.parametrize("in_outage", [True, False])
def test_a_run_with_trouble_of_its_own_waits_as_long_as_the_provider_asks(
    *, in_outage: bool
) -> None:
    for wish, expected in ((2 * HOUR, 2 * HOUR), (9 * DAY, MAX_RETRY_AFTER)):
        busy = make.failure(FailureKind.UNAVAILABLE, retry_after=wish)
        wait = ModelWait(failure=busy, own_trouble_since=NOON)
        assert own_delay(wait, in_outage=in_outage, now=NOON + HOUR) == expected
        others = ModelWait(failure=busy)
        assert own_delay(others, in_outage=in_outage, now=NOON + HOUR) == timedelta()


def test_no_message_shortens_the_rest_that_a_provider_asked_for() -> None:
    busy = make.failure(FailureKind.UNAVAILABLE, retry_after=HOUR)
    first = meet_trouble(None, busy)

    assert meet_trouble(first, now=NOON + SECOND).until == first.until
    # A probe that was claimed does not prolong it, either.
    probed = replace(first, until=NOON + 3 * HOUR)
    assert meet_trouble(probed, now=NOON + 2 * HOUR).until == NOON + 2 * HOUR + 2 * FIRST_REST


def test_an_outage_begins_anew_if_nothing_has_tried_the_model_for_long() -> None:
    first = meet_trouble()
    latest = first.until + MAX_UNTRIED_TIME

    assert meet_trouble(first, now=latest).since == NOON
    assert meet_trouble(first, now=latest + SECOND).since == latest + SECOND
    # That a probe was claimed says nothing.
    probed = replace(first, until=latest + HOUR)
    assert meet_trouble(probed, now=latest + SECOND).since == latest + SECOND


def test_a_model_counts_as_tried_while_a_run_tries_it() -> None:
    first = meet_trouble()
    assert keep_trying(first, NOON) == first
    outage, now = first, first.until
    for _ in range(9):
        now += MAX_UNTRIED_TIME
        outage = keep_trying(outage, now)

    assert outage == replace(first, tried_until=now)
    assert waits_since(outage, now + MAX_UNTRIED_TIME) == NOON
    assert waits_since(None, now) == now
    # The machine slept.
    assert keep_trying(outage, now + HOUR).since == now + HOUR


def test_one_time_work_waits_a_day_and_a_job_as_long_as_a_run() -> None:
    assert max_outage_wait(Kind.TASK, HOUR) == MAX_OUTAGE_WAIT
    assert max_outage_wait(Kind.CHAT, HOUR) == MAX_OUTAGE_WAIT
    assert max_outage_wait(Kind.JOB, HOUR) == HOUR


def outlast(
    *times: datetime | None,
    outage: Outage | None = None,
    not_before: datetime | None = None,
    now: datetime = NOON,
    **changes: Any,
) -> bool:
    """Whether work that may wait for an hour has waited too long."""
    waiting = Waiting(times=times, not_before=(None, not_before), limit=HOUR, **changes)
    return has_waited_too_long(waiting, outage, now=now)


def been_down(since: datetime, **changes: Any) -> Outage:
    """An outage whose profile rests at noon."""
    return replace(meet_trouble(now=since), tried_until=NOON + SECOND, **changes)


def test_work_has_waited_too_long_if_it_has_waited_for_nothing_but_its_model() -> None:
    early, late = NOON - HOUR, NOON - HOUR + SECOND

    assert outlast(early, outage=been_down(early))
    assert outlast(early, None, outage=been_down(early, answered_at=early), not_before=early)
    assert not outlast(late, outage=been_down(early))
    assert not outlast(early, late, outage=been_down(early))
    assert not outlast(early, outage=been_down(late))
    assert not outlast(early, outage=been_down(early, answered_at=late))
    assert not outlast(early, outage=been_down(early), not_before=late)
    # Nothing has tried the model for long, or nothing is known of an outage.
    slept = replace(been_down(early), tried_until=NOON - MAX_UNTRIED_TIME - SECOND)
    assert not outlast(early, outage=slept)
    assert not outlast(early)


def test_trouble_of_its_own_counts_though_the_model_answers_others() -> None:
    early, late = NOON - HOUR, NOON - HOUR + SECOND

    assert outlast(NOON, own_trouble_since=early)
    assert outlast(early, outage=been_down(early, answered_at=late), own_trouble_since=early)
    assert not outlast(NOON, own_trouble_since=late)
    assert not outlast(NOON, own_trouble_since=early, not_before=late)


def test_what_a_run_waited_for_otherwise_does_not_count_as_own_trouble() -> None:
    run = make.run(own_trouble_since=NOON - HOUR)

    def left_out(outage: Outage | None, due_at: datetime | None, run: Run = run) -> timedelta:
        after = resume(run, outage, due_at=due_at, now=NOON).own_trouble_since
        return after - (NOON - HOUR) if after else timedelta()

    long, short = 2 * MAX_UNTRIED_TIME, MAX_UNTRIED_TIME
    assert left_out(None, NOON - long) == long
    assert left_out(None, NOON - short) == timedelta()
    assert left_out(None, None) == timedelta()
    # Others have tried the model meanwhile, or only since the machine slept.
    assert left_out(been_down(NOON - long), NOON - long) == timedelta()
    assert left_out(been_down(NOON - long + SECOND), NOON - long) == long
    slept = replace(been_down(NOON - HOUR), tried_until=NOON - MAX_UNTRIED_TIME - SECOND)
    assert left_out(slept, NOON - long) == long
    assert left_out(None, NOON - long, make.run()) == timedelta()
