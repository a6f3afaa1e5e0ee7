"""Tasks: the active and open ones, lookup by name, proposals, and the costs of their runs."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Integer, Select, Text, and_, bindparam, case, func, or_, select, text

from backburner.core.allowance import Amount, Cost
from backburner.core.conversation import PASSING_PAUSES, Conversation, EndedAs, Kind
from backburner.core.ids import ConversationId, UserId
from backburner.core.run import RunKind, RunStatus
from backburner.core.work.proposal import RejectedProposal
from backburner.ports import PlannedWork
from backburner.store.context import Group
from backburner.store.mapping import load
from backburner.store.queries.conversations import ConversationQueries
from backburner.store.queries.view_filters import is_proposed, was_proposed
from backburner.store.tables import conversations, is_shown, runs, spend
from backburner.store.types import Time

_owner = bindparam("owner", type_=Text())
_conversation_id = bindparam("conversation_id", type_=Text())
_since = bindparam("since", type_=Time)
_limit = bindparam("limit", type_=Integer())
#: The prefix of an id, with or without "c_"; and the last possible id.
_ID_PREFIX = re.compile(r"(?:c_)?([0-9a-z]{1,26})")
_LAST_ID = "z" * 26

_newest_first = (conversations.c.created_at.desc(), conversations.c.id.desc())
_has_work = and_(
    conversations.c.user_id == _owner,
    or_(conversations.c.kind == Kind.TASK.value, conversations.c.kind == Kind.CHAT.value),
    conversations.c.schedule.is_not(None),
)
# A task with one of these resumes by itself.
_is_active = or_(
    conversations.c.pause_reason.is_(None),
    *(
        conversations.c.pause_reason == text(f"'{reason.value}'")
        for reason in sorted(PASSING_PAUSES)
    ),
)
select_active = (
    select(conversations.c.id, conversations.c.title)
    .where(_has_work, _is_active, ~is_proposed)
    .order_by(conversations.c.created_at, conversations.c.id)
)
select_open = select(conversations).where(_has_work).order_by(*_newest_first).limit(_limit)
_select_tasks = select(conversations).where(
    conversations.c.user_id == _owner, conversations.c.kind == text("'task'"), is_shown
)
#: Whatever has a schedule, what comes first first; jobs too.
select_planned = (
    select(conversations)
    .where(conversations.c.user_id == _owner, conversations.c.schedule.is_not(None), ~is_proposed)
    .order_by(conversations.c.next_run_at.nulls_last(), conversations.c.id)
    .limit(_limit)
)
select_by_title = (
    _select_tasks.where(conversations.c.title == bindparam("title", type_=Text()))
    .order_by(*_newest_first)
    .limit(_limit)
)
select_by_id_prefix = (
    _select_tasks.where(
        conversations.c.id >= bindparam("first_id", type_=Text()),
        conversations.c.id <= bindparam("last_id"),
    )
    .order_by(conversations.c.id)
    .limit(_limit)
)
count_proposals = select(func.count()).where(
    conversations.c.user_id == _owner,
    conversations.c.parent_id == bindparam("parent_id", type_=Text()),
    conversations.c.kind == Kind.TASK.value,
    conversations.c.created_at >= _since,
    was_proposed.exists(),
)
select_dismissed = select(
    conversations.c.title, conversations.c.context, conversations.c.ended_at
).where(
    conversations.c.user_id == _owner,
    conversations.c.ended_as == text(f"'{EndedAs.DISMISSED.value}'"),
    conversations.c.ended_at > _since,
)


def _costs_of(run_ids: Select[Any]) -> Select[Any]:
    """Build the sum of costs of each run; a run without a model call costs nothing."""
    chosen = run_ids.limit(_limit).subquery()
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


_has_ended = or_(runs.c.status == RunStatus.SUCCESS.value, runs.c.status == RunStatus.FAILURE.value)
_in_background = and_(runs.c.user_id == _owner, runs.c.kind == RunKind.BACKGROUND.value, _has_ended)
select_costs = _costs_of(
    select(runs.c.id)
    .where(_in_background, runs.c.conversation_id == _conversation_id)
    .order_by(runs.c.started_at.desc())
)
select_costs_of_profile = _costs_of(
    select(runs.c.id)
    .where(
        _in_background,
        runs.c.profile == bindparam("profile", type_=Text()),
        runs.c.ended_at > _since,
    )
    .order_by(runs.c.ended_at.desc())
)


class Tasks(Group):
    def active(self, user: UserId) -> Sequence[tuple[ConversationId, str]]:
        rows = self._execute(select_active, {"owner": user})
        return [(ConversationId(row.id), row.title) for row in rows]

    def scheduled(self, user: UserId, *, limit: int) -> Sequence[Conversation]:
        return self._read(select_open, user, limit=limit)

    def planned(self, user: UserId, *, limit: int) -> Sequence[PlannedWork]:
        rows = self._execute(select_planned, {"owner": user, "limit": limit}).all()
        found = ConversationQueries(self.tx).read(rows) if rows else ()
        return [
            PlannedWork(one.conversation, is_running=row.turn_run is not None)
            for one, row in zip(found, rows, strict=True)
        ]

    def by_title_or_id(self, user: UserId, name: str, *, limit: int) -> Sequence[Conversation]:
        tasks = self._read(select_by_title, user, limit=limit, title=name)
        prefix = _ID_PREFIX.fullmatch(name)
        if tasks or prefix is None:
            return tasks
        first_id = f"c_{prefix[1]}"
        last_id = first_id + _LAST_ID[len(prefix[1]) :]
        return self._read(
            select_by_id_prefix, user, limit=limit, first_id=first_id, last_id=last_id
        )

    def count_proposed(self, user: UserId, parent: ConversationId, *, since: datetime) -> int:
        values = {"owner": user, "parent_id": parent, "since": since}
        return int(self._execute(count_proposals, values).scalar_one())

    def rejected_proposals(self, user: UserId, *, since: datetime) -> Sequence[RejectedProposal]:
        rows = self._execute(select_dismissed, {"owner": user, "since": since})
        return [
            RejectedProposal(row.title, str(load(row.context).get("prompt", "")), row.ended_at)
            for row in rows
        ]

    def recent_costs(
        self, user: UserId, conversation_id: ConversationId, *, limit: int
    ) -> Sequence[Cost]:
        return self._costs(select_costs, owner=user, conversation_id=conversation_id, limit=limit)

    def recent_costs_by_profile(
        self, user: UserId, profile: str, *, since: datetime, limit: int
    ) -> Sequence[Cost]:
        values = {"owner": user, "profile": profile, "since": since, "limit": limit}
        return self._costs(select_costs_of_profile, **values)

    def _read(self, statement: Select[Any], user: UserId, **values: Any) -> Sequence[Conversation]:
        rows = self._execute(statement, {"owner": user, **values}).all()
        return [row.conversation for row in ConversationQueries(self.tx).read(rows)]

    def _costs(self, statement: Select[Any], **values: Any) -> Sequence[Cost]:
        return [
            Cost(Amount(int(row.micros), int(row.tokens)), priced=bool(row.priced))
            for row in self._execute(statement, values)
        ]
