"""What people are let in with. Of secrets only digests are kept."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row, Select, bindparam, delete, insert, or_, select, update

from backburner.core.accounts import (
    CREDENTIAL_LIFETIMES,
    REUSABLE_CREDENTIALS,
    USE_RECORD_INTERVAL,
    Caller,
    Credential,
    CredentialKind,
    Invitation,
    Role,
    Scope,
    role_of,
)
from backburner.core.errors import NotFound
from backburner.core.ids import UserId, new_credential_id
from backburner.store.context import Group
from backburner.store.tables import credentials, users

#: Those that are good no longer are kept so long, for whoever wonders.
KEPT_FOR = timedelta(days=30)
#: How many are asked about at once.
_MANY = 500

_is_good = (
    credentials.c.ended_at.is_(None),
    or_(credentials.c.expires_at.is_(None), credentials.c.expires_at > bindparam("at")),
)
_lasting = credentials.c.kind.in_([kind.value for kind in REUSABLE_CREDENTIALS])
_of_somebody = (
    select(credentials, users.c.role)
    .join(users, users.c.id == credentials.c.user_id)
    .where(*_is_good, users.c.disabled_at.is_(None))
)
_identify = _of_somebody.where(credentials.c.digest == bindparam("shown"), _lasting)
_still_good = _of_somebody.with_only_columns(credentials.c.id).where(
    credentials.c.user_id.in_(bindparam("owners", expanding=True)),
    credentials.c.id.in_(bindparam("which", expanding=True)),
    _lasting,
)
_look_up = _of_somebody.where(
    credentials.c.digest == bindparam("shown"), credentials.c.kind == bindparam("of_kind")
)
_note_use = (
    update(credentials)
    .where(credentials.c.digest == bindparam("shown"))
    .values(used_at=bindparam("at"), expires_at=bindparam("until"))
)
_insert = insert(credentials)
_use_up = (
    update(credentials)
    .where(
        credentials.c.digest == bindparam("shown"),
        credentials.c.kind == bindparam("of_kind"),
        *_is_good,
    )
    .values(used_at=bindparam("at"), ended_at=bindparam("at"))
)
_all = (
    select(credentials)
    .where(
        credentials.c.user_id == bindparam("user"),
        credentials.c.id > bindparam("after"),
        credentials.c.kind == bindparam("of_kind"),
        *_is_good,
    )
    .order_by(credentials.c.id)
    .limit(bindparam("limit"))
)
_end = (
    update(credentials)
    .where(
        credentials.c.user_id == bindparam("user"),
        credentials.c.id == bindparam("which"),
        credentials.c.kind == bindparam("of_kind"),
        *_is_good,
    )
    .values(ended_at=bindparam("at"))
)
_end_all = (
    update(credentials)
    .where(
        credentials.c.user_id == bindparam("user"),
        credentials.c.kind.in_(bindparam("kinds", expanding=True)),
        credentials.c.ended_at.is_(None),
    )
    .values(ended_at=bindparam("at"))
)
_end_named = _end_all.where(credentials.c.name == bindparam("named"))
_operators = select(users.c.id).where(
    users.c.role == Role.OPERATOR.value, users.c.disabled_at.is_(None)
)
#: Whoever is no operator any longer has none that is good, so these are all there are.
_is_invitation = (
    credentials.c.user_id.in_(_operators),
    credentials.c.kind == CredentialKind.INVITATION.value,
    *_is_good,
)
_invitations = (
    select(credentials)
    .where(credentials.c.id > bindparam("after"), *_is_invitation)
    .order_by(credentials.c.id)
    .limit(bindparam("limit"))
)
_end_invitation = (
    update(credentials)
    .where(credentials.c.id == bindparam("which"), *_is_invitation)
    .values(ended_at=bindparam("at"))
)
_clear_away = delete(credentials).where(
    credentials.c.user_id == bindparam("user"),
    or_(
        credentials.c.ended_at < bindparam("before"),
        credentials.c.expires_at < bindparam("before"),
    ),
)


class Credentials(Group):
    def identify(self, digest: str, *, now: datetime) -> Caller | None:
        row = self._find(_identify, {"shown": digest, "at": now})
        if row is None:
            return None
        if row.used_at is None or now - row.used_at >= USE_RECORD_INTERVAL:
            self._note_use(row, now)
        return Caller(
            user=UserId(row.user_id),
            role=Role(row.role),
            scopes=_read_scopes(row),
            credential=row.id,
            kind=CredentialKind(row.kind),
            expires_at=row.expires_at,
        )

    def still_good(self, held: Collection[tuple[UserId, str]], *, now: datetime) -> frozenset[str]:
        good = set[str]()
        ordered = sorted(held)
        for start in range(0, len(ordered), _MANY):
            some = ordered[start : start + _MANY]
            values = {"owners": [user for user, _ in some], "which": [one for _, one in some]}
            good.update(self._execute(_still_good, {**values, "at": now}).scalars())
        return frozenset(good)

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
        self._execute(_clear_away, {"user": user, "before": now - KEPT_FOR})
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
        self._execute(_insert, values)
        return made

    def look_up(
        self, digest: str, kind: CredentialKind, *, now: datetime
    ) -> tuple[UserId, frozenset[Scope]] | None:
        row = self._find(_look_up, {"shown": digest, "of_kind": kind.value, "at": now})
        return (UserId(row.user_id), _read_scopes(row)) if row else None

    def use_up(self, digest: str, kind: CredentialKind, *, now: datetime) -> bool:
        values = {"shown": digest, "of_kind": kind.value, "at": now}
        return self._execute(_use_up, values).rowcount == 1

    def all(
        self, user: UserId, kind: CredentialKind, *, after: str = "", limit: int, now: datetime
    ) -> Sequence[Credential]:
        values = {"user": user, "of_kind": kind.value, "after": after, "limit": limit, "at": now}
        return [_to_credential(row) for row in self._execute(_all, values)]

    def end(self, user: UserId, credential: str, kind: CredentialKind, *, now: datetime) -> None:
        values = {"user": user, "which": credential, "of_kind": kind.value, "at": now}
        if self._execute(_end, values).rowcount != 1:
            raise NotFound

    def end_all(
        self, user: UserId, kinds: Iterable[CredentialKind], *, name: str = "", now: datetime
    ) -> None:
        values = {"user": user, "kinds": [kind.value for kind in kinds], "at": now}
        if name:
            self._execute(_end_named, values | {"named": name})
        else:
            self._execute(_end_all, values)

    def invitations(self, *, after: str = "", limit: int, now: datetime) -> Sequence[Invitation]:
        values = {"after": after, "limit": limit, "at": now}
        return [_to_invitation(row) for row in self._execute(_invitations, values)]

    def end_invitation(self, invitation: str, *, now: datetime) -> None:
        values = {"which": invitation, "at": now}
        if self._execute(_end_invitation, values).rowcount != 1:
            raise NotFound

    def _find(self, statement: Select[Any], values: dict[str, Any]) -> Row[Any] | None:
        return self._execute(statement, values).one_or_none()

    def _note_use(self, row: Row[Any], now: datetime) -> None:
        slides = row.kind == CredentialKind.SESSION.value
        until = now + CREDENTIAL_LIFETIMES[CredentialKind.SESSION] if slides else row.expires_at
        self._execute(_note_use, {"shown": row.digest, "at": now, "until": until})


def _read_scopes(row: Row[Any]) -> frozenset[Scope]:
    return frozenset(Scope(name) for name in row.scopes.split())


def _to_credential(row: Row[Any]) -> Credential:
    return Credential(
        id=row.id,
        kind=CredentialKind(row.kind),
        name=row.name,
        scopes=_read_scopes(row),
        created_at=row.created_at,
        expires_at=row.expires_at,
        used_at=row.used_at,
    )


def _to_invitation(row: Row[Any]) -> Invitation:
    return Invitation(
        id=row.id,
        name=row.name,
        role=role_of(_read_scopes(row)),
        made_by=UserId(row.user_id),
        created_at=row.created_at,
        expires_at=row.expires_at,
    )
