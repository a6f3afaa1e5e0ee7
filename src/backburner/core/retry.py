"""What the failure of a background run means: again when, ask the user, or the limit is reached."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from backburner.core.conversation import Conversation, OnRepeatedFailure
from backburner.core.question import Purpose
from backburner.core.run import Failure, FailureKind

FIRST_RETRY_DELAY = timedelta(seconds=30)
MAX_RETRY_DELAY = timedelta(hours=1)
#: However long somebody asks to be left alone, we look again after a day.
MAX_RETRY_AFTER = timedelta(days=1)
MAX_CRASHES = 3
_LIMITS = {OnRepeatedFailure.PAUSE: 2, OnRepeatedFailure.NOTIFY: 3}


@dataclass(frozen=True, slots=True)
class RetryAt:
    """Worth another try."""

    at: datetime


@dataclass(frozen=True, slots=True)
class AskUser:
    """Only the user can settle this."""

    purpose: Purpose


@dataclass(frozen=True, slots=True)
class AtLimit:
    """As many failures in a row as it may have; `newly` if this was the one too many."""

    newly: bool


Verdict = RetryAt | AskUser | AtLimit


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
    """Count this failure in; one that no repetition can mend counts as all that were left."""
    failures = conversation.failures + 1
    return max(failures, failure_limit(conversation)) if failure.permanent else failures


def failure_limit(conversation: Conversation) -> int:
    return _LIMITS[conversation.on_repeated_failure]


def retry_delay(failures: int, retry_after: timedelta | None = None) -> timedelta:
    """Wait twice as long each time, and at least as long as the other side asked for."""
    own = min(FIRST_RETRY_DELAY * (1 << min(failures - 1, 10)), MAX_RETRY_DELAY)
    asked = min(retry_after or timedelta(), MAX_RETRY_AFTER)
    return max(own, asked)
