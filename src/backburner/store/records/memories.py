"""Memories of users, each under a key, and the index of their words.

The words are rows of a table, so that both databases give the same results in any language and read
only the rows of one user.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import (
    BindParameter,
    CompoundSelect,
    Float,
    Row,
    Select,
    Text,
    and_,
    bindparam,
    delete,
    func,
    insert,
    literal_column,
    or_,
    select,
    union_all,
    update,
)

from backburner.core.ids import ConversationId, UserId
from backburner.core.memory import Memory, index_words
from backburner.ports import MemoryWrite, NewMemory, PageKey
from backburner.store.context import Group
from backburner.store.dialect import insert_if_absent
from backburner.store.tables import memories, memory_words

#: The last character there is.
_LAST_CHARACTER = "\U0010ffff"
#: Rows that are read for each word.
MAX_HITS = 500

_owner, _key = bindparam("owner", type_=Text()), bindparam("memory_key", type_=Text())
_by_key = and_(memories.c.user_id == _owner, memories.c.key == _key)
_may_change = or_(memories.c.outside, bindparam("any_origin", type_=memories.c.outside.type))
_select_by_key = select(memories).where(_by_key)
_update = (
    update(memories)
    .where(_by_key, _may_change)
    .values(
        text=bindparam("new_text"),
        conversation_id=bindparam("new_conversation_id"),
        outside=bindparam("is_outside"),
        updated_at=bindparam("at"),
    )
)
_delete = delete(memories).where(_by_key, _may_change)
_count = select(func.count()).select_from(memories).where(memories.c.user_id == _owner)
_delete_words = delete(memory_words).where(
    memory_words.c.user_id == _owner, memory_words.c.key == _key
)
_insert_words = insert(memory_words)
select_page = (
    select(memories)
    .where(memories.c.user_id == _owner)
    .order_by(memories.c.key)
    .limit(bindparam("limit"))
)
select_page_after = select_page.where(memories.c.key > bindparam("last_key", type_=Text()))


@cache
def select_matches(count: int, *, prefix: bool) -> Select[Any]:
    """Build a search for any of `count` words, or with the last one as a prefix; best first.

    The rarer a word, the higher its score. At most `MAX_HITS` rows are read for each word, so the
    time of a search is bounded.
    """
    scores = _scores(_hits(count, prefix=prefix)).subquery("scores")
    return (
        select(memories, scores.c.score)
        .join(scores, memories.c.key == scores.c.key)
        .where(memories.c.user_id == _owner)
        .order_by(scores.c.score.desc(), memories.c.updated_at.desc(), memories.c.key)
        .limit(bindparam("limit"))
    )


def _hits(count: int, *, prefix: bool) -> CompoundSelect[Any]:
    word = memory_words.c.word
    owned = select(memory_words.c.key, word).where(memory_words.c.user_id == _owner)
    hits = [owned.where(word == _word(number)).limit(MAX_HITS) for number in range(count)]
    if prefix:
        has_prefix = and_(word > _word(count - 1), word < bindparam("prefix_end", type_=Text()))
        hits.append(owned.where(has_prefix).limit(MAX_HITS))
    return union_all(*(select(hit.subquery(f"hits_{number}")) for number, hit in enumerate(hits)))


def _word(number: int) -> BindParameter[str]:
    return bindparam(f"word_{number}", type_=Text())


def _scores(all_hits: CompoundSelect[Any]) -> Select[Any]:
    hits = all_hits.subquery("hits")
    share = literal_column("1000000.0", Float) / func.count().over(partition_by=hits.c.word)
    shares = select(hits.c.key, share.label("share")).subquery("shares")
    # Rounded: the sum of floats depends on their order.
    score = func.round(func.sum(shares.c.share)).label("score")
    return select(shares.c.key, score).group_by(shares.c.key)


_select_newest = (
    select(memories, literal_column("0", Float).label("score"))
    .where(memories.c.user_id == _owner, ~memories.c.outside)
    .order_by(memories.c.updated_at.desc())
    .limit(bindparam("limit"))
)


@cache
def select_recalled(count: int) -> Select[Any]:
    """Build the union of the newest trusted memories and the matches of `count` words."""
    sources = [_select_newest, *([select_matches(count, prefix=False)] if count else [])]
    recalled = union_all(*(select(source.subquery()) for source in sources)).subquery("recalled")
    best_first = (recalled.c.score.desc(), recalled.c.updated_at.desc(), recalled.c.key)
    return select(recalled).order_by(*best_first)


class Memories(Group):
    def count(self, user: UserId) -> int:
        return int(self._execute(_count, {"owner": user}).scalar_one())

    def put(self, user: UserId, memory: NewMemory, *, keep_trusted: bool = False) -> MemoryWrite:
        """Insert or overwrite a memory; with `keep_trusted` a trusted one is not overwritten."""
        row = {
            "user_id": user,
            "key": memory.key,
            "text": memory.text,
            "conversation_id": memory.conversation_id,
            "outside": memory.outside,
            "created_at": self.tx.now,
            "updated_at": self.tx.now,
        }
        if insert_if_absent(self.connection, memories, row):
            self._insert_words(user, memory)
            return MemoryWrite.NEW
        values = {
            "owner": user,
            "memory_key": memory.key,
            "new_text": memory.text,
            "new_conversation_id": memory.conversation_id,
            "is_outside": memory.outside,
            "at": self.tx.now,
            "any_origin": not keep_trusted,
        }
        if self._execute(_update, values).rowcount != 1:
            return MemoryWrite.REFUSED
        self._execute(_delete_words, {"owner": user, "memory_key": memory.key})
        self._insert_words(user, memory)
        return MemoryWrite.REPLACED

    def remove(self, user: UserId, key: str, *, keep_trusted: bool = False) -> bool:
        """Delete a memory with its words; False: it is trusted, and `keep_trusted` is set."""
        values = {"owner": user, "memory_key": key, "any_origin": not keep_trusted}
        if self._execute(_delete, values).rowcount == 1:
            return True
        self._read_one(_select_by_key, {"owner": user, "memory_key": key})
        return False

    def search(self, user: UserId, words: Sequence[str], *, limit: int) -> Sequence[Memory]:
        if not words:
            return []
        statement = select_matches(len(words), prefix=True)
        rows = self._execute(statement, _search_values(user, words, limit))
        return [_to_memory(row) for row in rows]

    def recall(self, user: UserId, words: Sequence[str], *, limit: int) -> Sequence[Memory]:
        rows = self._execute(select_recalled(len(words)), _search_values(user, words, limit))
        recalled: dict[str, Memory] = {}
        for row in rows:
            recalled.setdefault(row.key, _to_memory(row))
        return list(recalled.values())

    def _insert_words(self, user: UserId, memory: NewMemory) -> None:
        words = index_words(f"{memory.key}\n{memory.text}")
        rows = [{"user_id": user, "word": word, "key": memory.key} for word in words]
        if rows:
            self._execute(_insert_words, rows)


class MemoryQueries(Group):
    def memories(self, user: UserId, after: PageKey | None, *, limit: int) -> Sequence[Memory]:
        values: dict[str, Any] = {"owner": user, "limit": limit}
        statement = select_page
        if after is not None:
            statement, values["last_key"] = select_page_after, after[0]
        return [_to_memory(row) for row in self._execute(statement, values)]

    def memory(self, user: UserId, key: str) -> Memory:
        return _to_memory(self._read_one(_select_by_key, {"owner": user, "memory_key": key}))


def _search_values(user: UserId, words: Sequence[str], limit: int) -> dict[str, Any]:
    prefix_end = "".join(words[-1:]) + _LAST_CHARACTER
    numbered = {f"word_{number}": word for number, word in enumerate(words)}
    return {"owner": user, "limit": limit, "prefix_end": prefix_end, **numbered}


def _to_memory(row: Row[Any]) -> Memory:
    return Memory(
        key=row.key,
        text=row.text,
        conversation_id=row.conversation_id and ConversationId(row.conversation_id),
        outside=row.outside,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
