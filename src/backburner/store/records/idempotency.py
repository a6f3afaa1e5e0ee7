"""Stored responses to requests with an idempotency key."""

from datetime import datetime

from sqlalchemy import and_, bindparam, delete, select, tuple_, update

from backburner.core.ids import UserId
from backburner.ports import StoredResponse
from backburner.store.context import Group
from backburner.store.dialect import insert_if_absent
from backburner.store.tables import answers

_by_key = and_(answers.c.user_id == bindparam("owner"), answers.c.key == bindparam("request_key"))
_select = select(answers).where(_by_key)
_store = (
    update(answers)
    .where(_by_key)
    .values(status=bindparam("new_status"), body=bindparam("new_body"))
)
_release = delete(answers).where(_by_key, answers.c.status.is_(None))
_select_old = (
    select(answers.c.user_id, answers.c.key)
    .where(answers.c.created_at < bindparam("before"))
    .order_by(answers.c.created_at)
    .limit(bindparam("limit"))
)


class StoredResponses(Group):
    def reserve(
        self, user: UserId, key: str, request: str, *, now: datetime
    ) -> StoredResponse | None:
        stored = self._execute(_select, {"owner": user, "request_key": key}).one_or_none()
        if stored is None:
            row = {"user_id": user, "key": key, "request": request, "created_at": now}
            if insert_if_absent(self.connection, answers, row):
                return None
            # A concurrent request inserted it, and may have released it since.
            return self.reserve(user, key, request, now=now)
        return StoredResponse(stored.request, stored.status, stored.body, stored.created_at)

    def complete(self, user: UserId, key: str, status: int, body: str) -> None:
        values = {"owner": user, "request_key": key, "new_status": status, "new_body": body}
        self._execute(_store, values)

    def release(self, user: UserId, key: str) -> None:
        self._execute(_release, {"owner": user, "request_key": key})

    def prune(self, *, before: datetime, limit: int) -> int:
        old = self._execute(_select_old, {"before": before, "limit": limit}).all()
        if old:
            keys = [tuple(row) for row in old]
            self._execute(delete(answers).where(tuple_(answers.c.user_id, answers.c.key).in_(keys)))
        return len(old)
