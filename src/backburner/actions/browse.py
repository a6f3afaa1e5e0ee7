"""Read-only lists and details of a user's own data, with pagination."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Generic, TypeVar

from backburner.actions.deps import Deps
from backburner.actions.origin import NO_CONVERSATION
from backburner.actions.waits import shown
from backburner.core.allowance import Allowance
from backburner.core.conversation import Message
from backburner.core.errors import NotFound
from backburner.core.ids import ConversationId, MessageId, QuestionId, RunId, UserId
from backburner.core.memory import Memory
from backburner.core.run import Run
from backburner.core.work.activity import CallSummary
from backburner.ports import (
    Children,
    ConversationFilter,
    ConversationRow,
    Gauges,
    GrantRow,
    NoticeRow,
    PageKey,
    QuestionRow,
    Tx,
)

#: Children with work to do that are shown with a conversation.
MAX_CHILDREN_SHOWN = 10

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    items: Sequence[T]
    #: Key of the last row, if there are more; None: this is the last page.
    next_key: PageKey | None


@dataclass(frozen=True, slots=True)
class DisplayContext:
    """The current time and the user's time zone, for showing times."""

    now: datetime
    zone: str
    #: Why conversations wait whose work is due, or for what sign-in.
    waits: Mapping[ConversationId, str] = field(default_factory=dict)
    #: What becomes of work that names connections which it cannot use now.
    warnings: Mapping[ConversationId, Sequence[str]] = field(default_factory=dict)
    #: The most that operators allow the user.
    ceilings: Sequence[Allowance] = ()


async def conversations(
    deps: Deps,
    user: UserId,
    filters: ConversationFilter,
    after: PageKey | None,
    *,
    limit: int,
    with_children: bool = False,
) -> tuple[Page[ConversationRow], DisplayContext]:
    def work(tx: Tx) -> tuple[Page[ConversationRow], DisplayContext]:
        page = tx.browse.conversations(user, filters, after, limit=limit)
        rows = page.conversations
        if with_children:
            rows = _with_children(tx, user, rows)
        return Page(rows, page.next_key), display_context(tx, deps, user, rows)

    return await deps.store.read(work)


async def conversation(
    deps: Deps, user: UserId, conversation_id: ConversationId
) -> tuple[ConversationRow, DisplayContext]:
    def work(tx: Tx) -> tuple[ConversationRow, DisplayContext]:
        (row,) = _with_children(tx, user, [tx.browse.conversation(user, conversation_id)])
        return row, display_context(tx, deps, user, [row])

    return await deps.store.read(work)


async def titles(
    deps: Deps, user: UserId, conversation_ids: Sequence[ConversationId]
) -> Mapping[ConversationId, str]:
    """Read the titles of conversations; those that do not exist are left out."""
    return await deps.store.read(lambda tx: tx.browse.titles(user, conversation_ids))


async def those_left(
    deps: Deps, user: UserId, conversation_ids: Sequence[ConversationId]
) -> tuple[Sequence[ConversationRow], DisplayContext]:
    """Read a few conversations as a list shows them; those that do not exist are left out."""

    def work(tx: Tx) -> tuple[Sequence[ConversationRow], DisplayContext]:
        rows = list[ConversationRow]()
        for conversation_id in conversation_ids:
            with suppress(NotFound):
                rows.append(tx.browse.conversation(user, conversation_id))
        shown = _with_children(tx, user, rows)
        return shown, display_context(tx, deps, user, shown)

    return await deps.store.read(work)


async def messages(
    deps: Deps, user: UserId, conversation_id: ConversationId, after: PageKey | None, *, limit: int
) -> Page[Message]:
    rows = await deps.store.read(
        lambda tx: tx.browse.messages(user, conversation_id, after, limit=limit + 1)
    )
    return make_page(rows, limit, lambda last: (last.id,))


async def message(
    deps: Deps, user: UserId, conversation_id: ConversationId, message_id: MessageId
) -> Message:
    return await deps.store.read(lambda tx: tx.replies.message(user, conversation_id, message_id))


async def questions(
    deps: Deps, user: UserId, after: PageKey | None, *, limit: int
) -> Page[QuestionRow]:
    rows = await deps.store.read(lambda tx: tx.browse.questions(user, after, limit=limit + 1))
    return make_page(rows, limit, lambda last: (last.question.asked_at, last.question.id))


async def question(deps: Deps, user: UserId, question_id: QuestionId) -> QuestionRow:
    return await deps.store.read(lambda tx: tx.browse.question(user, question_id))


async def runs(
    deps: Deps, user: UserId, conversation_id: ConversationId, after: PageKey | None, *, limit: int
) -> Page[Run]:
    return await deps.store.read(
        lambda tx: runs_page(tx, user, conversation_id, after, limit=limit)
    )


def runs_page(
    tx: Tx, user: UserId, conversation_id: ConversationId, after: PageKey | None, *, limit: int
) -> Page[Run]:
    rows = tx.browse.runs(user, conversation_id, after, limit=limit + 1)
    return make_page(rows, limit, lambda last: (last.started_at, last.epoch, last.id))


async def call_summaries(
    deps: Deps, user: UserId, run_id: RunId, after: PageKey | None, *, limit: int
) -> Page[CallSummary]:
    rows = await deps.store.read(
        lambda tx: tx.browse.call_summaries(user, run_id, after, limit=limit + 1)
    )
    return make_page(rows, limit, lambda last: (last.started_at, last.id))


async def notices(
    deps: Deps, user: UserId, after: PageKey | None, *, unseen: bool, limit: int
) -> Page[NoticeRow]:
    rows = await deps.store.read(
        lambda tx: tx.browse.notices(user, after, unseen=unseen, limit=limit + 1)
    )
    return make_page(rows, limit, lambda last: (last.id,))


async def grants(deps: Deps, user: UserId, conversation_id: ConversationId) -> Sequence[GrantRow]:
    return await deps.store.read(lambda tx: tx.browse.grants(user, conversation_id))


async def all_grants(
    deps: Deps, user: UserId, after: PageKey | None, *, limit: int
) -> Page[GrantRow]:
    rows = await deps.store.read(lambda tx: tx.browse.all_grants(user, after, limit=limit + 1))
    return make_page(rows, limit, lambda last: (last.given_at, last.grant.id))


async def memories(deps: Deps, user: UserId, after: PageKey | None, *, limit: int) -> Page[Memory]:
    rows = await deps.store.read(lambda tx: tx.browse.memories(user, after, limit=limit + 1))
    return make_page(rows, limit, lambda last: (last.key,))


async def memory(deps: Deps, user: UserId, key: str) -> Memory:
    return await deps.store.read(lambda tx: tx.browse.memory(user, key))


async def gauges(deps: Deps) -> Gauges:
    return await deps.store.read(lambda tx: tx.browse.gauges(now=tx.now))


def _with_children(
    tx: Tx, user: UserId, rows: Sequence[ConversationRow]
) -> Sequence[ConversationRow]:
    ids = [row.conversation.id for row in rows]
    children = tx.browse.children(user, ids, limit=MAX_CHILDREN_SHOWN)
    return [replace(row, children=children.get(row.conversation.id, Children())) for row in rows]


def display_context(
    tx: Tx, deps: Deps, user: UserId, rows: Sequence[ConversationRow]
) -> DisplayContext:
    conversations = [row.conversation for row in rows]
    return DisplayContext(
        now=tx.now,
        zone=tx.users.load(user).zone,
        waits={
            **shown.awaited_places(tx, deps, user, conversations),
            **shown.awaited_sign_ins(tx, user, conversations),
        },
        warnings=shown.warnings_for(tx, user, conversations),
        ceilings=tx.spending.state(user, NO_CONVERSATION, []).ceilings,
    )


def make_page(
    rows: Sequence[T],
    limit: int,
    key_of: Callable[[T], PageKey],
    *,
    down_to: PageKey | None = None,
) -> Page[T]:
    """Make a page from `limit + 1` rows; the extra row only shows that there are more.

    It ends at `down_to`, the key of an earlier page, if that many rows are not more than `limit`.
    The rows have descending keys then.
    """
    shown = [row for row in rows[:limit] if down_to is None or key_of(row) >= down_to]
    return Page(shown, key_of(shown[-1]) if shown and len(rows) > len(shown) else None)
