"""Lists of conversations: the owner first, then those that were changed last.

Where words are looked for, a page looks at so many conversations and so many messages of each, and
goes on from there with the next: a search takes no longer than a moment, whatever there is.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    Text,
    bindparam,
    exists,
    or_,
    select,
    tuple_,
)

from backburner.core.conversation import Kind, Status
from backburner.core.errors import NotFound
from backburner.core.ids import ConversationId, UserId
from backburner.core.question import Question
from backburner.ports import ConversationFilter, ConversationPage, ConversationRow, PageKey, View
from backburner.store.context import Group
from backburner.store.mapping import to_conversation, to_question
from backburner.store.queries.view_filters import (
    has_job_status,
    has_task_status,
    is_job,
    is_task,
)
from backburner.store.tables import conversations, is_open, messages, questions

#: Looked at for words: conversations in a page, and the newest messages of each.
MOST_LOOKED_AT = 200
MOST_READ = 200

_owner = bindparam("owner", type_=Text())
_one = select(conversations).where(
    conversations.c.user_id == _owner, conversations.c.id == bindparam("which")
)
_questions = (
    select(questions)
    .where(
        questions.c.user_id == _owner,
        questions.c.conversation_id.in_(bindparam("which", expanding=True, type_=Text())),
        is_open,
    )
    .order_by(questions.c.asked_at, questions.c.id)
)
_after = tuple_(conversations.c.updated_at, conversations.c.id) < tuple_(
    bindparam("at", type_=conversations.c.updated_at.type), bindparam("id", type_=Text())
)
_words = bindparam("words", type_=Text())
_newest_messages = (
    select(messages.c.content)
    .where(
        messages.c.user_id == conversations.c.user_id,
        messages.c.conversation_id == conversations.c.id,
        messages.c.replaced_at.is_(None),
    )
    .order_by(messages.c.number.desc())
    .limit(MOST_READ)
    .correlate(conversations)
    .subquery()
)
_fitting = select(conversations).where(
    conversations.c.user_id == _owner,
    conversations.c.id.in_(bindparam("among", expanding=True, type_=Text())),
    or_(
        conversations.c.title.ilike(_words, escape="\\"),
        exists().where(_newest_messages.c.content.ilike(_words, escape="\\")),
    ),
)


def statement(wanted: ConversationFilter, after: PageKey | None) -> Select[Any]:
    """Make the question for one page, without its words."""
    asked = select(conversations).where(conversations.c.user_id == _owner, *_conditions(wanted))
    if after is not None:
        asked = asked.where(_after)
    newest_first = (conversations.c.updated_at.desc(), conversations.c.id.desc())
    return asked.order_by(*newest_first).limit(bindparam("limit"))


class ConversationQueries(Group):
    def conversations(
        self,
        user: UserId,
        wanted: ConversationFilter,
        after: PageKey | None,
        *,
        limit: int,
        looked_at: int = MOST_LOOKED_AT,
    ) -> ConversationPage:
        values: dict[str, Any] = {"owner": user, "limit": limit + 1}
        if after is not None:
            values |= {"at": after[0], "id": after[1]}
        if wanted.words is not None:
            asked = statement(wanted, after).with_only_columns(
                conversations.c.id, conversations.c.updated_at
            )
            near = self._execute(asked, values | {"limit": looked_at + 1}).all()
            ends_at = _mark(near[looked_at - 1]) if len(near) > looked_at else None
            among = [row.id for row in near[:looked_at]]
            return self._search(user, wanted.words, among, ends_at, limit=limit)
        rows = self._execute(statement(wanted, after), values).all()
        shown = rows[:limit]
        return ConversationPage(self.read(shown), _mark(shown[-1]) if len(rows) > limit else None)

    def conversation(self, user: UserId, conversation_id: ConversationId) -> ConversationRow:
        row = self._execute(_one, {"owner": user, "which": conversation_id}).one_or_none()
        if row is None:
            raise NotFound
        (seen,) = self.read([row])
        return seen

    def _search(
        self, user: UserId, words: str, among: Sequence[str], ends_at: PageKey | None, *, limit: int
    ) -> ConversationPage:
        """Find those that have the words; `ends_at` is where the next page would begin to look."""
        values = {"owner": user, "among": among, "words": f"%{_escape(words)}%"}
        found = sorted(self._execute(_fitting, values).all(), key=_mark, reverse=True)
        shown = found[:limit]
        if len(found) > limit:
            ends_at = _mark(shown[-1])
        return ConversationPage(self.read(shown), ends_at)

    def read(self, rows: Sequence[Row[Any]]) -> list[ConversationRow]:
        """Read the conversations of one user's rows; all open questions in one statement."""
        asking = [row.id for row in rows if row.status == Status.WAITING_INPUT.value]
        asked = defaultdict[str, list[Question]](list)
        if asking:
            for row in self._execute(_questions, {"owner": rows[0].user_id, "which": asking}):
                asked[row.conversation_id].append(to_question(row))
        return [
            ConversationRow(to_conversation(row, tuple(asked[row.id])), row.updated_at)
            for row in rows
        ]


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
        yield from _of_view(wanted.view)
    if wanted.task is not None:
        yield has_task_status(wanted.task)
    if wanted.job is not None:
        yield has_job_status(wanted.job)
    if wanted.batch is not None:
        yield conversations.c.batch == wanted.batch


def _of_view(view: View) -> Iterable[ColumnElement[bool]]:
    kind = conversations.c.kind
    match view:
        case View.CHATS:
            yield kind == Kind.CHAT.value
        case View.JOBS:
            yield is_job
        case View.TASKS:
            yield is_task


def _escape(words: str) -> str:
    return words.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _mark(row: Any) -> PageKey:
    return row.updated_at, row.id
