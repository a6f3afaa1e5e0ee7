"""Timeouts of runs and of calls: how long one may take, and which runs are long."""

from datetime import timedelta

from backburner.core.errors import BadRequest
from backburner.core.schedule.phrases import parse_duration

MIN_TIMEOUT, MAX_TIMEOUT = timedelta(seconds=10), timedelta(hours=24)
#: Runs that may take longer leave a seat to others.
LONG_TIMEOUT = timedelta(minutes=10)


def check_timeout(
    timeout: timedelta | None, shortest: timedelta = MIN_TIMEOUT, longest: timedelta = MAX_TIMEOUT
) -> timedelta | None:
    """Refuse a timeout that is too short or too long; None is the default."""
    if timeout is not None and not shortest <= timeout <= longest:
        raise BadRequest(
            f"The timeout cannot be {describe_timeout(timeout)}.",
            hint=f"Use {describe_timeout(shortest)} to {describe_timeout(longest)}.",
        )
    return timeout


def parse_timeout(
    text: str, shortest: timedelta = MIN_TIMEOUT, longest: timedelta = MAX_TIMEOUT
) -> timedelta:
    """Parse a timeout such as `90s`, `20m` or `2h`."""
    timeout = parse_duration(text)
    check_timeout(timeout, shortest, longest)
    return timeout


def is_long(timeout: timedelta | None) -> bool:
    """Return whether runs with this timeout count as long; with the default they do not."""
    return timeout is not None and timeout > LONG_TIMEOUT


def describe_timeout(timeout: timedelta) -> str:
    seconds = timeout.total_seconds()
    hours, minutes = int(seconds // 3600), int(seconds % 3600 // 60)
    parts = [(hours, "hour"), (minutes, "minute")]
    texts = [f"{count} {unit}{'s' * (count != 1)}" for count, unit in parts if count]
    if rest := seconds % 60:
        texts.append(f"{rest:g} second{'s' * (rest != 1)}")
    return " ".join(texts) or "0 seconds"
