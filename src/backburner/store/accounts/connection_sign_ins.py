"""Sign-ins to servers that were started, and the leases of those who renew tokens."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row, and_, bindparam, delete, select, update

from backburner.core.ids import ConnectionId, UserId
from backburner.ports import LeaseState, StartedSignIn
from backburner.store.context import Group
from backburner.store.dialect import upsert
from backburner.store.tables import started_sign_ins, token_leases

_started = and_(
    started_sign_ins.c.user_id == bindparam("owner"),
    started_sign_ins.c.connection_id == bindparam("of_connection"),
)
_by_digest = select(started_sign_ins).where(
    started_sign_ins.c.user_id == bindparam("owner"),
    started_sign_ins.c.digest == bindparam("state_digest"),
)
_of_connection = select(started_sign_ins).where(_started)
_mark_arrived = update(started_sign_ins).where(_started).values(arrived=True)
_remove = delete(started_sign_ins).where(_started)
_expired = (
    select(started_sign_ins.c.user_id, started_sign_ins.c.connection_id)
    .where(started_sign_ins.c.expires_at <= bindparam("before"))
    .limit(bindparam("limit"))
)
_lease = and_(
    token_leases.c.user_id == bindparam("owner"),
    token_leases.c.connection_id == bindparam("of_connection"),
)
_holder = select(token_leases).where(_lease)
_release = delete(token_leases).where(_lease, token_leases.c.holder == bindparam("held_by"))


class StartedSignIns(Group):
    def put(self, user: UserId, started: StartedSignIn) -> None:
        row = {
            "user_id": user,
            "connection_id": started.connection_id,
            "digest": started.digest,
            "session": started.session,
            "command": started.command,
            "arrived": started.arrived,
            "expires_at": started.expires_at,
        }
        upsert(self.connection, started_sign_ins, row)

    def find(self, user: UserId, connection_id: ConnectionId) -> StartedSignIn | None:
        row = self._execute(_of_connection, _key(user, connection_id)).one_or_none()
        return None if row is None else _to_started(row)

    def find_by_digest(self, user: UserId, digest: str) -> StartedSignIn | None:
        values = {"owner": user, "state_digest": digest}
        row = self._execute(_by_digest, values).one_or_none()
        return None if row is None else _to_started(row)

    def mark_arrived(self, user: UserId, connection_id: ConnectionId) -> None:
        self._update_one(_mark_arrived, _key(user, connection_id))

    def remove(self, user: UserId, connection_id: ConnectionId) -> None:
        self._execute(_remove, _key(user, connection_id))

    def expired(self, *, before: datetime, limit: int) -> Sequence[tuple[UserId, ConnectionId]]:
        rows = self._execute(_expired, {"before": before, "limit": limit})
        return [(UserId(row.user_id), ConnectionId(row.connection_id)) for row in rows]


class TokenLeases(Group):
    def take(
        self, user: UserId, connection_id: ConnectionId, holder: str, *, lease: timedelta
    ) -> LeaseState:
        now = self.tx.now
        row = self._execute(_holder, _key(user, connection_id)).one_or_none()
        # A lease that would end later than any is from before a clock was set back.
        if row is not None and now < row.leased_until <= now + lease:
            return LeaseState.HELD
        values = {"user_id": user, "connection_id": connection_id, "holder": holder}
        upsert(self.connection, token_leases, {**values, "leased_until": now + lease})
        return LeaseState.TAKEN if row is None else LeaseState.TAKEN_OVER

    def release(self, user: UserId, connection_id: ConnectionId, holder: str) -> bool:
        values = {**_key(user, connection_id), "held_by": holder}
        return self._execute(_release, values).rowcount == 1


def _key(user: UserId, connection_id: ConnectionId) -> dict[str, Any]:
    return {"owner": user, "of_connection": connection_id}


def _to_started(row: Row[Any]) -> StartedSignIn:
    return StartedSignIn(
        connection_id=ConnectionId(row.connection_id),
        digest=row.digest,
        session=row.session,
        command=row.command,
        arrived=row.arrived,
        expires_at=row.expires_at,
    )
