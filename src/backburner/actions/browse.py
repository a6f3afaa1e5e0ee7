"""Looking: what there is of a user's own, a page at a time. Nothing changes by it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from backburner.actions.deps import Deps
from backburner.core.conversation import Message
from backburner.core.ids import ConversationId, MessageId, QuestionId, RunId, UserId
from backburner.core.memory import Memory
from backburner.core.run import Run
from backburner.ports import (
    ConversationFilter,
    ConversationRow,
    Gauges,
    GrantRow,
    NoticeRow,
    PageKey,
    QuestionRow,
    ToolCallRow,
    Tx,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    items: Sequence[T]
    #: Where the next one begins; None: this is the last.
    next_key: PageKey | None


@dataclass(frozen=True, slots=True)
class DisplayContext:
    """When and where something is looked at: times are told by it."""

    now: datetime
    zone: str


async def conversations(
    deps: Deps, user: UserId, wanted: ConversationFilter, after: PageKey | None, *, limit: int
) -> tuple[Page[ConversationRow], DisplayContext]:
    def work(tx: Tx) -> tuple[Page[ConversationRow], DisplayContext]:
        found = tx.browse.conversations(user, wanted, after, limit=limit)
        return Page(found.conversations, found.next_key), _here(tx, user)

    return await deps.store.transact(work)


async def conversation(
    deps: Deps, user: UserId, conversation_id: ConversationId
) -> tuple[ConversationRow, DisplayContext]:
    return await deps.store.transact(
        lambda tx: (tx.browse.conversation(user, conversation_id), _here(tx, user))
    )


async def messages(
    deps: Deps, user: UserId, conversation_id: ConversationId, after: PageKey | None, *, limit: int
) -> Page[Message]:
    found = await deps.store.transact(
        lambda tx: tx.browse.messages(user, conversation_id, after, limit=limit + 1)
    )
    return make_page(found, limit, lambda last: (last.id,))


async def message(deps: Deps, user: UserId, message_id: MessageId) -> Message:
    return await deps.store.transact(lambda tx: tx.browse.message(user, message_id))


async def questions(
    deps: Deps, user: UserId, after: PageKey | None, *, limit: int
) -> Page[QuestionRow]:
    found = await deps.store.transact(lambda tx: tx.browse.questions(user, after, limit=limit + 1))
    return make_page(found, limit, lambda last: (last.question.asked_at, last.question.id))


async def question(deps: Deps, user: UserId, question_id: QuestionId) -> QuestionRow:
    return await deps.store.transact(lambda tx: tx.browse.question(user, question_id))


async def runs(
    deps: Deps, user: UserId, conversation_id: ConversationId, after: PageKey | None, *, limit: int
) -> Page[Run]:
    return await deps.store.transact(
        lambda tx: runs_page(tx, user, conversation_id, after, limit=limit)
    )


def runs_page(
    tx: Tx, user: UserId, conversation_id: ConversationId, after: PageKey | None, *, limit: int
) -> Page[Run]:
    found = tx.browse.runs(user, conversation_id, after, limit=limit + 1)
    return make_page(found, limit, lambda last: (last.started_at, last.epoch, last.id))


async def run(deps: Deps, user: UserId, run_id: RunId) -> tuple[Run, Sequence[ToolCallRow]]:
    return await deps.store.transact(
        lambda tx: (tx.runs.load(user, run_id), tx.browse.calls(user, run_id))
    )


async def notices(
    deps: Deps, user: UserId, after: PageKey | None, *, unseen: bool, limit: int
) -> Page[NoticeRow]:
    found = await deps.store.transact(
        lambda tx: tx.browse.notices(user, after, unseen=unseen, limit=limit + 1)
    )
    return make_page(found, limit, lambda last: (last.id,))


async def grants(deps: Deps, user: UserId, conversation_id: ConversationId) -> Sequence[GrantRow]:
    return await deps.store.transact(lambda tx: tx.browse.grants(user, conversation_id))


async def all_grants(
    deps: Deps, user: UserId, after: PageKey | None, *, limit: int
) -> Page[GrantRow]:
    found = await deps.store.transact(lambda tx: tx.browse.all_grants(user, after, limit=limit + 1))
    return make_page(found, limit, lambda last: (last.given_at, last.grant.id))


async def memories(deps: Deps, user: UserId, after: PageKey | None, *, limit: int) -> Page[Memory]:
    found = await deps.store.transact(lambda tx: tx.browse.memories(user, after, limit=limit + 1))
    return make_page(found, limit, lambda last: (last.key,))


async def memory(deps: Deps, user: UserId, key: str) -> Memory:
    return await deps.store.transact(lambda tx: tx.browse.memory(user, key))


async def gauges(deps: Deps) -> Gauges:
    return await deps.store.transact(lambda tx: tx.browse.gauges(now=tx.now))


def _here(tx: Tx, user: UserId) -> DisplayContext:
    return DisplayContext(tx.now, tx.users.load(user).zone)


def make_page(found: Sequence[T], limit: int, mark: Callable[[T], PageKey]) -> Page[T]:
    """Leave out the one too many that was asked for to see whether there are more."""
    shown = found[:limit]
    return Page(shown, mark(shown[-1]) if len(found) > limit else None)
