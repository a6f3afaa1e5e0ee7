"""Memories across conversations, written by the user or by an agent.

A memory that an agent writes after reading outside text is marked, and cannot replace or delete an
unmarked one.
"""

from collections.abc import Sequence

from backburner.actions.deps import Deps
from backburner.actions.origin import Origin
from backburner.core.errors import BadRequest, Conflict, LimitReached, NotFound
from backburner.core.ids import UserId
from backburner.core.memory import Memory, query_words
from backburner.core.validation import check_text
from backburner.ports import EventKind, MemoryWrite, NewMemory, Tx

MAX_KEY_CHARS = 200
MAX_MEMORY_CHARS = 10_000
MAX_QUERY_CHARS = 1_000
MAX_MEMORIES = 10_000
#: Results of one search by an agent.
MAX_SEARCH_RESULTS = 10


async def remember(deps: Deps, user: UserId, key: str, text: str) -> tuple[Memory, bool]:
    """Save a memory for the user; True: its key is new."""
    _check(key, text)

    def work(tx: Tx) -> tuple[Memory, bool]:
        written = _write(tx, user, NewMemory(key=key, text=text))
        return tx.browse.memory(user, key), written is MemoryWrite.NEW

    return await deps.store.transact(work)


async def forget(deps: Deps, user: UserId, key: str) -> None:
    def work(tx: Tx) -> None:
        tx.memories.remove(user, key)
        tx.changed(user, None, EventKind.USER)

    await deps.store.transact(work)


async def search(deps: Deps, user: UserId, query: str, *, limit: int) -> Sequence[Memory]:
    """Find memories with any word of a query, best first."""
    words = query_words(check_text("The query", query, limit=MAX_QUERY_CHARS))
    return await deps.store.read(lambda tx: tx.memories.search(user, words, limit=limit))


async def remember_from(deps: Deps, origin: Origin, key: str, text: str) -> bool:
    """Save a memory for an agent; True: its key is new."""
    _check(key, text)
    attempts = list[MemoryWrite]()

    def work(tx: Tx) -> bool:
        here = origin.hold(tx)
        untrusted = here.outside_read
        memory = NewMemory(key=key, text=text, conversation_id=here.id, outside=untrusted)
        written = _write(tx, origin.user, memory, keep_trusted=untrusted)
        # An earlier attempt may have been committed although its result was lost.
        attempts.append(written)
        return attempts[0] is MemoryWrite.NEW

    return await deps.store.transact(work)


async def forget_from(deps: Deps, origin: Origin, key: str) -> None:
    """Delete a memory for an agent."""
    attempts = list[Tx]()

    def work(tx: Tx) -> None:
        untrusted = origin.hold(tx).outside_read
        try:
            deleted = tx.memories.remove(origin.user, key, keep_trusted=untrusted)
        except NotFound:
            # An earlier attempt may have been committed although its result was lost.
            if attempts:
                return
            raise NotFound(
                f"There is no memory {key[:80]!r}.", hint="Search for its key."
            ) from None
        attempts.append(tx)
        if not deleted:
            raise _protected(key)
        tx.changed(origin.user, None, EventKind.USER)

    await deps.store.transact(work)


async def search_from(deps: Deps, origin: Origin, query: str) -> Sequence[Memory]:
    """Search for an agent; results with outside text mark its session."""
    words = query_words(check_text("The query", query, limit=MAX_QUERY_CHARS))

    def work(tx: Tx) -> Sequence[Memory]:
        memories = tx.memories.search(origin.user, words, limit=MAX_SEARCH_RESULTS)
        if any(memory.outside for memory in memories):
            origin.mark_outside_text(tx, deps)
        return memories

    return await deps.store.transact(work)


def _check(key: str, text: str) -> None:
    check_text("The key", key, limit=MAX_KEY_CHARS)
    check_text("The memory", text, limit=MAX_MEMORY_CHARS)
    if not key.strip() or not text.strip():
        raise BadRequest("A memory needs a key and a text.", hint="Give both.")


def _write(tx: Tx, user: UserId, memory: NewMemory, *, keep_trusted: bool = False) -> MemoryWrite:
    written = tx.memories.put(user, memory, keep_trusted=keep_trusted)
    if written is MemoryWrite.REFUSED:
        raise _protected(memory.key)
    if written is MemoryWrite.NEW and tx.memories.count(user) > MAX_MEMORIES:
        raise LimitReached(f"Limit reached: {MAX_MEMORIES:,} memories.", hint="Delete some first.")
    tx.changed(user, None, EventKind.USER)
    return written


def _protected(key: str) -> Conflict:
    return Conflict(
        f"The memory {key[:80]!r} is trusted, and this conversation has read outside text, which"
        " may have suggested the change.",
        hint="Use another key, or ask the user to change it.",
    )
