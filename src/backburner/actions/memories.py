"""What is remembered across conversations: written by its user, or by an agent at work for them.

What an agent writes once it has read words of others is marked so, and does not touch what is
marked otherwise.
"""

from collections.abc import Sequence

from backburner.actions.deps import Deps
from backburner.actions.origin import Origin
from backburner.core.conversation import Conversation
from backburner.core.errors import BadRequest, Conflict, LimitReached, NotFound
from backburner.core.ids import UserId
from backburner.core.memory import Memory, query_words
from backburner.core.validation import check_text
from backburner.ports import MemoryWrite, NewMemory, Tx

MAX_KEY_CHARS = 200
MAX_MEMORY_CHARS = 10_000
MAX_QUERY_CHARS = 1_000
MAX_MEMORIES = 10_000
#: Found by an agent in one search.
MAX_SEARCH_RESULTS = 10


async def remember(deps: Deps, user: UserId, key: str, text: str) -> tuple[Memory, bool]:
    """Keep something for a user who says so, and tell whether there was nothing under its key."""
    _check(key, text)

    def work(tx: Tx) -> tuple[Memory, bool]:
        written = _write(tx, user, NewMemory(key=key, text=text))
        return tx.browse.memory(user, key), written is MemoryWrite.NEW

    return await deps.store.transact(work)


async def forget(deps: Deps, user: UserId, key: str) -> None:
    await deps.store.transact(lambda tx: tx.memories.remove(user, key))


async def search(deps: Deps, user: UserId, query: str, *, limit: int) -> Sequence[Memory]:
    """Find what has any word of a query, best first."""
    words = query_words(check_text("The query", query, limit=MAX_QUERY_CHARS))
    return await deps.store.transact(lambda tx: tx.memories.search(user, words, limit=limit))


async def remember_from(deps: Deps, origin: Origin, key: str, text: str) -> bool:
    """Keep something that an agent writes; say whether there was nothing under its key."""
    _check(key, text)
    tried = list[MemoryWrite]()

    def work(tx: Tx) -> bool:
        here = origin.hold(tx)
        swayed = _may_be_injected(tx, here)
        memory = NewMemory(key=key, text=text, conversation_id=here.id, outside=swayed)
        written = _write(tx, origin.user, memory, keep_trusted=swayed)
        # An earlier try may have gone through, and only its answer been lost.
        tried.append(written)
        return tried[0] is MemoryWrite.NEW

    return await deps.store.transact(work)


async def forget_from(deps: Deps, origin: Origin, key: str) -> None:
    """Delete a memory that an agent has no more use for."""
    tried = list[Tx]()

    def work(tx: Tx) -> None:
        swayed = _may_be_injected(tx, origin.hold(tx))
        try:
            gone = tx.memories.remove(origin.user, key, keep_trusted=swayed)
        except NotFound:
            if tried:
                return
            raise NotFound(
                f"Nothing is remembered under {key[:80]!r}.", hint="memory_search shows what is."
            ) from None
        tried.append(tx)
        if not gone:
            raise _protected(key)

    await deps.store.transact(work)


async def search_from(deps: Deps, origin: Origin, query: str) -> Sequence[Memory]:
    """Find what an agent asks for; if words of others are among it, the agent has read them."""
    words = query_words(check_text("The query", query, limit=MAX_QUERY_CHARS))

    def work(tx: Tx) -> Sequence[Memory]:
        found = tx.memories.search(origin.user, words, limit=MAX_SEARCH_RESULTS)
        if origin.turn is not None and any(memory.outside for memory in found):
            here = tx.turns.hold(origin.turn)
            if not here.outside_read and deps.can_be_injected(here.profile):
                tx.turns.mark_outside_text(origin.turn)
        return found

    return await deps.store.transact(work)


def _check(key: str, text: str) -> None:
    check_text("The key", key, limit=MAX_KEY_CHARS)
    check_text("The memory", text, limit=MAX_MEMORY_CHARS)
    if not key.strip() or not text.strip():
        raise BadRequest("A memory needs a key and a text.", hint="Say what to remember.")


def _write(tx: Tx, user: UserId, memory: NewMemory, *, keep_trusted: bool = False) -> MemoryWrite:
    written = tx.memories.put(user, memory, keep_trusted=keep_trusted)
    if written is MemoryWrite.REFUSED:
        raise _protected(memory.key)
    if written is MemoryWrite.NEW and tx.memories.count(user) > MAX_MEMORIES:
        raise LimitReached(
            f"There are {MAX_MEMORIES:,} memories already.", hint="Delete some of them."
        )
    return written


def _may_be_injected(tx: Tx, here: Conversation) -> bool:
    """See whether words of others may be behind what is done here, or behind the work itself."""
    if here.outside_read or here.parent_id is None:
        return here.outside_read
    try:
        parent = tx.conversations.load(here.user_id, here.parent_id)
    except NotFound:
        return False
    return _may_be_injected(tx, parent)


def _protected(key: str) -> Conflict:
    return Conflict(
        f"The memory {key[:80]!r} was written by the user or in a talk with them alone, and words"
        " of others were read here.",
        hint="Keep it under another key, or tell the user.",
    )
