"""Grants: what an owner said yes to."""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, bindparam, insert, select, update

from backburner.core.errors import Conflict, NotFound
from backburner.core.ids import ConversationId, GrantId, UserId
from backburner.core.policy import Grant
from backburner.ports import Given
from backburner.store.tables import grants

_insert = insert(grants)
_valid = select(grants).where(
    grants.c.user_id == bindparam("owner"),
    grants.c.conversation_id == bindparam("conversation"),
    grants.c.ended_at.is_(None),
)
_revoke = (
    update(grants)
    .where(
        grants.c.user_id == bindparam("owner"),
        grants.c.id == bindparam("which"),
        grants.c.ended_at.is_(None),
    )
    .values(ended_at=bindparam("at"))
)
_use = (
    update(grants)
    .where(
        grants.c.user_id == bindparam("owner"),
        grants.c.conversation_id == bindparam("conversation"),
        grants.c.id == bindparam("which"),
        grants.c.call.is_not(None),
        grants.c.ended_at.is_(None),
    )
    .values(ended_at=bindparam("at"))
)


def give(
    connection: Connection,
    user: UserId,
    conversation: ConversationId,
    given: Iterable[Grant],
    *,
    now: datetime,
) -> None:
    rows = [
        {
            "id": grant.id,
            "user_id": user,
            "conversation_id": conversation,
            "server": grant.server,
            "tool": grant.tool,
            "definition": grant.definition,
            "call": grant.call,
            "words": json.dumps(grant.words),
            "whole": grant.whole,
            "expires_at": grant.expires_at,
            "given_at": now,
        }
        for grant in given
    ]
    if rows:
        connection.execute(_insert, rows)


def use(
    connection: Connection,
    user: UserId,
    conversation: ConversationId,
    which: GrantId,
    *,
    now: datetime,
) -> None:
    """Use up a grant that is for one call."""
    values = {"owner": user, "conversation": conversation, "which": which, "at": now}
    if connection.execute(_use, values).rowcount != 1:
        raise Conflict("This permission has been used or taken back.")


def valid(connection: Connection, user: UserId, conversation: ConversationId) -> tuple[Grant, ...]:
    found = connection.execute(_valid, {"owner": user, "conversation": conversation})
    return tuple(_read(row) for row in found)


def given(connection: Connection, user: UserId, conversation: ConversationId) -> Sequence[Given]:
    """Read what is allowed in a conversation, with the time when that was said, newest first."""
    found = connection.execute(_valid, {"owner": user, "conversation": conversation}).all()
    newest_first = sorted(found, key=lambda row: (row.given_at, row.id), reverse=True)
    return [Given(_read(row), conversation, row.given_at) for row in newest_first]


def revoke(connection: Connection, user: UserId, which: GrantId, *, now: datetime) -> None:
    """Take a grant back: the next call that would need it is asked about."""
    done = connection.execute(_revoke, {"owner": user, "which": which, "at": now})
    if done.rowcount != 1:
        raise NotFound


def _read(row: Row[Any]) -> Grant:
    return Grant(
        id=GrantId(row.id),
        server=row.server,
        tool=row.tool,
        definition=row.definition,
        call=row.call,
        words=tuple(json.loads(row.words)),
        whole=row.whole,
        expires_at=row.expires_at,
    )
