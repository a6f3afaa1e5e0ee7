"""Consequences of a failed background run: a retry, a question to the user, or giving up.

Trouble of a model's provider is not the fault of the work, and does not count as its failure. It is
an `Outage` of the profile: background work of the profile waits, and one run at a time is a probe.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from backburner.core.conversation import Conversation, Kind, OnRepeatedFailure
from backburner.core.run import NO_WAIT, Failure, FailureKind, ModelWait, Run, RunKind

FIRST_RETRY_DELAY = timedelta(seconds=30)
MAX_RETRY_DELAY = timedelta(hours=1)
#: However long the other side asks us to wait, we retry after a day.
MAX_RETRY_AFTER = timedelta(days=1)
MAX_CRASHES = 3
#: How long a profile rests after the first trouble; doubled with each probe that fails.
FIRST_REST = timedelta(seconds=15)
MAX_REST = timedelta(minutes=5)
#: A key is not tried more often: its owner has to act first.
ACCESS_DENIED_REST = timedelta(minutes=15)
#: How long others wait for a probe, before the next one may be made.
PROBE_TIME = timedelta(minutes=1)
#: If nothing has tried a profile for longer since it rested, the time until then does not count.
MAX_UNTRIED_TIME = timedelta(minutes=2)
#: How long one-time work waits for its model. A job waits for as long as a run of it may take.
MAX_OUTAGE_WAIT = timedelta(hours=24)
#: Who was told so long before an outage began anew is told again.
MAX_REPORT_AGE = timedelta(days=7)
#: Failures that the work is not to blame for.
OUTAGE_KINDS = frozenset({FailureKind.UNAVAILABLE, FailureKind.ACCESS_DENIED})
_LIMITS = {OnRepeatedFailure.PAUSE: 2, OnRepeatedFailure.NOTIFY: 3}


@dataclass(frozen=True, slots=True)
class RetryAt:
    """Retry at a time."""

    at: datetime


@dataclass(frozen=True, slots=True)
class AskUser:
    """Ask the user, who alone can decide."""


@dataclass(frozen=True, slots=True)
class AtLimit:
    """The limit on consecutive failures is reached; `newly` if this failure reached it."""

    newly: bool


Verdict = RetryAt | AskUser | AtLimit


def gives_up_replying(runs: Iterable[Run]) -> bool:
    """Decide, from the latest runs first, whether a crashed reply is not attempted again."""
    replies = [run for run in runs if run.kind is RunKind.REPLY][:MAX_CRASHES]
    crashes = [run for run in replies if run.failure and run.failure.kind is FailureKind.CRASHED]
    return len(crashes) == MAX_CRASHES


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """Trouble of a profile's model, one fact for all processes."""

    profile: str
    kind: FailureKind
    message: str
    #: Something has tried the model again and again since then.
    since: datetime
    #: The next probe is made then.
    until: datetime
    #: Until then it counts as tried: the end of its last rest, or later, while runs try it.
    tried_until: datetime
    #: When the model last answered a call, though no run has ended well since.
    answered_at: datetime | None = None
    #: Probes that failed.
    probes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """One-time work that waits for its model, and may have waited for too long."""

    #: When it was due, when its run began to wait: it has waited since the last of them.
    times: Iterable[datetime | None]
    #: When its user resumed all work, when its event came: it has not waited before that at all.
    not_before: Iterable[datetime | None]
    #: How long it may wait.
    limit: timedelta
    #: Of a run that has just met it; while others are tried it means nothing.
    own_trouble_since: datetime | None = None


def note_trouble(
    outage: Outage | None,
    profile: str,
    failure: Failure,
    *,
    probed: bool,
    now: datetime,
) -> Outage:
    """Begin or prolong an outage. `probed`: a probe, or a user's message, has met the trouble.

    Runs that were in progress when it began prolong nothing: they failed for the same reason.
    """
    probes = 0 if outage is None else outage.probes
    if outage is None or probed or outage.until <= now:
        probes += 1
        # The provider may have asked for longer before.
        rested = now if outage is None else outage.tried_until
        until = max(rested, now + _rest(probes, failure))
    else:
        until = max(outage.until, now + min(failure.retry_after or timedelta(), MAX_RETRY_AFTER))
    return Outage(
        profile=profile,
        kind=failure.kind,
        message=failure.message,
        since=waits_since(outage, now),
        until=until,
        tried_until=until,
        answered_at=None if outage is None else outage.answered_at,
        probes=probes,
    )


def keep_trying(outage: Outage, now: datetime) -> Outage:
    """Note that a run is still trying the model, which may take long to fail."""
    since = waits_since(outage, now)
    return replace(outage, since=since, tried_until=max(outage.tried_until, now))


def waits_since(outage: Outage | None, now: datetime) -> datetime:
    """Return since when work waits for a model that is tried now.

    The waiting begins anew after a time in which nothing has tried it: the machine slept.
    """
    if outage is None or now - outage.tried_until > MAX_UNTRIED_TIME:
        return now
    return outage.since


def _rest(probes: int, failure: Failure) -> timedelta:
    rest = min(FIRST_REST * (1 << min(probes - 1, 10)), MAX_REST)
    if failure.kind is FailureKind.ACCESS_DENIED:
        rest = ACCESS_DENIED_REST
    return max(rest, min(failure.retry_after or timedelta(), MAX_RETRY_AFTER))


def has_waited_too_long(waiting: Waiting, outage: Outage | None, *, now: datetime) -> bool:
    """Decide whether one-time work that waits for its model is to be ended.

    Only time counts in which it waits for nothing else, something tries the model and the model
    answers nobody; but trouble of its own counts though the model answers in between.
    """
    answered_at = None if outage is None else outage.answered_at
    times = (waits_since(outage, now), answered_at, *waiting.times)
    since = max(time for time in times if time is not None)
    since = min(since, waiting.own_trouble_since or since)
    since = max(since, *(time for time in waiting.not_before if time is not None), since)
    return now - since >= waiting.limit


def correct_wait(run: Run, *, now: datetime) -> Run:
    """Correct the times of a run in progress, which a clock wrote that ran ahead until then."""
    since, own = run.waits_since, run.own_trouble_since
    return replace(
        run, waits_since=since and min(since, now), own_trouble_since=own and min(own, now)
    )


def keep_waiting(run: Run, *, has_answered: bool) -> ModelWait:
    """Return what an interrupted run waits for: nothing, if its model has answered it."""
    if has_answered:
        return NO_WAIT
    return ModelWait(
        failure=run.failure,
        since=run.waits_since,
        own_trouble_since=run.own_trouble_since,
    )


def wait_in_trouble(
    run: Run,
    failure: Failure,
    outage: Outage | None,
    *,
    in_outage: bool,
    has_answered: bool,
    now: datetime,
) -> ModelWait:
    """Return what a run that has met trouble waits for.

    If the model has answered, the run or others, since the run met trouble before, then the trouble
    is its own: something in its requests may make the provider fail. `in_outage`: when it began.
    """
    since = None if has_answered else run.waits_since
    met_before = run.failure is not None and run.failure.kind in OUTAGE_KINDS
    answered_at = None if outage is None else outage.answered_at
    has_answered_others = answered_at is not None and since is not None and answered_at > since
    is_own = met_before and (has_answered or has_answered_others or not in_outage)
    return ModelWait(
        failure=failure,
        since=since or now,
        own_trouble_since=run.own_trouble_since or (now if is_own else None),
    )


def resume(run: Run, outage: Outage | None, *, due_at: datetime | None, now: datetime) -> Run:
    """Resume a run that waits since `due_at`: what it waited for otherwise does not count.

    Either the machine slept, or the run waited for its turn while nothing tried the model.
    """
    gap = timedelta() if due_at is None else now - due_at
    is_tried = outage is not None and waits_since(outage, now) <= now - gap
    return run if is_tried or gap <= MAX_UNTRIED_TIME else leave_out(run, gap)


def leave_out(run: Run, length: timedelta) -> Run:
    """Leave out time in which a run has worked or waited for something else."""
    if run.own_trouble_since is None:
        return run
    return replace(run, own_trouble_since=run.own_trouble_since + length)


def own_delay(wait: ModelWait, *, in_outage: bool, now: datetime) -> timedelta:
    """Return how long a run with trouble of its own waits, whether its profile rests or not."""
    failure, since = wait.failure, wait.own_trouble_since
    if failure is None or since is None:
        return timedelta()
    requested = min(failure.retry_after or timedelta(), MAX_RETRY_AFTER)
    if in_outage:
        return requested
    return max(requested, min(max(now - since, FIRST_REST), MAX_RETRY_DELAY))


def max_outage_wait(kind: Kind, run_timeout: timedelta) -> timedelta:
    """Return how long one-time work waits for its model; recurring work waits for ever."""
    return run_timeout if kind is Kind.JOB else MAX_OUTAGE_WAIT


def judge(conversation: Conversation, failure: Failure, *, now: datetime) -> Verdict:
    if failure.kind is FailureKind.TOOL:
        return AskUser()
    limit = failure_limit(conversation)
    failures = count_failure(conversation, failure)
    if failures >= limit:
        return AtLimit(newly=conversation.failures < limit)
    return RetryAt(now + retry_delay(failures, failure.retry_after))


def count_failure(conversation: Conversation, failure: Failure) -> int:
    """Return the number of failures including this one; a permanent one counts as the limit."""
    failures = conversation.failures + 1
    return max(failures, failure_limit(conversation)) if failure.permanent else failures


def failure_limit(conversation: Conversation) -> int:
    return _LIMITS[conversation.on_repeated_failure]


def retry_delay(failures: int, retry_after: timedelta | None = None) -> timedelta:
    """Double the delay with each failure; wait at least as long as the other side asked."""
    backoff = min(FIRST_RETRY_DELAY * (1 << min(failures - 1, 10)), MAX_RETRY_DELAY)
    requested = min(retry_after or timedelta(), MAX_RETRY_AFTER)
    return max(backoff, requested)
