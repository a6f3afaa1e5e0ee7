"""Grants: what an owner said yes to."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Row, Text, bindparam, insert, select, tuple_, update

from backburner.core.errors import Conflict, NotFound
from backburner.core.ids import ConversationId, GrantId, UserId
from backburner.core.tool_policy import Grant
from backburner.ports import GrantRow, Hint, HintKind, PageKey
from backburner.store.context import Group
from backburner.store.tables import grants, is_good
from backburner.store.types import Time

_insert = insert(grants)
_good = select(grants).where(grants.c.user_id == bindparam("owner"), is_good)
_valid = _good.where(grants.c.conversation_id == bindparam("conversation"))
_one = _good.where(grants.c.id == bindparam("which"))
_newest = grants.c.given_at.desc(), grants.c.id.desc()
page_of_all = _good.order_by(*_newest).limit(bindparam("limit"))
page_after = page_of_all.where(
    tuple_(grants.c.given_at, grants.c.id)
    < tuple_(bindparam("last_at", type_=Time), bindparam("last", type_=Text()))
)
_change = update(grants).where(
    grants.c.user_id == bindparam("owner"), grants.c.id == bindparam("which"), is_good
)
_revoke = _change.values(ended_at=bindparam("at"))
_hold_to = _change.values(words=bindparam("begins"))
_use = (
    update(grants)
    .where(
        grants.c.user_id == bindparam("owner"),
        grants.c.conversation_id == bindparam("conversation"),
        grants.c.id == bindparam("which"),
        grants.c.call.is_not(None),
        is_good,
    )
    .values(ended_at=bindparam("at"))
)


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
                "call": grant.call,
                "words": json.dumps(grant.words),
                "whole": grant.whole,
                "expires_at": grant.expires_at,
                "given_at": self.tx.now,
            }
            for grant in given
        ]
        if rows:
            self.connection.execute(_insert, rows)

    def use(self, user: UserId, conversation_id: ConversationId, grant_id: GrantId) -> None:
        """Use up a grant that is for one call."""
        values = {
            "owner": user,
            "conversation": conversation_id,
            "which": grant_id,
            "at": self.tx.now,
        }
        if self.connection.execute(_use, values).rowcount != 1:
            raise Conflict("This permission has been used or taken back.")

    def valid(self, user: UserId, conversation_id: ConversationId) -> tuple[Grant, ...]:
        found = self.connection.execute(_valid, {"owner": user, "conversation": conversation_id})
        return tuple(_read(row) for row in found)

    def given(self, user: UserId, conversation_id: ConversationId) -> Sequence[GrantRow]:
        """Read the grants of a conversation with the time of each, newest first."""
        found = self.connection.execute(
            _valid, {"owner": user, "conversation": conversation_id}
        ).all()
        newest_first = sorted(found, key=lambda row: (row.given_at, row.id), reverse=True)
        return [_given(row) for row in newest_first]

    def narrow(self, user: UserId, grant: Grant) -> None:
        """Hold a grant to the words that it now has."""
        values = {"owner": user, "which": grant.id, "begins": json.dumps(grant.words)}
        if self.connection.execute(_hold_to, values).rowcount != 1:
            raise NotFound
        self.tx.hint(Hint(HintKind.CHANGED, user))

    def revoke(self, user: UserId, grant_id: GrantId) -> None:
        """Take a grant back: the next call that would need it is asked about."""
        done = self.connection.execute(
            _revoke, {"owner": user, "which": grant_id, "at": self.tx.now}
        )
        if done.rowcount != 1:
            raise NotFound


class GrantQueries(Group):
    def all_grants(self, user: UserId, after: PageKey | None, *, limit: int) -> Sequence[GrantRow]:
        """Read all that is allowed, wherever, newest first."""
        values: dict[str, Any] = {"owner": user, "limit": limit}
        asked = page_of_all
        if after is not None:
            asked, (values["last_at"], values["last"]) = page_after, after
        return [_given(row) for row in self.connection.execute(asked, values)]

    def grant(self, user: UserId, grant_id: GrantId) -> GrantRow:
        row = self.connection.execute(_one, {"owner": user, "which": grant_id}).one_or_none()
        if row is None:
            raise NotFound
        return _given(row)


def _given(row: Row[Any]) -> GrantRow:
    return GrantRow(_read(row), ConversationId(row.conversation_id), row.given_at)


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
