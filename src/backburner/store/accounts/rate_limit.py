"""Sign-in attempts, counted for all processes together."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from sqlalchemy import bindparam, delete, select, update

from backburner.core.accounts import MAX_SIGN_IN_ATTEMPTS, SIGN_IN_WINDOW
from backburner.store.context import Group
from backburner.store.dialect import insert_or_add
from backburner.store.tables import attempts

_delete_old = delete(attempts).where(attempts.c.since <= bindparam("before"))
_delete = delete(attempts).where(attempts.c.key == bindparam("key"))
_uncount = (
    update(attempts)
    .where(attempts.c.key == bindparam("of_key"), attempts.c.count > 0)
    .values(count=attempts.c.count - 1)
)
_select_over_limit = select(attempts.c.since).where(
    attempts.c.key.in_(bindparam("keys", expanding=True)), attempts.c.count > MAX_SIGN_IN_ATTEMPTS
)


class RateLimits(Group):
    def count(self, keys: Iterable[str], *, now: datetime) -> timedelta | None:
        # In one order, to avoid deadlocks.
        ordered = sorted(keys)
        self._execute(_delete_old, {"before": now - SIGN_IN_WINDOW})
        # Counted before the check: a concurrent attempt waits here, and then sees this one.
        rows = [{"key": key, "count": 1, "since": now} for key in ordered]
        insert_or_add(self.connection, attempts, rows, "count")
        over = self._execute(_select_over_limit, {"keys": ordered}).scalars().all()
        if not over:
            return None
        for key in ordered:
            self.refund(key)
        latest: datetime = max(over)
        return latest + SIGN_IN_WINDOW - now

    def reset(self, key: str) -> None:
        self._execute(_delete, {"key": key})

    def refund(self, key: str) -> None:
        self._execute(_uncount, {"of_key": key})
