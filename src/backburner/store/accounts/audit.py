"""The record of administrative acts. It outlives the users it names."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, bindparam, insert, select

from backburner.core.accounts import Act, AuditEntry
from backburner.core.ids import UserId, new_audit_id
from backburner.store.context import Group
from backburner.store.tables import audit

_insert = insert(audit)
_select_page = (
    select(audit)
    .where(audit.c.id < bindparam("before"))
    .order_by(audit.c.id.desc())
    .limit(bindparam("limit"))
)
_select_of_user = (
    select(audit)
    .where(audit.c.user_id == bindparam("owner"), audit.c.actor != bindparam("owner"))
    .order_by(audit.c.id.desc())
    .limit(bindparam("limit"))
)
#: Comes after every id.
_END = "~"


class Audit(Group):
    def record(
        self, act: Act, *, actor: UserId, user: UserId | None = None, detail: str = ""
    ) -> None:
        row = {"id": new_audit_id(), "at": self.tx.now, "actor": actor, "act": act.value}
        self._execute(_insert, [{**row, "user_id": user, "detail": detail}])

    def page(self, *, before: str = "", limit: int) -> Sequence[AuditEntry]:
        rows = self._execute(_select_page, {"before": before or _END, "limit": limit})
        return [_to_entry(row) for row in rows]

    def of_user(self, user: UserId, *, limit: int) -> Sequence[AuditEntry]:
        rows = self._execute(_select_of_user, {"owner": user, "limit": limit})
        return [_to_entry(row) for row in rows]


def _to_entry(row: Row[Any]) -> AuditEntry:
    return AuditEntry(
        id=row.id,
        at=row.at,
        actor=UserId(row.actor),
        act=Act(row.act),
        user=None if row.user_id is None else UserId(row.user_id),
        detail=row.detail,
    )
