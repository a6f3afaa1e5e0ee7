"""Answers to requests that carry a key, each kept under its sender."""

from datetime import datetime

from sqlalchemy import and_, bindparam, delete, select, tuple_, update

from backburner.core.ids import UserId
from backburner.ports import StoredResponse
from backburner.store.context import Group
from backburner.store.dialect import insert_unless_there
from backburner.store.tables import answers

_this = and_(answers.c.user_id == bindparam("owner"), answers.c.key == bindparam("which"))
_find = select(answers).where(_this)
_keep = update(answers).where(_this).values(status=bindparam("answered"), body=bindparam("content"))
_release = delete(answers).where(_this, answers.c.status.is_(None))
_old = (
    select(answers.c.user_id, answers.c.key)
    .where(answers.c.created_at < bindparam("before"))
    .order_by(answers.c.created_at)
    .limit(bindparam("limit"))
)


class StoredResponses(Group):
    def reserve(
        self, user: UserId, key: str, request: str, *, now: datetime
    ) -> StoredResponse | None:
        values = {"owner": user, "which": key}
        found = self.connection.execute(_find, values).one_or_none()
        if found is None:
            row = {"user_id": user, "key": key, "request": request, "created_at": now}
            if insert_unless_there(self.connection, answers, row):
                return None
            # Somebody was quicker; by now they may even have let it go.
            return self.reserve(user, key, request, now=now)
        return StoredResponse(found.request, found.status, found.body, found.created_at)

    def complete(self, user: UserId, key: str, status: int, body: str) -> None:
        values = {"owner": user, "which": key, "answered": status, "content": body}
        self.connection.execute(_keep, values)

    def release(self, user: UserId, key: str) -> None:
        self.connection.execute(_release, {"owner": user, "which": key})

    def prune(self, *, before: datetime, limit: int) -> int:
        old = self.connection.execute(_old, {"before": before, "limit": limit}).all()
        if old:
            these = tuple_(answers.c.user_id, answers.c.key).in_([tuple(row) for row in old])
            self.connection.execute(delete(answers).where(these))
        return len(old)
