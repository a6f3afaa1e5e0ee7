"""The log of changes that clients follow. An event says where to look, not what is there.

Events are numbered per user, in the order in which they become visible: each transaction writes
them last, and the row of the user's counter is locked until the commit. So a client that has seen a
number has seen all smaller ones.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Connection, Text, TextClause, bindparam, delete, func, select, text, tuple_

from backburner.core.ids import ConversationId, RunId, UserId
from backburner.core.run import RunKind
from backburner.core.transitions import Step, Stops
from backburner.ports import Change, EventKind, ReplyDraft
from backburner.store.dialect import take_numbers
from backburner.store.tables import events, is_running, runs
from backburner.store.types import Time

_owner = bindparam("owner", type_=Text())
_select_newest = select(func.coalesce(func.max(events.c.number), 0)).where(
    events.c.user_id == _owner
)
_select_by_number = select(events.c.number).where(
    events.c.user_id == _owner, events.c.number == bindparam("number")
)
_select_after = (
    select(events.c.number, events.c.kind, events.c.conversation_id)
    .where(events.c.user_id == _owner, events.c.number > bindparam("number"))
    .order_by(events.c.number)
    .limit(bindparam("limit"))
)
_select_newest_since = (
    select(events.c.user_id, func.max(events.c.number).label("number"))
    .where(events.c.created_at >= bindparam("at"))
    # An expression, or SQLite would scan the index of all events.
    .group_by(events.c.user_id.concat(""), events.c.user_id)
)
_select_drafts = select(runs.c.conversation_id, runs.c.id, runs.c.draft).where(
    runs.c.user_id == _owner,
    is_running,
    runs.c.kind == RunKind.REPLY.value,
    runs.c.draft.is_not(None),
)
_select_drafts_in = _select_drafts.where(
    runs.c.conversation_id.in_(bindparam("conversation_ids", expanding=True, type_=Text()))
)
_newer = events.alias("newer")
#: Not with EXISTS: PostgreSQL might compare all events of a user with each other.
_last_number = (
    select(_newer.c.number)
    .where(_newer.c.user_id == events.c.user_id)
    .order_by(_newer.c.number.desc())
    .limit(1)
    .correlate(events)
    .scalar_subquery()
)
_old = (
    select(events.c.user_id, events.c.number)
    .where(events.c.created_at < bindparam("before"), events.c.number < _last_number)
    .order_by(events.c.created_at)
    .limit(bindparam("limit"))
)
_delete_old = delete(events).where(tuple_(events.c.user_id, events.c.number).in_(_old))

NotedEvent = tuple[ConversationId | None, EventKind]


@dataclass(frozen=True, slots=True)
class Events:
    connection: Connection
    #: Stored at the end of the transaction.
    noted: dict[UserId, dict[NotedEvent, None]] = field(default_factory=dict)

    def note(self, user: UserId, conversation: ConversationId | None, *kinds: EventKind) -> None:
        self.noted.setdefault(user, {}).update({(conversation, kind): None for kind in kinds})

    def note_step(self, step: Step, *more: EventKind) -> None:
        conversation = step.conversation
        self.note(conversation.user_id, conversation.id, *kinds_of(step), *more)

    def write(self, *, now: datetime) -> None:
        """Store the noted events; nothing else may be done in the transaction after this."""
        # In the same order everywhere, to avoid deadlocks.
        for user in sorted(self.noted):
            _write(self.connection, user, list(self.noted[user]), now=now)

    def take(self) -> Mapping[UserId, Sequence[NotedEvent]]:
        """Leave the noted events to somebody else to store."""
        taken = {user: list(noted) for user, noted in self.noted.items()}
        self.noted.clear()
        return taken

    def latest(self, user: UserId) -> int:
        return int(self.connection.execute(_select_newest, {"owner": user}).scalar_one())

    def has_all_since(self, user: UserId, number: int) -> bool:
        if number == 0:
            return self.latest(user) == 0
        values = {"owner": user, "number": number}
        return self.connection.execute(_select_by_number, values).first() is not None

    def after(self, user: UserId, number: int, *, limit: int) -> Sequence[Change]:
        values = {"owner": user, "number": number, "limit": limit}
        return [
            Change(
                row.number, row.kind, row.conversation_id and ConversationId(row.conversation_id)
            )
            for row in self.connection.execute(_select_after, values)
        ]

    def latest_by_user(self, at: datetime) -> Mapping[UserId, int]:
        rows = self.connection.execute(_select_newest_since, {"at": at})
        return {UserId(row.user_id): row.number for row in rows}

    def drafts(
        self, user: UserId, conversations: Collection[ConversationId] | None
    ) -> Sequence[ReplyDraft]:
        if conversations is None:
            rows = self.connection.execute(_select_drafts, {"owner": user})
        else:
            values = {"owner": user, "conversation_ids": list(conversations)}
            rows = self.connection.execute(_select_drafts_in, values)
        return [ReplyDraft(ConversationId(row[0]), RunId(row[1]), row[2]) for row in rows]

    def prune(self, *, before: datetime, limit: int) -> int:
        return self.connection.execute(_delete_old, {"before": before, "limit": limit}).rowcount


def kinds_of(step: Step) -> Iterable[EventKind]:
    yield EventKind.CONVERSATION
    if step.messages:
        yield EventKind.MESSAGE
    if step.asked or step.answered or step.withdrawn:
        yield EventKind.QUESTION
    if step.skipped or step.drops_queued or step.stops is not Stops.NOTHING:
        yield EventKind.RUN
    if step.notices:
        yield EventKind.NOTICE


def _write(
    connection: Connection, user: UserId, noted: Sequence[NotedEvent], *, now: datetime
) -> None:
    count = {"owner": user, "counter": events.name, "count": len(noted)}
    values: dict[str, Any] = {**count, "now": now}
    for number, (conversation_id, kind) in enumerate(noted):
        values |= {f"conversation{number}": conversation_id, f"kind{number}": kind.value}
    connection.execute(_insert(len(noted), take_numbers(connection, count)), values)


@cache
def _insert(count: int, numbers_cte: str) -> TextClause:
    """Build the statement for `count` rows; it inserts none if the user has just been deleted."""
    rows = ", ".join(
        f"({n}, CAST(:conversation{n} AS text), CAST(:kind{n} AS text))" for n in range(count)
    )
    statement = (
        f"WITH taken AS {numbers_cte}"  # noqa: S608 (no text from outside)
        " INSERT INTO events (user_id, number, conversation_id, kind, created_at)"
        f" SELECT user_id, last - {count - 1} + column1, column2, column3, :now"
        f" FROM taken, (VALUES {rows}) AS noted"
    )
    return text(statement).bindparams(bindparam("now", type_=Time))
