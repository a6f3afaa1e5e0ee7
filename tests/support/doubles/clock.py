"""A clock that stands still until a test moves it."""

from datetime import datetime, timedelta

from support.stage.make import NOON

_MICROSECOND = timedelta(microseconds=1)


class SetClock:
    """The time and the clock of leases; give it to a `Database` as its clock."""

    def __init__(self, now: datetime = NOON, tick: int = 0) -> None:
        self.now = now
        #: In microseconds, like that of a machine: it starts anywhere and never goes back.
        self.tick = tick

    def __call__(self) -> tuple[datetime, int]:
        return self.now, self.tick

    def advance(self, by: timedelta) -> None:
        self.now += by
        self.tick += by // _MICROSECOND

    def sleep(self, length: timedelta) -> None:
        """Let the machine sleep: time goes on, and leases stand still."""
        self.now += length
