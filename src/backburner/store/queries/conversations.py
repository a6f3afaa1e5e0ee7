"""Pages of conversations, last changed first.

A search reads a limited number of conversations for each page, and a limited number of messages of
each, so that its time is bounded; the next page continues from there.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Row,
    Select,
    Text,
    and_,
    bindparam,
    exists,
    not_,
    or_,
    select,
    text,
    tuple_,
    union_all,
)

from backburner.core.conversation import Kind, Status
from backburner.core.ids import ConversationId, UserId
from backburner.ports import ConversationFilter, ConversationPage, ConversationRow, PageKey, View
from backburner.store.context import Group
from backburner.store.mapping import to_conversation
from backburner.store.queries.activity import ActivityQueries
from backburner.store.queries.view_filters import has_job_status, has_task_status, is_task
from backburner.store.records.questions import Questions
from backburner.store.records.runs import Runs
from backburner.store.tables import conversations, is_job, is_no_job, messages

#: Conversations that a search reads for a page, and the newest messages of each.
SCAN_LIMIT = 200
MAX_MESSAGES = 200

_owner = bindparam("owner", type_=Text())
_select_by_id = select(conversations).where(
    conversations.c.user_id == _owner, conversations.c.id == bindparam("conversation_id")
)
_after = tuple_(conversations.c.updated_at, conversations.c.id) < tuple_(
    bindparam("at", type_=conversations.c.updated_at.type), bindparam("id", type_=Text())
)
_pattern = bindparam("pattern", type_=Text())
_newest_messages = (
    select(messages.c.content)
    .where(
        messages.c.user_id == conversations.c.user_id,
        messages.c.conversation_id == conversations.c.id,
        messages.c.replaced_at.is_(None),
    )
    .order_by(messages.c.number.desc())
    .limit(MAX_MESSAGES)
    .correlate(conversations)
    .subquery()
)
_select_matches = select(conversations).where(
    conversations.c.user_id == _owner,
    conversations.c.id.in_(bindparam("conversation_ids", expanding=True, type_=Text())),
    or_(
        conversations.c.title.ilike(_pattern, escape="\\"),
        exists().where(_newest_messages.c.content.ilike(_pattern, escape="\\")),
    ),
)


_parent = conversations.alias("parent")
_has_archived_parent = exists().where(
    _parent.c.user_id == conversations.c.user_id,
    _parent.c.id == conversations.c.parent_id,
    _parent.c.status == text("'archived'"),
)
_has_work = or_(
    conversations.c.schedule.is_not(None), conversations.c.status == text("'waiting_input'")
)


def select_page(
    wanted: ConversationFilter, after: PageKey | None, *, keys_only: bool = False
) -> Select[Any] | CompoundSelect[Any]:
    """Build the statement for a page; the words of the filter are left out.

    Jobs and all others have an index each, and a page of both merges them.
    """
    columns = (conversations.c.id, conversations.c.updated_at) if keys_only else (conversations,)
    parts = [
        select(*columns).where(conversations.c.user_id == _owner, kind, *_conditions(wanted))
        for kind in _kinds(wanted)
    ]
    if after is not None:
        parts = [part.where(_after) for part in parts]
    statement = parts[0] if len(parts) == 1 else union_all(*parts)
    found = statement.selected_columns
    return statement.order_by(found.updated_at.desc(), found.id.desc()).limit(bindparam("limit"))


def _kinds(wanted: ConversationFilter) -> Sequence[ColumnElement[bool]]:
    """Return the conditions of the indexes that have what is wanted."""
    if wanted.kind is Kind.JOB or wanted.view is View.JOBS:
        return (is_job,)
    if wanted.kind is not None or wanted.view is not None or wanted.top_level:
        return (is_no_job,)
    return is_no_job, is_job


class ConversationQueries(Group):
    def conversations(
        self,
        user: UserId,
        wanted: ConversationFilter,
        after: PageKey | None,
        *,
        limit: int,
        scan_limit: int = SCAN_LIMIT,
    ) -> ConversationPage:
        values: dict[str, Any] = {"owner": user, "limit": limit + 1}
        if after is not None:
            values |= {"at": after[0], "id": after[1]}
        if wanted.search is not None:
            statement = select_page(wanted, after, keys_only=True)
            scanned = self._execute(statement, values | {"limit": scan_limit + 1}).all()
            end = _page_key(scanned[scan_limit - 1]) if len(scanned) > scan_limit else None
            ids = [row.id for row in scanned[:scan_limit]]
            return self._search(user, wanted.search, ids, end, limit=limit)
        rows = self._execute(select_page(wanted, after), values).all()
        return self._to_page(rows, limit=limit)

    def conversation(self, user: UserId, conversation_id: ConversationId) -> ConversationRow:
        row = self._read_one(_select_by_id, {"owner": user, "conversation_id": conversation_id})
        return self.read_with_activity([row])[0]

    def _search(
        self, user: UserId, words: str, ids: Sequence[str], end: PageKey | None, *, limit: int
    ) -> ConversationPage:
        """Find the words in these conversations; the next page starts after `end`."""
        values = {"owner": user, "conversation_ids": ids, "pattern": f"%{_escape(words)}%"}
        rows = sorted(self._execute(_select_matches, values).all(), key=_page_key, reverse=True)
        return self._to_page(rows, limit=limit, end=end)

    def _to_page(
        self, rows: Sequence[Row[Any]], *, limit: int, end: PageKey | None = None
    ) -> ConversationPage:
        shown = rows[:limit]
        return ConversationPage(
            self.read_with_activity(shown), _page_key(shown[-1]) if len(rows) > limit else end
        )

    def read(self, rows: Sequence[Row[Any]]) -> list[ConversationRow]:
        """Convert rows of one user; read all their questions in one statement, and all progress."""
        waiting = [row.id for row in rows if row.status == Status.WAITING_INPUT.value]
        questions = Questions(self.tx).open_of_all(rows[0].user_id, waiting) if waiting else {}
        at_work = [row.id for row in rows if row.turn_run or row.status == Status.BACKGROUND.value]
        progress = Runs(self.tx).progress_of(rows[0].user_id, at_work) if at_work else {}
        return [
            ConversationRow(
                to_conversation(row, questions.get(row.id, ())),
                row.updated_at,
                progress=progress.get(row.id),
            )
            for row in rows
        ]

    def read_with_activity(self, rows: Sequence[Row[Any]]) -> list[ConversationRow]:
        """Convert rows of one user, and read all their runs in progress in one statement."""
        found = self.read(rows)
        busy = [ConversationId(row.id) for row in rows if row.turn_run is not None]
        running = ActivityQueries(self.tx).activities(rows[0].user_id, busy) if busy else {}
        return [replace(row, running=running.get(row.conversation.id)) for row in found]


def _conditions(wanted: ConversationFilter) -> Iterable[ColumnElement[bool]]:
    if wanted.status is not None:
        yield conversations.c.status == wanted.status.value
    if wanted.kind is not None:
        yield conversations.c.kind == wanted.kind.value
    if wanted.archived is not None:
        is_archived = conversations.c.status == Status.ARCHIVED.value
        yield is_archived if wanted.archived else ~is_archived
    if wanted.parent_id is not None:
        yield conversations.c.parent_id == wanted.parent_id
    if wanted.view is not None:
        yield _is_in(wanted.view)
    if wanted.task is not None:
        yield has_task_status(wanted.task)
    if wanted.job is not None:
        yield has_job_status(wanted.job)
    if wanted.batch is not None:
        yield conversations.c.batch == wanted.batch
    if wanted.top_level:
        is_child = conversations.c.parent_id.is_not(None)
        # A child stands under its parent, unless that one is in the other list.
        apart = (
            not_(_has_archived_parent) if wanted.archived else and_(_has_work, _has_archived_parent)
        )
        yield or_(not_(is_child), apart)


def _is_in(view: View) -> ColumnElement[bool]:
    match view:
        case View.CHATS:
            return conversations.c.kind == Kind.CHAT.value
        case View.JOBS:
            return is_job
        case View.TASKS:
            return is_task


def _escape(words: str) -> str:
    return words.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _page_key(row: Any) -> PageKey:
    return row.updated_at, row.id
