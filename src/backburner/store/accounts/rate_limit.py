"""Attempts to sign in, counted for all processes together."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from sqlalchemy import bindparam, delete, select, update

from backburner.core.accounts import MAX_SIGN_IN_ATTEMPTS, SIGN_IN_WINDOW
from backburner.store.context import Group
from backburner.store.dialect import insert_or_add
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
        self._execute(_forget_old, {"before": now - SIGN_IN_WINDOW})
        # Counted first: whoever comes at the same time waits here, and sees this one.
        rows = [{"key": key, "count": 1, "since": now} for key in wanted]
        insert_or_add(self.connection, attempts, rows, "count")
        over = self._execute(_over, {"keys": wanted}).scalars().all()
        if not over:
            return None
        for key in wanted:
            self.uncount(key)
        latest: datetime = max(over)
        return latest + SIGN_IN_WINDOW - now

    def forgive(self, key: str) -> None:
        self._execute(_forget, {"which": key})

    def uncount(self, key: str) -> None:
        self._execute(_uncount, {"which": key})
