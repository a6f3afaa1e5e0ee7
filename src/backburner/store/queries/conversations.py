"""Pages of conversations, last changed first.

A search reads a limited number of conversations for each page, and a limited number of messages of
each, so that its time is bounded; the next page continues from there.
"""

from collections.abc import Callable, Iterable, Sequence
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

from backburner.core.content.search import split_words
from backburner.core.conversation import Kind, Status
from backburner.core.ids import ConversationId, UserId
from backburner.ports import ConversationFilter, ConversationPage, ConversationRow, PageKey, View
from backburner.store.context import Group
from backburner.store.mapping import to_conversation
from backburner.store.queries.activity import ActivityQueries
from backburner.store.queries.list_facts import ListFactQueries, is_unread
from backburner.store.queries.search import SearchQueries
from backburner.store.queries.view_filters import (
    has_job_status,
    has_list_state,
    has_task_status,
    is_task,
)
from backburner.store.records.questions import Questions
from backburner.store.records.runs import Runs
from backburner.store.tables import conversations, is_job, is_no_job, is_pinned, is_shown

#: Conversations that a search reads for a page.
SCAN_LIMIT = 200

_owner = bindparam("owner", type_=Text())
_select_by_id = select(conversations).where(
    conversations.c.user_id == _owner,
    conversations.c.id == bindparam("conversation_id"),
    is_shown,
)
_after = tuple_(conversations.c.updated_at, conversations.c.id) < tuple_(
    bindparam("at", type_=conversations.c.updated_at.type), bindparam("id", type_=Text())
)

_parent = conversations.alias("parent")
_has_archived_parent = exists().where(
    _parent.c.user_id == conversations.c.user_id,
    _parent.c.id == conversations.c.parent_id,
    _parent.c.status == text("'archived'"),
)
_is_archived = conversations.c.status == Status.ARCHIVED.value
_child = conversations.alias("child")
_has_work = or_(
    conversations.c.schedule.is_not(None), conversations.c.status == text("'waiting_input'")
)


_KINDS = [kind.value for kind in Kind]
_NO_JOBS = [kind.value for kind in Kind if kind is not Kind.JOB]


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
    if wanted.pinned:
        return (is_pinned,)
    if wanted.among is not None:
        # In words that fit no partial index, so that the ids are looked up.
        return (conversations.c.kind.in_(_NO_JOBS if wanted.top_level else _KINDS),)
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
        if words := split_words(wanted.search or ""):
            statement = select_page(wanted, after, keys_only=True)
            scanned = self._execute(statement, values | {"limit": scan_limit + 1}).all()
            end = _page_key(scanned[scan_limit - 1]) if len(scanned) > scan_limit else None
            ids = [row.id for row in scanned[:scan_limit]]
            return self._search(user, words, ids, end, limit=limit)
        rows = self._execute(select_page(wanted, after), values).all()
        return self._to_page(rows, limit=limit)

    def conversation(self, user: UserId, conversation_id: ConversationId) -> ConversationRow:
        row = self._read_one(_select_by_id, {"owner": user, "conversation_id": conversation_id})
        return self._read_with_facts([row])[0]

    def _search(
        self,
        user: UserId,
        words: Sequence[str],
        ids: Sequence[str],
        end: PageKey | None,
        *,
        limit: int,
    ) -> ConversationPage:
        """Find the words in these conversations; the next page starts after `end`."""
        search = SearchQueries(self.tx)
        rows = sorted(search.matches(user, words, ids), key=_page_key, reverse=True)
        page = self._to_page(rows, limit=limit, end=end)
        hits = search.hits(user, words, {row.id: row.title for row in rows[:limit]})
        found = [replace(row, hits=tuple(hits[row.conversation.id])) for row in page.conversations]
        return replace(page, conversations=found)

    def _to_page(
        self, rows: Sequence[Row[Any]], *, limit: int, end: PageKey | None = None
    ) -> ConversationPage:
        shown = rows[:limit]
        return ConversationPage(
            self._read_with_facts(shown), _page_key(shown[-1]) if len(rows) > limit else end
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

    def _read_with_facts(self, rows: Sequence[Row[Any]]) -> list[ConversationRow]:
        """Convert rows of one user, with what a list shows of them, too."""
        found = self.read_with_activity(rows)
        if not found:
            return found
        facts = ListFactQueries(self.tx).list_facts(
            rows[0].user_id, [row.conversation.id for row in found]
        )
        return [replace(row, facts=facts.get(row.conversation.id, row.facts)) for row in found]


def _conditions(wanted: ConversationFilter) -> Iterable[ColumnElement[bool]]:
    """Yield a condition for whatever is wanted."""
    yield is_shown
    makers: Iterable[tuple[Any, Callable[[Any], ColumnElement[bool]]]] = (
        (wanted.status, lambda status: conversations.c.status == status.value),
        (wanted.kind, lambda kind: conversations.c.kind == kind.value),
        (wanted.archived, lambda archived: _is_archived if archived else ~_is_archived),
        (wanted.parent_id, lambda parent: conversations.c.parent_id == parent),
        (wanted.view, _is_in),
        (wanted.task, has_task_status),
        (wanted.job, has_job_status),
        (wanted.state, has_list_state),
        (wanted.pinned, lambda pinned: is_pinned if pinned else not_(is_pinned)),
        (wanted.unread, lambda unread: is_unread if unread else not_(is_unread)),
        (wanted.among, _is_among),
        (wanted.batch, lambda batch: conversations.c.batch == batch),
    )
    for value, make in makers:
        if value is not None:
            yield make(value)
    if wanted.top_level:
        is_child = conversations.c.parent_id.is_not(None)
        # A child stands under its parent, unless that one is in the other list.
        apart = (
            not_(_has_archived_parent) if wanted.archived else and_(_has_work, _has_archived_parent)
        )
        yield or_(not_(is_child), apart)


def _is_among(ids: Sequence[ConversationId]) -> ColumnElement[bool]:
    is_one = and_(_child.c.user_id == _owner, _child.c.id.in_(ids))
    both = (select(_child.c[name]).where(is_one) for name in ("id", "parent_id"))
    return conversations.c.id.in_(union_all(*both))


def _is_in(view: View) -> ColumnElement[bool]:
    match view:
        case View.CHATS:
            return conversations.c.kind == Kind.CHAT.value
        case View.JOBS:
            return is_job
        case View.TASKS:
            return is_task


def _page_key(row: Any) -> PageKey:
    return row.updated_at, row.id
