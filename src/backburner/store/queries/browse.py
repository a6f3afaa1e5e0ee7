"""Lists of what a user owns, in pages: conversations, messages, questions, runs and notices."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import BigInteger, Row, Text, bindparam, func, select, tuple_

from backburner.core.conversation import Message
from backburner.core.errors import NotFound
from backburner.core.ids import (
    CallId,
    ConversationId,
    GrantId,
    MessageId,
    NoticeId,
    QuestionId,
    RunId,
    UserId,
)
from backburner.core.notice import NoticeKind
from backburner.core.run import Run
from backburner.ports import GrantRow, NoticeRow, PageKey, QuestionRow, ToolCallRow
from backburner.store.accounts.users import ProfileQueries
from backburner.store.mapping import load, to_message, to_question, to_run
from backburner.store.queries.conversations import ConversationQueries
from backburner.store.queries.gauges import GaugeQueries
from backburner.store.records.grants import GrantQueries, Grants
from backburner.store.records.memories import MemoryQueries
from backburner.store.tables import (
    conversations,
    is_open,
    messages,
    notices,
    questions,
    runs,
    tool_calls,
)
from backburner.store.tables import unseen as is_unseen

_owner, _which = bindparam("owner", type_=Text()), bindparam("which", type_=Text())
_most = bindparam("limit", type_=BigInteger())
_number = bindparam("number", type_=BigInteger())
_at, _id = bindparam("at", type_=runs.c.started_at.type), bindparam("id", type_=Text())

messages_page = (
    select(messages)
    .where(
        messages.c.user_id == _owner,
        messages.c.conversation_id == _which,
        messages.c.replaced_at.is_(None),
    )
    .order_by(messages.c.number.desc())
    .limit(_most)
)
#: Messages go with their conversation only, so the last one of a page is there.
messages_after = messages_page.where(
    messages.c.number
    < select(messages.c.number)
    .where(messages.c.user_id == _owner, messages.c.id == _id)
    .scalar_subquery()
)
_message = select(messages).where(messages.c.user_id == _owner, messages.c.id == _which)
_asked = select(questions, conversations.c.title).join(
    conversations,
    (conversations.c.user_id == questions.c.user_id)
    & (conversations.c.id == questions.c.conversation_id),
)
questions_page = (
    _asked.where(questions.c.user_id == _owner, is_open)
    .order_by(questions.c.asked_at, questions.c.id)
    .limit(_most)
)
questions_after = questions_page.where(
    tuple_(questions.c.asked_at, questions.c.id) > tuple_(_at, _id)
)
_question = _asked.where(questions.c.user_id == _owner, questions.c.id == _which)
_newest_run = (runs.c.started_at, runs.c.epoch, runs.c.id)
runs_page = (
    select(runs)
    .where(runs.c.user_id == _owner, runs.c.conversation_id == _which)
    .order_by(*(column.desc() for column in _newest_run))
    .limit(_most)
)
runs_after = runs_page.where(tuple_(*_newest_run) < tuple_(_at, _number, _id))
_calls = (
    select(tool_calls)
    .where(tool_calls.c.user_id == _owner, tool_calls.c.run_id == _which)
    .order_by(tool_calls.c.started_at, tool_calls.c.id)
)
notices_page = (
    select(notices)
    .where(notices.c.user_id == _owner)
    .order_by(notices.c.number.desc())
    .limit(_most)
)
_last = select(notices.c.number).where(notices.c.user_id == _owner, notices.c.id == _id)
#: Where the last notice of a page has gone with its conversation, those made before it go on.
_older = select(func.max(notices.c.number) + 1).where(
    notices.c.user_id == _owner, notices.c.id < _id
)
notices_after = notices_page.where(
    notices.c.number < func.coalesce(_last.scalar_subquery(), _older.scalar_subquery())
)
_is_there = select(conversations.c.id).where(
    conversations.c.user_id == _owner, conversations.c.id == _which
)


class Browse(ConversationQueries, GrantQueries, MemoryQueries, ProfileQueries, GaugeQueries):
    def require(self, user: UserId, conversation_id: ConversationId) -> ConversationId:
        """See that a conversation is there: an empty page is no answer for one that is not."""
        if self._execute(_is_there, {"owner": user, "which": conversation_id}).first() is None:
            raise NotFound
        return conversation_id

    def messages(
        self, user: UserId, conversation_id: ConversationId, after: PageKey | None, *, limit: int
    ) -> Sequence[Message]:
        self.require(user, conversation_id)
        values: dict[str, Any] = {"owner": user, "which": conversation_id, "limit": limit}
        asked = messages_page
        if after is not None:
            asked, values["id"] = messages_after, after[0]
        return [to_message(row) for row in self._execute(asked, values)]

    def message(self, user: UserId, message_id: MessageId) -> Message:
        return to_message(self._only(_message, user, message_id))

    def questions(
        self, user: UserId, after: PageKey | None, *, limit: int
    ) -> Sequence[QuestionRow]:
        values: dict[str, Any] = {"owner": user, "limit": limit}
        asked = questions_page
        if after is not None:
            asked = questions_after
            values |= {"at": after[0], "id": after[1]}
        return [_to_asked(row) for row in self._execute(asked, values)]

    def question(self, user: UserId, question_id: QuestionId) -> QuestionRow:
        return _to_asked(self._only(_question, user, question_id))

    def runs(
        self, user: UserId, conversation_id: ConversationId, after: PageKey | None, *, limit: int
    ) -> Sequence[Run]:
        self.require(user, conversation_id)
        values: dict[str, Any] = {"owner": user, "which": conversation_id, "limit": limit}
        asked = runs_page
        if after is not None:
            asked = runs_after
            values |= {"at": after[0], "number": after[1], "id": after[2]}
        return [to_run(row) for row in self._execute(asked, values)]

    def calls(self, user: UserId, run_id: RunId) -> Sequence[ToolCallRow]:
        return [_to_call(row) for row in self._execute(_calls, {"owner": user, "which": run_id})]

    def grants(self, user: UserId, conversation_id: ConversationId) -> Sequence[GrantRow]:
        self.require(user, conversation_id)
        return Grants(self.tx).given(user, conversation_id)

    def notices(
        self, user: UserId, after: PageKey | None, *, unseen: bool, limit: int
    ) -> Sequence[NoticeRow]:
        values: dict[str, Any] = {"owner": user, "limit": limit}
        asked = notices_page
        if after is not None:
            asked, values["id"] = notices_after, after[0]
        if unseen:
            asked = asked.where(is_unseen)
        return [_to_told(row) for row in self._execute(asked, values)]

    def _only(self, asked: Any, user: UserId, which: str) -> Row[Any]:
        row: Row[Any] | None = self._execute(asked, {"owner": user, "which": which}).one_or_none()
        if row is None:
            raise NotFound
        return row


def _to_asked(row: Row[Any]) -> QuestionRow:
    return QuestionRow(to_question(row), ConversationId(row.conversation_id), row.title)


def _to_call(row: Row[Any]) -> ToolCallRow:
    return ToolCallRow(
        id=CallId(row.id),
        server=row.server,
        tool=row.tool,
        arguments=load(row.arguments),
        read_only=row.read_only,
        state=row.state,
        failed=row.failed,
        result=row.result,
        grant_id=row.grant_id and GrantId(row.grant_id),
        started_at=row.started_at,
        ended_at=row.ended_at,
    )


def _to_told(row: Row[Any]) -> NoticeRow:
    return NoticeRow(
        id=NoticeId(row.id),
        conversation_id=ConversationId(row.conversation_id),
        run_id=row.run_id and RunId(row.run_id),
        kind=NoticeKind(row.kind),
        text=row.text,
        question_id=row.question_id and QuestionId(row.question_id),
        created_at=row.created_at,
        seen_at=row.seen_at,
    )
