"""The log of what changed, for those who follow. It says where to look, not what is there.

Each user's changes are counted by themselves. Their numbers grow in the order in which they can be
seen, also where several transactions write at the same time: they are written last in each, and the
row of the user's counter is locked until the commit. So whoever has seen a number has seen all
smaller ones.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import (
    Connection,
    Text,
    TextClause,
    bindparam,
    delete,
    func,
    select,
    text,
    tuple_,
)

from backburner.core.ids import ConversationId, RunId, UserId
from backburner.core.run import RunKind
from backburner.core.transitions import Step, Stops
from backburner.ports import Change, EventKind, ReplyDraft
from backburner.store.dialect import counted
from backburner.store.tables import events, is_running, runs
from backburner.store.types import Time

_owner = bindparam("owner", type_=Text())
_newest = select(func.coalesce(func.max(events.c.number), 0)).where(events.c.user_id == _owner)
_known = select(events.c.number).where(
    events.c.user_id == _owner, events.c.number == bindparam("number")
)
_after = (
    select(events.c.number, events.c.kind, events.c.conversation_id)
    .where(events.c.user_id == _owner, events.c.number > bindparam("number"))
    .order_by(events.c.number)
    .limit(bindparam("limit"))
)
_newest_since = (
    select(events.c.user_id, func.max(events.c.number).label("number"))
    .where(events.c.created_at >= bindparam("at"))
    # As an expression, or SQLite would go through the index of all there are.
    .group_by(events.c.user_id.concat(""), events.c.user_id)
)
_drafts = select(runs.c.conversation_id, runs.c.id, runs.c.draft).where(
    runs.c.user_id == _owner,
    is_running,
    runs.c.kind == RunKind.REPLY.value,
    runs.c.draft.is_not(None),
)
_drafts_in = _drafts.where(
    runs.c.conversation_id.in_(bindparam("conversations", expanding=True, type_=Text()))
)
_newer = events.alias("newer")
#: Not with EXISTS, for which PostgreSQL may compare all events of a user with each other.
_last = (
    select(_newer.c.number)
    .where(_newer.c.user_id == events.c.user_id)
    .order_by(_newer.c.number.desc())
    .limit(1)
    .correlate(events)
    .scalar_subquery()
)
_old = (
    select(events.c.user_id, events.c.number)
    .where(events.c.created_at < bindparam("before"), events.c.number < _last)
    .order_by(events.c.created_at)
    .limit(bindparam("limit"))
)
_delete_old = delete(events).where(tuple_(events.c.user_id, events.c.number).in_(_old))

Noted = tuple[ConversationId | None, EventKind]


@dataclass(frozen=True, slots=True)
class Events:
    connection: Connection
    #: What is to be written down at the end of the transaction.
    noted: dict[UserId, dict[Noted, None]] = field(default_factory=dict)

    def note(self, user: UserId, conversation: ConversationId | None, *kinds: EventKind) -> None:
        self.noted.setdefault(user, {}).update({(conversation, kind): None for kind in kinds})

    def note_step(self, step: Step, *more: EventKind) -> None:
        where = step.conversation
        self.note(where.user_id, where.id, *kinds_of(step), *more)

    def write(self, *, now: datetime) -> None:
        """Write down what was noted; nothing else may be done in the transaction after this."""
        # In the same order everywhere, so that nobody waits for each other.
        for user in sorted(self.noted):
            _write(self.connection, user, list(self.noted[user]), now=now)

    def latest(self, user: UserId) -> int:
        return int(self.connection.execute(_newest, {"owner": user}).scalar_one())

    def has_all_since(self, user: UserId, number: int) -> bool:
        if number == 0:
            return self.latest(user) == 0
        values = {"owner": user, "number": number}
        return self.connection.execute(_known, values).first() is not None

    def after(self, user: UserId, number: int, *, limit: int) -> Sequence[Change]:
        values = {"owner": user, "number": number, "limit": limit}
        return [
            Change(row.number, row.kind, _or_none(row.conversation_id))
            for row in self.connection.execute(_after, values)
        ]

    def latest_by_user(self, at: datetime) -> Mapping[UserId, int]:
        found = self.connection.execute(_newest_since, {"at": at})
        return {UserId(row.user_id): row.number for row in found}

    def drafts(
        self, user: UserId, conversations: Collection[ConversationId] | None
    ) -> Sequence[ReplyDraft]:
        if conversations is None:
            found = self.connection.execute(_drafts, {"owner": user})
        else:
            values = {"owner": user, "conversations": list(conversations)}
            found = self.connection.execute(_drafts_in, values)
        return [ReplyDraft(ConversationId(row[0]), RunId(row[1]), row[2]) for row in found]

    def prune(self, *, before: datetime, limit: int) -> int:
        return self.connection.execute(_delete_old, {"before": before, "limit": limit}).rowcount


def kinds_of(step: Step) -> Iterable[EventKind]:
    """Tell what there is to look at after a step."""
    yield EventKind.CONVERSATION
    if step.messages:
        yield EventKind.MESSAGE
    if step.asked or step.answered or step.withdrawn:
        yield EventKind.QUESTION
    if step.skipped or step.drops_queued or step.stops is not Stops.NOTHING:
        yield EventKind.RUN
    if step.notices:
        yield EventKind.NOTICE


def _write(connection: Connection, user: UserId, noted: Sequence[Noted], *, now: datetime) -> None:
    count = {"owner": user, "counter": events.name, "count": len(noted)}
    values: dict[str, Any] = {**count, "now": now}
    for number, (conversation, kind) in enumerate(noted):
        values |= {f"where{number}": conversation, f"kind{number}": kind.value}
    connection.execute(_insert(len(noted), counted(connection, count)), values)


@cache
def _insert(count: int, counted: str) -> TextClause:
    """Make the statement for so many rows; it writes none if the user has just been deleted."""
    rows = ", ".join(
        f"({n}, CAST(:where{n} AS text), CAST(:kind{n} AS text))" for n in range(count)
    )
    statement = (
        f"WITH counted AS {counted}"  # noqa: S608 (nothing in it is from outside)
        " INSERT INTO events (user_id, number, conversation_id, kind, created_at)"
        f" SELECT user_id, last - {count - 1} + column1, column2, column3, :now"
        f" FROM counted, (VALUES {rows}) AS noted"
    )
    return text(statement).bindparams(bindparam("now", type_=Time))


def _or_none(conversation: str | None) -> ConversationId | None:
    return None if conversation is None else ConversationId(conversation)
