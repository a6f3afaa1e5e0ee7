"""Consequences of a failed background run: a retry, a question to the user, or giving up."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from backburner.core.conversation import Conversation, OnRepeatedFailure
from backburner.core.question import Purpose
from backburner.core.run import Failure, FailureKind, Run, RunKind

FIRST_RETRY_DELAY = timedelta(seconds=30)
MAX_RETRY_DELAY = timedelta(hours=1)
#: However long the other side asks us to wait, we retry after a day.
MAX_RETRY_AFTER = timedelta(days=1)
MAX_CRASHES = 3
_LIMITS = {OnRepeatedFailure.PAUSE: 2, OnRepeatedFailure.NOTIFY: 3}


@dataclass(frozen=True, slots=True)
class RetryAt:
    """Retry at a time."""

    at: datetime


@dataclass(frozen=True, slots=True)
class AskUser:
    """Ask the user, who alone can resolve it."""

    purpose: Purpose


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


def judge(conversation: Conversation, failure: Failure, *, now: datetime) -> Verdict:
    match failure.kind:
        case FailureKind.SIGNED_OUT:
            return AskUser(Purpose.RECONNECT)
        case FailureKind.TOOL:
            return AskUser(Purpose.FAILURE)
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
