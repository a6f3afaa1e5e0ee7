"""Credentials: sessions, tokens, links, invitations and resets, of which digests are stored."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row, bindparam, delete, insert, or_, select, update

from backburner.core.accounts import (
    CREDENTIAL_LIFETIMES,
    MAX_SESSION_LIFETIME,
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
from backburner.core.ids import UserId, new_credential_id
from backburner.ports import NewCredential
from backburner.store.channels.push_subscriptions import PushSubscriptions
from backburner.store.context import Group
from backburner.store.mapping import dump_uses, load_uses
from backburner.store.tables import credentials, users

#: How long ended and expired credentials are kept.
RETENTION = timedelta(days=30)
#: How many are checked in one statement.
_BATCH_SIZE = 500

_is_valid = (
    credentials.c.ended_at.is_(None),
    or_(credentials.c.expires_at.is_(None), credentials.c.expires_at > bindparam("at")),
)
_is_reusable = credentials.c.kind.in_([kind.value for kind in REUSABLE_CREDENTIALS])
_select_valid = (
    select(credentials, users.c.role)
    .join(users, users.c.id == credentials.c.user_id)
    .where(*_is_valid, users.c.disabled_at.is_(None))
)
_identify = _select_valid.where(credentials.c.digest == bindparam("digest"), _is_reusable)
_find = _select_valid.where(
    credentials.c.user_id == bindparam("owner"),
    credentials.c.id == bindparam("credential_id"),
    _is_reusable,
)
_select_still_valid = _select_valid.with_only_columns(credentials.c.id).where(
    credentials.c.user_id.in_(bindparam("user_ids", expanding=True)),
    credentials.c.id.in_(bindparam("credential_ids", expanding=True)),
    _is_reusable,
)
_look_up = _select_valid.where(
    credentials.c.digest == bindparam("digest"), credentials.c.kind == bindparam("kind")
)
_record_use = (
    update(credentials)
    .where(credentials.c.digest == bindparam("of_digest"))
    .values(used_at=bindparam("at"), expires_at=bindparam("until"))
)
_insert = insert(credentials)
_use_up = (
    update(credentials)
    .where(
        credentials.c.digest == bindparam("of_digest"),
        credentials.c.kind == bindparam("of_kind"),
        *_is_valid,
    )
    .values(used_at=bindparam("at"), ended_at=bindparam("at"))
)
_select_page = (
    select(credentials)
    .where(
        credentials.c.user_id == bindparam("owner"),
        credentials.c.id > bindparam("after"),
        credentials.c.kind == bindparam("kind"),
        *_is_valid,
    )
    .order_by(credentials.c.id)
    .limit(bindparam("limit"))
)
_end = (
    update(credentials)
    .where(
        credentials.c.user_id == bindparam("owner"),
        credentials.c.id == bindparam("credential_id"),
        credentials.c.kind == bindparam("of_kind"),
        *_is_valid,
    )
    .values(ended_at=bindparam("at"))
)
_end_all = (
    update(credentials)
    .where(
        credentials.c.user_id == bindparam("owner"),
        credentials.c.kind.in_(bindparam("kinds", expanding=True)),
        credentials.c.ended_at.is_(None),
    )
    .values(ended_at=bindparam("at"))
)
_end_named = _end_all.where(
    credentials.c.name == bindparam("of_name"), credentials.c.id != bindparam("kept_id")
)
_operators = select(users.c.id).where(
    users.c.role == Role.OPERATOR.value, users.c.disabled_at.is_(None)
)
#: Only operators have valid invitations.
_is_invitation = (
    credentials.c.user_id.in_(_operators),
    credentials.c.kind == CredentialKind.INVITATION.value,
    *_is_valid,
)
_select_invitations = (
    select(credentials)
    .where(credentials.c.id > bindparam("after"), *_is_invitation)
    .order_by(credentials.c.id)
    .limit(bindparam("limit"))
)
_end_invitation = (
    update(credentials)
    .where(credentials.c.id == bindparam("credential_id"), *_is_invitation)
    .values(ended_at=bindparam("at"))
)
_delete_old = delete(credentials).where(
    credentials.c.user_id == bindparam("owner"),
    or_(
        credentials.c.ended_at < bindparam("before"), credentials.c.expires_at < bindparam("before")
    ),
)


class Credentials(Group):
    def identify(self, digest: str, *, now: datetime) -> tuple[Caller, bool] | None:
        row = self._execute(_identify, {"digest": digest, "at": now}).one_or_none()
        if row is None:
            return None
        # Not with each use: that would be a write for every request.
        is_stale = row.used_at is None or now - row.used_at >= USE_RECORD_INTERVAL
        return _to_caller(row), is_stale

    def record_use(self, digest: str, *, now: datetime) -> None:
        # Read again: it may have been revoked.
        row = self._execute(_identify, {"digest": digest, "at": now}).one_or_none()
        if row is not None:
            self._record_use(row, now)

    def find(self, user: UserId, credential: str, *, now: datetime) -> tuple[Caller, str] | None:
        values = {"owner": user, "credential_id": credential, "at": now}
        row = self._execute(_find, values).one_or_none()
        return (_to_caller(row), row.digest) if row else None

    def valid(self, held: Collection[tuple[UserId, str]], *, now: datetime) -> frozenset[str]:
        valid = set[str]()
        ordered = sorted(held)
        for start in range(0, len(ordered), _BATCH_SIZE):
            user_ids, credential_ids = zip(*ordered[start : start + _BATCH_SIZE], strict=True)
            values = {"user_ids": user_ids, "credential_ids": credential_ids, "at": now}
            valid.update(self._execute(_select_still_valid, values).scalars())
        return frozenset(valid)

    def issue(self, user: UserId, digest: str, new: NewCredential, *, now: datetime) -> str:
        self._execute(_delete_old, {"owner": user, "before": now - RETENTION})
        credential_id = new_credential_id()
        values = {
            "digest": digest,
            "id": credential_id,
            "user_id": user,
            "kind": new.kind.value,
            "name": new.name,
            "scopes": " ".join(sorted(new.scopes)),
            "uses": dump_uses(new.uses),
            "connections": " ".join(sorted(new.connections)),
            "created_at": now,
            "expires_at": new.expires_at,
            "device": new.device,
        }
        self._execute(_insert, values)
        return credential_id

    def peek(
        self, digest: str, kind: CredentialKind, *, now: datetime
    ) -> tuple[UserId, frozenset[Scope]] | None:
        values = {"digest": digest, "kind": kind.value, "at": now}
        row = self._execute(_look_up, values).one_or_none()
        return (UserId(row.user_id), _read_scopes(row)) if row else None

    def consume(self, digest: str, kind: CredentialKind, *, now: datetime) -> bool:
        values = {"of_digest": digest, "of_kind": kind.value, "at": now}
        return self._execute(_use_up, values).rowcount == 1

    def page(
        self, user: UserId, kind: CredentialKind, *, after: str = "", limit: int, now: datetime
    ) -> Sequence[Credential]:
        values = {"owner": user, "kind": kind.value, "after": after, "limit": limit, "at": now}
        return [_to_credential(row) for row in self._execute(_select_page, values)]

    def revoke(self, user: UserId, credential: str, kind: CredentialKind, *, now: datetime) -> None:
        values = {"owner": user, "credential_id": credential, "of_kind": kind.value, "at": now}
        self._update_one(_end, values)
        if kind is CredentialKind.SESSION:
            PushSubscriptions(self.tx).remove_of_session(user, credential)

    def revoke_all(self, user: UserId, kinds: Iterable[CredentialKind], *, now: datetime) -> None:
        ended = [kind.value for kind in kinds]
        self._execute(_end_all, {"owner": user, "kinds": ended, "at": now})
        if CredentialKind.SESSION.value in ended:
            PushSubscriptions(self.tx).remove_all(user)

    def revoke_named(self, user: UserId, name: str, *, kept_id: str, now: datetime) -> None:
        """Revoke the tokens of a name but one."""
        values = {"owner": user, "kinds": [CredentialKind.TOKEN.value], "at": now}
        self._execute(_end_named, {**values, "of_name": name, "kept_id": kept_id})

    def invitations(self, *, after: str = "", limit: int, now: datetime) -> Sequence[Invitation]:
        values = {"after": after, "limit": limit, "at": now}
        return [_to_invitation(row) for row in self._execute(_select_invitations, values)]

    def revoke_invitation(self, invitation: str, *, now: datetime) -> None:
        self._update_one(_end_invitation, {"credential_id": invitation, "at": now})

    def _record_use(self, row: Row[Any], now: datetime) -> None:
        """Record the time of use; a session is also extended, up to its maximum lifetime."""
        until = row.expires_at
        if row.kind == CredentialKind.SESSION.value:
            extended = now + CREDENTIAL_LIFETIMES[CredentialKind.SESSION]
            until = min(extended, row.created_at + MAX_SESSION_LIFETIME)
        self._execute(_record_use, {"of_digest": row.digest, "at": now, "until": until})


def _read_scopes(row: Row[Any]) -> frozenset[Scope]:
    return frozenset(Scope(name) for name in row.scopes.split())


def _to_caller(row: Row[Any]) -> Caller:
    return Caller(
        user=UserId(row.user_id),
        role=Role(row.role),
        scopes=_read_scopes(row),
        credential=row.id,
        kind=CredentialKind(row.kind),
        name=row.name,
        uses=load_uses(row.uses),
        connections=frozenset(row.connections.split()),
    )


def _to_credential(row: Row[Any]) -> Credential:
    return Credential(
        id=row.id,
        kind=CredentialKind(row.kind),
        name=row.name,
        scopes=_read_scopes(row),
        uses=load_uses(row.uses),
        connections=frozenset(row.connections.split()),
        created_at=row.created_at,
        expires_at=row.expires_at,
        used_at=row.used_at,
        device=row.device,
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
