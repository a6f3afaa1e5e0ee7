"""What users have had put into memory, each under a key of their own, with its words.

The words are rows, so that both databases find the same, in any language, and look only at what is
one user's.
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

from backburner.core.errors import NotFound
from backburner.core.ids import ConversationId, UserId
from backburner.core.memory import Memory, index_words
from backburner.ports import MemoryWrite, NewMemory, PageKey
from backburner.store.context import Group
from backburner.store.dialect import insert_if_absent
from backburner.store.tables import memories, memory_words

#: Later than whatever a word may go on with.
_LAST = "\U0010ffff"
#: Looked at of each word.
MOST_HITS = 500

_owner, _key = bindparam("owner", type_=Text()), bindparam("which", type_=Text())
_this = and_(memories.c.user_id == _owner, memories.c.key == _key)
_may_go = or_(memories.c.outside, bindparam("all_of_them", type_=memories.c.outside.type))
_one = select(memories).where(_this)
_change = (
    update(memories)
    .where(_this, _may_go)
    .values(
        text=bindparam("content"),
        conversation_id=bindparam("where"),
        outside=bindparam("from_outside"),
        updated_at=bindparam("at"),
    )
)
_delete = delete(memories).where(_this, _may_go)
_count = select(func.count()).select_from(memories).where(memories.c.user_id == _owner)
_forget_words = delete(memory_words).where(
    memory_words.c.user_id == _owner, memory_words.c.key == _key
)
_insert_words = insert(memory_words)
page_of_all = (
    select(memories)
    .where(memories.c.user_id == _owner)
    .order_by(memories.c.key)
    .limit(bindparam("limit"))
)
page_after = page_of_all.where(memories.c.key > bindparam("key", type_=Text()))


@cache
def found_by(count: int, *, beginning: bool) -> Select[Any]:
    """Find what has any of so many words, or one that begins with the last; the best first.

    The rarer a word, the more it counts. Of one that is everywhere only some rows are looked at,
    so a search is over in a moment, whatever there is.
    """
    scores = _scores(_hits(count, beginning=beginning)).subquery("scores")
    return (
        select(memories, scores.c.score)
        .join(scores, memories.c.key == scores.c.key)
        .where(memories.c.user_id == _owner)
        .order_by(scores.c.score.desc(), memories.c.updated_at.desc(), memories.c.key)
        .limit(bindparam("limit"))
    )


def _hits(count: int, *, beginning: bool) -> CompoundSelect[Any]:
    word = memory_words.c.word
    mine = select(memory_words.c.key, word).where(memory_words.c.user_id == _owner)
    looks = [mine.where(word == _word(number)).limit(MOST_HITS) for number in range(count)]
    if beginning:
        begins = and_(word > _word(count - 1), word < bindparam("end", type_=Text()))
        looks.append(mine.where(begins).limit(MOST_HITS))
    return union_all(*(select(look.subquery(f"look_{at}")) for at, look in enumerate(looks)))


def _word(number: int) -> BindParameter[str]:
    return bindparam(f"word_{number}", type_=Text())


def _scores(hits: CompoundSelect[Any]) -> Select[Any]:
    found = hits.subquery("hits")
    share = literal_column("1000000.0", Float) / func.count().over(partition_by=found.c.word)
    shares = select(found.c.key, share.label("share")).subquery("shares")
    # Whole numbers: the same shares in another order must not come to something else.
    score = func.round(func.sum(shares.c.share)).label("score")
    return select(shares.c.key, score).group_by(shares.c.key)


_newest = (
    select(memories, literal_column("0", Float).label("score"))
    .where(memories.c.user_id == _owner, ~memories.c.outside)
    .order_by(memories.c.updated_at.desc())
    .limit(bindparam("limit"))
)


@cache
def recalled_by(count: int) -> Select[Any]:
    looks = [_newest, *([found_by(count, beginning=False)] if count else [])]
    all_of_them = union_all(*(select(look.subquery()) for look in looks)).subquery("recalled")
    best_first = (all_of_them.c.score.desc(), all_of_them.c.updated_at.desc(), all_of_them.c.key)
    return select(all_of_them).order_by(*best_first)


class Memories(Group):
    def count(self, user: UserId) -> int:
        found: int = self._execute(_count, {"owner": user}).scalar_one()
        return found

    def put(self, user: UserId, memory: NewMemory, *, spare_own: bool = False) -> MemoryWrite:
        """Write a memory over the one that has its key; a trusted one may have to be spared."""
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
            self._note_words(user, memory)
            return MemoryWrite.NEW
        values = {
            "owner": user,
            "which": memory.key,
            "content": memory.text,
            "where": memory.conversation_id,
            "from_outside": memory.outside,
            "at": self.tx.now,
            "all_of_them": not spare_own,
        }
        if self._execute(_change, values).rowcount != 1:
            return MemoryWrite.REFUSED
        self._execute(_forget_words, {"owner": user, "which": memory.key})
        self._note_words(user, memory)
        return MemoryWrite.OVER

    def remove(self, user: UserId, key: str, *, spare_own: bool = False) -> bool:
        """Delete a memory with its words; False: it is a trusted one that was to be spared."""
        values = {"owner": user, "which": key, "all_of_them": not spare_own}
        if self._execute(_delete, values).rowcount == 1:
            return True
        if self._execute(_one, {"owner": user, "which": key}).first() is None:
            raise NotFound
        return False

    def search(self, user: UserId, words: Sequence[str], *, limit: int) -> Sequence[Memory]:
        if not words:
            return []
        asked = found_by(len(words), beginning=True)
        return [_read(row) for row in self._execute(asked, _sought(user, words, limit))]

    def recall(self, user: UserId, words: Sequence[str], *, limit: int) -> Sequence[Memory]:
        rows = self._execute(recalled_by(len(words)), _sought(user, words, limit))
        recalled: dict[str, Memory] = {}
        for row in rows:
            recalled.setdefault(row.key, _read(row))
        return list(recalled.values())

    def _note_words(self, user: UserId, memory: NewMemory) -> None:
        words = index_words(f"{memory.key}\n{memory.text}")
        if words:
            key = memory.key
            rows = [{"user_id": user, "word": word, "key": key} for word in words]
            self._execute(_insert_words, rows)


class MemoryQueries(Group):
    def memories(self, user: UserId, after: PageKey | None, *, limit: int) -> Sequence[Memory]:
        values: dict[str, Any] = {"owner": user, "limit": limit}
        asked = page_of_all
        if after is not None:
            asked, values["key"] = page_after, after[0]
        return [_read(row) for row in self._execute(asked, values)]

    def memory(self, user: UserId, key: str) -> Memory:
        row = self._execute(_one, {"owner": user, "which": key}).one_or_none()
        if row is None:
            raise NotFound
        return _read(row)


def _sought(user: UserId, words: Sequence[str], limit: int) -> dict[str, Any]:
    named = {f"word_{number}": word for number, word in enumerate(words)}
    return {"owner": user, "limit": limit, "end": "".join(words[-1:]) + _LAST, **named}


def _read(row: Row[Any]) -> Memory:
    return Memory(
        key=row.key,
        text=row.text,
        conversation_id=row.conversation_id and ConversationId(row.conversation_id),
        outside=row.outside,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
