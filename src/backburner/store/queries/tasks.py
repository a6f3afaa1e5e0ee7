"""A user's tasks: which count as active, how they are found by name, and what their runs cost."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    Integer,
    Select,
    Text,
    and_,
    bindparam,
    case,
    func,
    or_,
    select,
    text,
)

from backburner.core.allowance import Amount, Cost
from backburner.core.conversation import Conversation, EndedAs, Kind, PauseReason
from backburner.core.ids import ConversationId, UserId
from backburner.core.run import RunKind, RunStatus
from backburner.core.work.proposal import RejectedProposal
from backburner.store.context import Group
from backburner.store.mapping import load
from backburner.store.queries.conversations import ConversationQueries
from backburner.store.queries.view_filters import is_proposed, was_proposed
from backburner.store.tables import conversations, runs, spend
from backburner.store.types import Time

_owner = bindparam("owner", type_=Text())
_which = bindparam("which", type_=Text())
_since = bindparam("since", type_=Time)
_most = bindparam("limit", type_=Integer())
#: The beginning of an id, with its letter or without; and the last of all ids.
_BEGINNING = re.compile(r"(?:c_)?([0-9a-z]{1,26})")
_LAST = "z" * 26

_newest_first = (conversations.c.created_at.desc(), conversations.c.id.desc())
_has_work = and_(
    conversations.c.user_id == _owner,
    or_(conversations.c.kind == Kind.TASK.value, conversations.c.kind == Kind.CHAT.value),
    conversations.c.schedule.is_not(None),
)
# What stands still for an allowance goes on by itself once there is more to spend.
_goes_on = or_(
    conversations.c.pause_reason.is_(None),
    conversations.c.pause_reason == PauseReason.ALLOWANCE.value,
)
active = (
    select(conversations.c.id, conversations.c.title)
    .where(_has_work, _goes_on, ~is_proposed)
    .order_by(conversations.c.created_at, conversations.c.id)
)
open_ones = select(conversations).where(_has_work).order_by(*_newest_first).limit(_most)
_of_tasks = select(conversations).where(
    conversations.c.user_id == _owner, conversations.c.kind == text("'task'")
)
titled = _of_tasks.where(conversations.c.title == _which).order_by(*_newest_first).limit(_most)
beginning = (
    _of_tasks.where(conversations.c.id >= _which, conversations.c.id <= bindparam("last"))
    .order_by(conversations.c.id)
    .limit(_most)
)
proposed = select(func.count()).where(
    conversations.c.user_id == _owner,
    conversations.c.parent_id == _which,
    conversations.c.kind == Kind.TASK.value,
    conversations.c.created_at >= _since,
    was_proposed.exists(),
)
dismissed = select(conversations.c.title, conversations.c.context, conversations.c.ended_at).where(
    conversations.c.user_id == _owner,
    conversations.c.ended_as == text(f"'{EndedAs.DISMISSED.value}'"),
    conversations.c.ended_at > _since,
)


def _costs(which_runs: Select[Any]) -> Select[Any]:
    """Add up what each of some runs cost; one that asked no model cost nothing."""
    chosen = which_runs.limit(_most).subquery()
    return (
        select(
            func.coalesce(func.sum(spend.c.micros), 0).label("micros"),
            func.coalesce(func.sum(spend.c.tokens), 0).label("tokens"),
            func.min(case((~spend.c.priced, 0), else_=1)).label("priced"),
        )
        .join_from(
            chosen,
            spend,
            and_(spend.c.user_id == _owner, spend.c.run_id == chosen.c.id),
            isouter=True,
        )
        .group_by(chosen.c.id)
    )


_settled = or_(runs.c.status == RunStatus.SUCCESS.value, runs.c.status == RunStatus.FAILURE.value)
_in_background = and_(runs.c.user_id == _owner, runs.c.kind == RunKind.BACKGROUND.value, _settled)
costs = _costs(
    select(runs.c.id)
    .where(_in_background, runs.c.conversation_id == _which)
    .order_by(runs.c.started_at.desc())
)
costs_under = _costs(
    select(runs.c.id)
    .where(_in_background, runs.c.profile == _which, runs.c.ended_at > _since)
    .order_by(runs.c.ended_at.desc())
)


class Tasks(Group):
    def active(self, user: UserId) -> Sequence[tuple[ConversationId, str]]:
        rows = self._execute(active, {"owner": user})
        return [(ConversationId(row.id), row.title) for row in rows]

    def open(self, user: UserId, *, limit: int) -> Sequence[Conversation]:
        return self._read(open_ones, user, limit=limit)

    def called(self, user: UserId, name: str, *, limit: int) -> Sequence[Conversation]:
        found = self._read(titled, user, limit=limit, which=name)
        begins = _BEGINNING.fullmatch(name)
        if found or begins is None:
            return found
        first = f"c_{begins[1]}"
        last = first + _LAST[len(begins[1]) :]
        return self._read(beginning, user, limit=limit, which=first, last=last)

    def count_proposed(self, user: UserId, parent: ConversationId, *, since: datetime) -> int:
        values = {"owner": user, "which": parent, "since": since}
        return int(self._execute(proposed, values).scalar_one())

    def dismissed(self, user: UserId, *, since: datetime) -> Sequence[RejectedProposal]:
        rows = self._execute(dismissed, {"owner": user, "since": since})
        return [
            RejectedProposal(row.title, str(load(row.context).get("prompt", "")), row.ended_at)
            for row in rows
        ]

    def costs(self, user: UserId, conversation_id: ConversationId, *, limit: int) -> Sequence[Cost]:
        return self._costs(costs, owner=user, which=conversation_id, limit=limit)

    def costs_under(
        self, user: UserId, profile: str, *, since: datetime, limit: int
    ) -> Sequence[Cost]:
        return self._costs(costs_under, owner=user, which=profile, since=since, limit=limit)

    def _read(self, asked: Select[Any], user: UserId, **values: Any) -> Sequence[Conversation]:
        rows = self._execute(asked, {"owner": user, **values}).all()
        return [seen.conversation for seen in ConversationQueries(self.tx).read(rows)]

    def _costs(self, asked: Select[Any], **values: Any) -> Sequence[Cost]:
        return [
            Cost(Amount(int(row.micros), int(row.tokens)), priced=bool(row.priced))
            for row in self._execute(asked, values)
        ]
