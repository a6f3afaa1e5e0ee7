"""Accounts and what they sign in with. Of secrets only digests are kept."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, insert, or_, select

from backburner.core.accounts import LASTING, Caller, CredentialKind, Role, Scope
from backburner.core.ids import UserId, new_credential_id
from backburner.store.tables import credentials, users

_identify = (
    select(credentials, users.c.role)
    .join(users, users.c.id == credentials.c.user_id)
    .where(
        credentials.c.digest == bindparam("shown"),
        credentials.c.kind.in_([kind.value for kind in LASTING]),
        credentials.c.ended_at.is_(None),
        or_(credentials.c.expires_at.is_(None), credentials.c.expires_at > bindparam("at")),
        users.c.disabled_at.is_(None),
    )
)
_insert = insert(credentials)


@dataclass(frozen=True, slots=True)
class Accounts:
    connection: Connection

    def identify(self, digest: str, *, now: datetime) -> Caller | None:
        row = self.connection.execute(_identify, {"shown": digest, "at": now}).one_or_none()
        if row is None:
            return None
        return Caller(
            user=UserId(row.user_id),
            role=Role(row.role),
            scopes=frozenset(Scope(name) for name in row.scopes.split()),
            credential=row.id,
            kind=CredentialKind(row.kind),
        )

    def issue(
        self,
        user: UserId,
        digest: str,
        kind: CredentialKind,
        scopes: Iterable[Scope],
        *,
        name: str = "",
        expires_at: datetime | None = None,
        now: datetime,
    ) -> str:
        made = new_credential_id()
        values = {
            "digest": digest,
            "id": made,
            "user_id": user,
            "kind": kind.value,
            "name": name,
            "scopes": " ".join(sorted(scopes)),
            "created_at": now,
            "expires_at": expires_at,
        }
        self.connection.execute(_insert, values)
        return made
