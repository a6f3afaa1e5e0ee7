"""Pages of a user's conversations, messages, questions, runs, grants, memories and notices."""

import json
from collections.abc import Sequence
from functools import cache
from itertools import groupby
from operator import attrgetter
from typing import Any

from sqlalchemy import BigInteger, Row, Select, Text, bindparam, func, null, select, tuple_

from backburner.core.conversation import Message
from backburner.core.errors import NotFound
from backburner.core.ids import (
    CallId,
    ConversationId,
    GrantId,
    NoticeId,
    QuestionId,
    RunId,
    UserId,
)
from backburner.core.notice import NoticeKind
from backburner.core.run import Run
from backburner.ports import (
    DeliveryRow,
    DeliveryState,
    GrantRow,
    NoticeRow,
    PageKey,
    QuestionRow,
    ToolCallRow,
)
from backburner.store.accounts.users import ProfileQueries
from backburner.store.mapping import load, load_references, to_message, to_question, to_run
from backburner.store.queries.activity import ActivityQueries
from backburner.store.queries.children import ChildQueries
from backburner.store.queries.conversations import ConversationQueries
from backburner.store.queries.gauges import GaugeQueries
from backburner.store.queries.list_facts import ListFactQueries
from backburner.store.queries.run_pages import RunPageQueries
from backburner.store.queries.search import SearchQueries
from backburner.store.queries.timeline import TimelineQueries
from backburner.store.queries.titles import TitleQueries
from backburner.store.records.grants import GrantQueries, Grants
from backburner.store.records.memories import MemoryQueries
from backburner.store.tables import (
    conversations,
    deliveries,
    is_open,
    is_shown,
    is_unseen,
    messages,
    notices,
    questions,
    runs,
    tool_calls,
)

_owner = bindparam("owner", type_=Text())
_conversation_id = bindparam("conversation_id", type_=Text())
_run_id = bindparam("run_id", type_=Text())
_limit = bindparam("limit", type_=BigInteger())
_number = bindparam("number", type_=BigInteger())
_at, _id = bindparam("at", type_=runs.c.started_at.type), bindparam("id", type_=Text())

messages_page = (
    select(messages)
    .where(
        messages.c.user_id == _owner,
        messages.c.conversation_id == _conversation_id,
        messages.c.replaced_at.is_(None),
    )
    .order_by(messages.c.number.desc())
    .limit(_limit)
)
#: Messages are deleted only with their conversation, so the last one of a page exists.
messages_after = messages_page.where(
    messages.c.number
    < select(messages.c.number)
    .where(messages.c.user_id == _owner, messages.c.id == _id)
    .scalar_subquery()
)
_select_questions = select(questions, conversations.c.title).join(
    conversations,
    (conversations.c.user_id == questions.c.user_id)
    & (conversations.c.id == questions.c.conversation_id),
)
questions_page = (
    _select_questions.where(questions.c.user_id == _owner, is_open)
    .order_by(questions.c.asked_at, questions.c.id)
    .limit(_limit)
)
questions_after = questions_page.where(
    tuple_(questions.c.asked_at, questions.c.id) > tuple_(_at, _id)
)
_select_question = _select_questions.where(
    questions.c.user_id == _owner, questions.c.id == _id, is_shown
)
_run_order = (runs.c.started_at, runs.c.epoch, runs.c.id)
runs_page = (
    select(runs)
    .where(runs.c.user_id == _owner, runs.c.conversation_id == _conversation_id)
    .order_by(*(column.desc() for column in _run_order))
    .limit(_limit)
)
runs_after = runs_page.where(tuple_(*_run_order) < tuple_(_at, _number, _id))
_select_calls = (
    select(tool_calls)
    .where(tool_calls.c.user_id == _owner, tool_calls.c.run_id == _run_id)
    .order_by(tool_calls.c.started_at, tool_calls.c.id)
)
#: Results may be long, and a list of steps needs none.
_select_calls_alone = _select_calls.with_only_columns(
    *(column for column in tool_calls.c if column.name != "result"), null().label("result")
)
_select_call = select(tool_calls).where(
    tool_calls.c.user_id == _owner, tool_calls.c.run_id == _run_id, tool_calls.c.id == _id
)
notices_page = (
    select(notices, conversations.c.title)
    .join(
        conversations,
        (conversations.c.user_id == notices.c.user_id)
        & (conversations.c.id == notices.c.conversation_id),
    )
    .where(notices.c.user_id == _owner, is_shown)
    .order_by(notices.c.number.desc())
    .limit(_limit)
)
_last_number = (
    select(notices.c.number)
    .where(notices.c.user_id == _owner, notices.c.id == _id)
    .scalar_subquery()
)
#: If the last notice of a page was deleted with its conversation, the page continues by id.
_older_number = (
    select(func.max(notices.c.number) + 1)
    .where(notices.c.user_id == _owner, notices.c.id < _id)
    .scalar_subquery()
)
notices_after = notices_page.where(notices.c.number < func.coalesce(_last_number, _older_number))
_OF_DELIVERY = "notice_id number channel target state attempts not_before error".split()


def with_deliveries(notices_listed: Select[Any]) -> Select[Any]:
    """Add the deliveries of the notices on a page, a row for each, in the same statement.

    No index has the notice of a delivery, so those of the conversations on the page are read once.
    """
    page = notices_listed.cte("page")
    part = (
        select(*(deliveries.c[name] for name in _OF_DELIVERY))
        .where(
            deliveries.c.user_id == _owner,
            deliveries.c.conversation_id.in_(select(page.c.conversation_id)),
            deliveries.c.notice_id.in_(select(page.c.id)),
        )
        .cte("part")
        # Otherwise SQLite reads them again for each notice.
        .prefix_with("MATERIALIZED")
    )
    parts = [column.label(f"part_{column.name}") for column in part.c]
    return (
        select(page, *parts)
        .outerjoin(part, part.c.notice_id == page.c.id)
        .order_by(page.c.number.desc(), part.c.number)
    )


@cache
def _list_notices(*, follows: bool, unseen: bool) -> Select[Any]:
    """Build the statement for a page when one is read: that takes longer than most imports."""
    page = notices_after if follows else notices_page
    return with_deliveries(page.where(is_unseen) if unseen else page)


unseen_numbers = (
    select(notices.c.number)
    .join(
        conversations,
        (conversations.c.user_id == notices.c.user_id)
        & (conversations.c.id == notices.c.conversation_id),
    )
    .where(notices.c.user_id == _owner, is_unseen, is_shown)
    .limit(_limit)
)
_count_unseen = select(func.count()).select_from(unseen_numbers.subquery())
_select_conversation = select(conversations.c.id).where(
    conversations.c.user_id == _owner, conversations.c.id == _id, is_shown
)


class Browse(
    ConversationQueries,
    ChildQueries,
    ActivityQueries,
    ListFactQueries,
    SearchQueries,
    TimelineQueries,
    RunPageQueries,
    TitleQueries,
    GrantQueries,
    MemoryQueries,
    ProfileQueries,
    GaugeQueries,
):
    def require(self, user: UserId, conversation_id: ConversationId) -> ConversationId:
        """Raise `NotFound` unless a conversation exists, instead of showing an empty page."""
        self._read_one(_select_conversation, {"owner": user, "id": conversation_id})
        return conversation_id

    def messages(
        self, user: UserId, conversation_id: ConversationId, after: PageKey | None, *, limit: int
    ) -> Sequence[Message]:
        self.require(user, conversation_id)
        values = {"owner": user, "conversation_id": conversation_id, "limit": limit}
        statement = messages_page
        if after is not None:
            statement, values["id"] = messages_after, after[0]
        return [to_message(row) for row in self._execute(statement, values)]

    def questions(
        self, user: UserId, after: PageKey | None, *, limit: int
    ) -> Sequence[QuestionRow]:
        values: dict[str, Any] = {"owner": user, "limit": limit}
        statement = questions_page
        if after is not None:
            statement, (values["at"], values["id"]) = questions_after, after
        return [_to_question_row(row) for row in self._execute(statement, values)]

    def question(self, user: UserId, question_id: QuestionId) -> QuestionRow:
        row = self._read_one(_select_question, {"owner": user, "id": question_id})
        return _to_question_row(row)

    def runs(
        self, user: UserId, conversation_id: ConversationId, after: PageKey | None, *, limit: int
    ) -> Sequence[Run]:
        self.require(user, conversation_id)
        values = {"owner": user, "conversation_id": conversation_id, "limit": limit}
        statement = runs_page
        if after is not None:
            statement, (values["at"], values["number"], values["id"]) = runs_after, after
        return [to_run(row) for row in self._execute(statement, values)]

    def calls(
        self, user: UserId, run_id: RunId, *, with_results: bool = True
    ) -> Sequence[ToolCallRow]:
        statement = _select_calls if with_results else _select_calls_alone
        rows = self._execute(statement, {"owner": user, "run_id": run_id})
        return [_to_call_row(row) for row in rows]

    def call(self, user: UserId, run_id: RunId, call_id: CallId) -> ToolCallRow:
        values = {"owner": user, "run_id": run_id, "id": call_id}
        row = self._execute(_select_call, values).one_or_none()
        if row is None:
            raise NotFound
        return _to_call_row(row)

    def grants(self, user: UserId, conversation_id: ConversationId) -> Sequence[GrantRow]:
        self.require(user, conversation_id)
        return Grants(self.tx).given(user, conversation_id)

    def notices(
        self, user: UserId, after: PageKey | None, *, unseen: bool, limit: int
    ) -> Sequence[NoticeRow]:
        values: dict[str, Any] = {"owner": user, "limit": limit}
        if after is not None:
            values["id"] = after[0]
        statement = _list_notices(follows=after is not None, unseen=unseen)
        rows = self._execute(statement, values)
        return [
            _to_notice_row(list(of_notice))
            for _, of_notice in groupby(rows, key=attrgetter("number"))
        ]

    def count_unseen_notices(self, user: UserId, *, limit: int) -> int:
        return int(self._execute(_count_unseen, {"owner": user, "limit": limit}).scalar_one())


def _to_question_row(row: Row[Any]) -> QuestionRow:
    return QuestionRow(to_question(row), ConversationId(row.conversation_id), row.title)


def _to_call_row(row: Row[Any]) -> ToolCallRow:
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
        files=load_references(row.files),
    )


def _to_notice_row(rows: Sequence[Row[Any]]) -> NoticeRow:
    """Read a notice from its rows: one for each delivery, or one without any."""
    row = rows[0]
    return NoticeRow(
        id=NoticeId(row.id),
        conversation_id=ConversationId(row.conversation_id),
        run_id=row.run_id and RunId(row.run_id),
        title=row.title,
        kind=NoticeKind(row.kind),
        text=row.text,
        message=row.message,
        options=tuple(json.loads(row.options)),
        question_id=row.question_id and QuestionId(row.question_id),
        created_at=row.created_at,
        seen_at=row.seen_at,
        deliveries=tuple(_to_delivery_row(part) for part in rows if part.part_number is not None),
    )


def _to_delivery_row(row: Row[Any]) -> DeliveryRow:
    state = DeliveryState(row.part_state)
    return DeliveryRow(
        channel=row.part_channel,
        target=row.part_target,
        state=state,
        attempts=row.part_attempts,
        error=row.part_error,
        next_try_at=row.part_not_before if state is DeliveryState.WAITING else None,
    )
