"""Times, durations, money and numbers as people say them, in the zone of a user."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from backburner.core.schedule.cron import find_zone
from backburner.core.schedule.describe import MONTHS, WEEKDAYS

_NBSP = "\N{NO-BREAK SPACE}"
_DAY = timedelta(days=1)
_WEEK_DAYS = 6
#: From here on, days are easier to read.
_MANY_HOURS = 72


@dataclass(frozen=True, slots=True)
class Display:
    """The present and the user's zone, to which times are relative."""

    now: datetime
    zone: str

    def local(self, at: datetime) -> datetime:
        return at.astimezone(find_zone(self.zone))

    def clock(self, at: datetime) -> str:
        local = self.local(at)
        return f"{local.hour}:{local:%M}"

    def day(self, at: datetime) -> str:
        """Name a day: Today, Yesterday, Tomorrow, or Mon 16 Nov."""
        return {0: "Today", -1: "Yesterday", 1: "Tomorrow"}.get(
            self._days_from_now(at), self._date(at)
        )

    def moment(self, at: datetime) -> str:
        """Name a time: today 8:00, Wed 18 Nov, 8:00."""
        days = self._days_from_now(at)
        name = {0: "today", -1: "yesterday", 1: "tomorrow"}.get(days)
        return f"{name} {self.clock(at)}" if name else f"{self._date(at)}, {self.clock(at)}"

    def time(self, at: datetime) -> str:
        """Name a time shortly if it is today: 8:00, yesterday 8:00, Wed 18 Nov, 8:00."""
        return self.clock(at) if self.is_today(at) else self.moment(at)

    def full(self, at: datetime) -> str:
        """Name a time with its year, for what a pointer rests on."""
        local = self.local(at)
        day = f"{WEEKDAYS[local.weekday()]} {local.day} {MONTHS[local.month - 1]} {local.year}"
        return f"{day}, {self.clock(at)} {local.tzname()}"

    def short(self, at: datetime) -> str:
        """Name a past time in a few letters: now, 7:31, Mon, 4 Nov, Nov 2025."""
        if timedelta() <= self.now - at < timedelta(minutes=1):
            return "now"
        local, days = self.local(at), self._days_from_now(at)
        if days == 0:
            return self.clock(at)
        if -_WEEK_DAYS <= days < 0:
            return WEEKDAYS[local.weekday()][:3]
        month = MONTHS[local.month - 1][:3]
        if local.year == self.local(self.now).year:
            return f"{local.day}{_NBSP}{month}"
        return f"{month}{_NBSP}{local.year}"

    def distance(self, at: datetime) -> str:
        """Say how far away a time is that is named beside it: never tomorrow, but in 24 h."""
        said = self.until(at)
        if said != "tomorrow":
            return said
        return f"in{_NBSP}{round((at - self.now) / timedelta(hours=1))}{_NBSP}h"

    def until(self, at: datetime) -> str:
        """Say how far away a time is: in 12 min, tomorrow, in 3 days."""
        left = at - self.now
        if left < timedelta(minutes=1):
            return "in a moment"
        if left < timedelta(hours=1):
            return f"in{_NBSP}{left // timedelta(minutes=1)}{_NBSP}min"
        days = self._days_from_now(at)
        if days == 0 or left < timedelta(hours=12):
            hours = round(left / timedelta(hours=1))
            return f"in{_NBSP}{hours}{_NBSP}h"
        return "tomorrow" if days == 1 else f"in{_NBSP}{days}{_NBSP}days"

    def since(self, at: datetime) -> str:
        """Say how long something has waited: 17 min, 2 h, 3 days."""
        waited = max(self.now - at, timedelta())
        if waited < timedelta(hours=1):
            return f"{max(waited // timedelta(minutes=1), 1)}{_NBSP}min"
        if waited < _DAY:
            return f"{waited // timedelta(hours=1)}{_NBSP}h"
        days = waited // _DAY
        return f"{days}{_NBSP}day{'s' * (days != 1)}"

    def took(self, duration: timedelta) -> str:
        return format_duration(duration)

    def iso(self, at: datetime) -> str:
        return at.isoformat()

    def is_today(self, at: datetime) -> bool:
        return self._days_from_now(at) == 0

    def past_moment(self, at: datetime) -> str:
        """Name a past time shortly: Today 8:00, Mon 8:00, 6 Nov 8:00, 6 Nov 2025."""
        local, days = self.local(at), self._days_from_now(at)
        month = MONTHS[local.month - 1][:3]
        if days == 0:
            return f"Today {self.clock(at)}"
        if -_WEEK_DAYS <= days < 0:
            return f"{WEEKDAYS[local.weekday()][:3]} {self.clock(at)}"
        if local.year == self.local(self.now).year:
            return f"{local.day}{_NBSP}{month} {self.clock(at)}"
        return f"{local.day}{_NBSP}{month}{_NBSP}{local.year}"

    def _date(self, at: datetime) -> str:
        local = self.local(at)
        year = "" if local.year == self.local(self.now).year else f"{_NBSP}{local.year}"
        day, month = WEEKDAYS[local.weekday()][:3], MONTHS[local.month - 1][:3]
        return f"{day}{_NBSP}{local.day}{_NBSP}{month}{year}"

    def _days_from_now(self, at: datetime) -> int:
        return (self.local(at).date() - self.local(self.now).date()).days


def format_duration(duration: timedelta) -> str:
    """Name a duration: under 0.1 s, 0.8 s, 42 s, 1 min 48 s, 3 h 5 min, 4 days."""
    seconds = duration.total_seconds()
    if 0 < seconds < 0.05:
        return f"under{_NBSP}0.1{_NBSP}s"
    if seconds < 9.95:
        return f"{seconds:.1f}{_NBSP}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes == 0:
        return f"{rest}{_NBSP}s"
    if minutes < 60:
        return f"{minutes}{_NBSP}min" + (f" {rest}{_NBSP}s" if rest else "")
    hours, minutes = divmod(minutes, 60)
    if hours >= _MANY_HOURS:
        return f"{round(hours / 24)}{_NBSP}days"
    return f"{hours}{_NBSP}h" + (f" {minutes}{_NBSP}min" if minutes else "")


def format_money(micros: int) -> str:
    """Write millionths of a dollar: $1.84, $0.06, $0.002; three digits below ten cents."""
    dollars = micros / 1_000_000
    if 0 < dollars < 0.0005:
        return "under $0.001"
    digits = 3 if 0 < dollars < 0.1 else 2
    return f"${dollars:,.{digits}f}"


def format_count(number: int) -> str:
    """Write a large number shortly: 950, 1.2k, 312k, 4.1M, 2B."""
    if number < 1_000:
        return str(number)
    if number < 1_000_000:
        thousands = number / 1_000
        return f"{thousands:.1f}k".replace(".0k", "k") if thousands < 10 else f"{thousands:.0f}k"
    if number < 1_000_000_000:
        return f"{number / 1_000_000:.1f}M".replace(".0M", "M")
    return f"{number / 1_000_000_000:,.1f}B".replace(".0B", "B")


def format_size(size: int) -> str:
    """Write a number of bytes: 184 KB."""
    if size < 1_000:
        return f"{size}{_NBSP}bytes"
    if size < 1_000_000:
        return f"{size / 1_000:.0f}{_NBSP}KB"
    return f"{size / 1_000_000:.1f}{_NBSP}MB"
