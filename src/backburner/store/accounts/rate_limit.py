"""Attempts to sign in, counted for all processes together."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from sqlalchemy import bindparam, delete, select, update

from backburner.core.accounts import MAX_SIGN_IN_ATTEMPTS, SIGN_IN_WINDOW
from backburner.store.context import Group
from backburner.store.dialect import add_up
from backburner.store.tables import attempts

_forget_old = delete(attempts).where(attempts.c.since <= bindparam("before"))
_forget = delete(attempts).where(attempts.c.key == bindparam("which"))
_uncount = (
    update(attempts)
    .where(attempts.c.key == bindparam("which"), attempts.c.count > 0)
    .values(count=attempts.c.count - 1)
)
_over = select(attempts.c.since).where(
    attempts.c.key.in_(bindparam("keys", expanding=True)), attempts.c.count > MAX_SIGN_IN_ATTEMPTS
)


class RateLimits(Group):
    def count(self, keys: Iterable[str], *, now: datetime) -> timedelta | None:
        # In one order, so that nobody waits for somebody who waits for them.
        wanted = sorted(keys)
        self.connection.execute(_forget_old, {"before": now - SIGN_IN_WINDOW})
        # Counted first: whoever comes at the same time waits here, and sees this one.
        rows = [{"key": key, "count": 1, "since": now} for key in wanted]
        add_up(self.connection, attempts, rows, "count")
        over = self.connection.execute(_over, {"keys": wanted}).scalars().all()
        if not over:
            return None
        for key in wanted:
            self.refund(key)
        latest: datetime = max(over)
        return latest + SIGN_IN_WINDOW - now

    def reset(self, key: str) -> None:
        self.connection.execute(_forget, {"which": key})

    def refund(self, key: str) -> None:
        self.connection.execute(_uncount, {"which": key})
