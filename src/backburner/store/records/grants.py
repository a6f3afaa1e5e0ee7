"""Grants: approvals that an owner has given."""

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from sqlalchemy import Row, Text, bindparam, insert, select, tuple_, update

from backburner.core.errors import Conflict
from backburner.core.ids import ConnectionId, ConversationId, GrantId, UserId
from backburner.core.tool_policy import Grant
from backburner.ports import GrantRow, PageKey
from backburner.store.context import Group
from backburner.store.tables import grants, is_unended
from backburner.store.types import Time

_insert = insert(grants)
_select = select(grants).where(grants.c.user_id == bindparam("owner"), is_unended)
_select_of_conversation = _select.where(grants.c.conversation_id == bindparam("conversation"))
_select_by_id = _select.where(grants.c.id == bindparam("grant_id"))
select_page = _select.order_by(grants.c.given_at.desc(), grants.c.id.desc()).limit(
    bindparam("limit")
)
select_page_after = select_page.where(
    tuple_(grants.c.given_at, grants.c.id)
    < tuple_(bindparam("last_given_at", type_=Time), bindparam("last_id", type_=Text()))
)
_update = update(grants).where(
    grants.c.user_id == bindparam("owner"), grants.c.id == bindparam("grant_id"), is_unended
)
_revoke = _update.values(ended_at=bindparam("at"))
_use = _revoke.where(
    grants.c.conversation_id == bindparam("conversation"), grants.c.call.is_not(None)
)

_end_all = (
    update(grants)
    .where(
        grants.c.user_id == bindparam("owner"),
        grants.c.conversation_id == bindparam("conversation"),
        is_unended,
    )
    .values(ended_at=bindparam("at"))
)
_end_of_server = (
    update(grants)
    .where(grants.c.user_id == bindparam("owner"), grants.c.server == bindparam("of_server"))
    .where(is_unended)
    .values(ended_at=bindparam("at"))
)
_end_unused = _end_all.where(grants.c.call.is_not(None))
_end_unused_by_id = _end_unused.where(grants.c.id.in_(bindparam("grant_ids", expanding=True)))


class Grants(Group):
    def give(self, user: UserId, conversation_id: ConversationId, given: Iterable[Grant]) -> None:
        rows = [
            {
                "id": grant.id,
                "user_id": user,
                "conversation_id": conversation_id,
                "server": grant.server,
                "tool": grant.tool,
                "definition": grant.definition,
                "connection_id": grant.connection,
                "call": grant.call,
                "words": json.dumps(grant.words),
                "expires_at": grant.expires_at,
                "given_at": self.tx.now,
            }
            for grant in given
        ]
        self._write(_insert, *rows)

    def use(self, user: UserId, conversation_id: ConversationId, grant_id: GrantId) -> None:
        """Use up a grant that is for one call."""
        values = {"owner": user, "conversation": conversation_id, "grant_id": grant_id}
        if self._execute(_use, {**values, "at": self.tx.now}).rowcount != 1:
            raise Conflict("This permission has been used or taken back.")

    def end_all(self, user: UserId, conversation_id: ConversationId) -> None:
        """End all grants of a conversation, lasting ones too."""
        values = {"owner": user, "conversation": conversation_id, "at": self.tx.now}
        self._write(_end_all, values)

    def end_unused(
        self,
        user: UserId,
        conversation_id: ConversationId,
        grant_ids: Collection[GrantId] | None = None,
    ) -> None:
        """End grants of a conversation that are for one call: these, or all."""
        values = {"owner": user, "conversation": conversation_id, "at": self.tx.now}
        if grant_ids is None:
            self._write(_end_unused, values)
        else:
            self._write(_end_unused_by_id, {**values, "grant_ids": list(grant_ids)})

    def end_of_server(self, user: UserId, server: str) -> None:
        """End all grants for the tools of a connection, in every conversation."""
        values = {"owner": user, "of_server": server, "at": self.tx.now}
        self._execute(_end_of_server, values)

    def valid(self, user: UserId, conversation_id: ConversationId) -> tuple[Grant, ...]:
        values = {"owner": user, "conversation": conversation_id}
        return tuple(_to_grant(row) for row in self._execute(_select_of_conversation, values))

    def given(self, user: UserId, conversation_id: ConversationId) -> Sequence[GrantRow]:
        """Read the grants of a conversation, newest first."""
        values = {"owner": user, "conversation": conversation_id}
        rows = self._execute(_select_of_conversation, values).all()
        newest_first = sorted(rows, key=lambda row: (row.given_at, row.id), reverse=True)
        return [_to_grant_row(row) for row in newest_first]

    def revoke(self, user: UserId, grant_id: GrantId) -> None:
        self._update_one(_revoke, {"owner": user, "grant_id": grant_id, "at": self.tx.now})


class GrantQueries(Group):
    def all_grants(self, user: UserId, after: PageKey | None, *, limit: int) -> Sequence[GrantRow]:
        """Read the grants of all conversations of a user, newest first."""
        values: dict[str, Any] = {"owner": user, "limit": limit}
        statement = select_page
        if after is not None:
            statement, (values["last_given_at"], values["last_id"]) = select_page_after, after
        return [_to_grant_row(row) for row in self._execute(statement, values)]

    def grant(self, user: UserId, grant_id: GrantId) -> GrantRow:
        return _to_grant_row(self._read_one(_select_by_id, {"owner": user, "grant_id": grant_id}))


def _to_grant_row(row: Row[Any]) -> GrantRow:
    return GrantRow(_to_grant(row), ConversationId(row.conversation_id), row.given_at)


def _to_grant(row: Row[Any]) -> Grant:
    return Grant(
        id=GrantId(row.id),
        server=row.server,
        tool=row.tool,
        definition=row.definition,
        connection=row.connection_id and ConnectionId(row.connection_id),
        call=row.call,
        words=tuple(json.loads(row.words)),
        expires_at=row.expires_at,
    )
