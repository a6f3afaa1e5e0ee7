"""What users have had put into memory, each under a key of their own, with its words.

The words are rows, so that both databases find the same, in any language, and look only at what is
one user's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    Connection,
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
from backburner.core.memory import Memory
from backburner.core.words import words_of
from backburner.ports import Mark, NewMemory, Written
from backburner.store.dialect import insert_unless_there
from backburner.store.tables import memories, memory_words

#: Later than whatever a word may go on with.
_LAST = "\U0010ffff"

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
    .limit(bindparam("most"))
)
page_after = page_of_all.where(memories.c.key > bindparam("key", type_=Text()))


def _ranked() -> Select[Any]:
    """Give what has any of the words its score: of each word it has, the rarer the more."""
    word = memory_words.c.word
    is_sought = or_(
        word.in_(bindparam("words", expanding=True, type_=Text())),
        and_(word >= bindparam("begins", type_=Text()), word < bindparam("ends", type_=Text())),
    )
    share = literal_column("1000000.0", Float) / func.count().over(partition_by=word)
    hits = select(memory_words.c.key, share.label("share")).where(
        memory_words.c.user_id == _owner, is_sought
    )
    shares = hits.subquery("hits")
    # Whole numbers: the same shares in another order must not come to something else.
    score = func.round(func.sum(shares.c.share)).label("score")
    return select(shares.c.key, score).group_by(shares.c.key)


_scores = _ranked().subquery("scores")
_found = (
    select(memories, _scores.c.score)
    .join(_scores, memories.c.key == _scores.c.key)
    .where(memories.c.user_id == _owner)
    .order_by(_scores.c.score.desc(), memories.c.updated_at.desc(), memories.c.key)
    .limit(bindparam("most"))
)
_newest = (
    select(memories, literal_column("0", Float).label("score"))
    .where(memories.c.user_id == _owner, ~memories.c.outside)
    .order_by(memories.c.updated_at.desc())
    .limit(bindparam("most"))
)
_recalled = union_all(
    select(_found.subquery("found")), select(_newest.subquery("newest"))
).subquery("recalled")
_recall = select(_recalled).order_by(
    _recalled.c.score.desc(), _recalled.c.updated_at.desc(), _recalled.c.key
)


@dataclass(frozen=True, slots=True)
class Memories:
    connection: Connection
    now: datetime

    def put(self, user: UserId, memory: NewMemory, *, spare_own: bool = False) -> Written:
        return put(self.connection, user, memory, spare_own=spare_own, now=self.now)

    def remove(self, user: UserId, key: str, *, spare_own: bool = False) -> bool:
        return remove(self.connection, user, key, spare_own=spare_own)

    def count(self, user: UserId) -> int:
        return count(self.connection, user)

    def search(self, user: UserId, words: Sequence[str], *, most: int) -> Sequence[Memory]:
        return search(self.connection, user, words, most=most)

    def recall(self, user: UserId, words: Sequence[str], *, most: int) -> Sequence[Memory]:
        return recall(self.connection, user, words, most=most)


def page(
    connection: Connection, user: UserId, after: Mark | None, *, most: int
) -> Sequence[Memory]:
    values: dict[str, Any] = {"owner": user, "most": most}
    asked = page_of_all
    if after is not None:
        asked, values["key"] = page_after, after[0]
    return [_read(row) for row in connection.execute(asked, values)]


def one(connection: Connection, user: UserId, key: str) -> Memory:
    row = connection.execute(_one, {"owner": user, "which": key}).one_or_none()
    if row is None:
        raise NotFound
    return _read(row)


def count(connection: Connection, user: UserId) -> int:
    found: int = connection.execute(_count, {"owner": user}).scalar_one()
    return found


def put(
    connection: Connection,
    user: UserId,
    memory: NewMemory,
    *,
    spare_own: bool = False,
    now: datetime,
) -> Written:
    """Write a memory over the one that has its key; a trusted one may have to be spared."""
    row = {
        "user_id": user,
        "key": memory.key,
        "text": memory.text,
        "conversation_id": memory.conversation_id,
        "outside": memory.outside,
        "created_at": now,
        "updated_at": now,
    }
    if insert_unless_there(connection, memories, row):
        _note_words(connection, user, memory)
        return Written.NEW
    values = {
        "owner": user,
        "which": memory.key,
        "content": memory.text,
        "where": memory.conversation_id,
        "from_outside": memory.outside,
        "at": now,
        "all_of_them": not spare_own,
    }
    if connection.execute(_change, values).rowcount != 1:
        return Written.REFUSED
    connection.execute(_forget_words, {"owner": user, "which": memory.key})
    _note_words(connection, user, memory)
    return Written.OVER


def remove(connection: Connection, user: UserId, key: str, *, spare_own: bool = False) -> bool:
    """Delete a memory with its words; False: it is a trusted one that was to be spared."""
    values = {"owner": user, "which": key, "all_of_them": not spare_own}
    if connection.execute(_delete, values).rowcount == 1:
        return True
    if connection.execute(_one, {"owner": user, "which": key}).first() is None:
        raise NotFound
    return False


def search(
    connection: Connection, user: UserId, words: Sequence[str], *, most: int
) -> Sequence[Memory]:
    if not words:
        return []
    rows = connection.execute(_found, _sought(user, words, most))
    return [_read(row) for row in rows]


def recall(
    connection: Connection, user: UserId, words: Sequence[str], *, most: int
) -> Sequence[Memory]:
    # Without a word it is the newest alone.
    rows = connection.execute(_recall, _sought(user, words or [_LAST], most))
    recalled: dict[str, Memory] = {}
    for row in rows:
        recalled.setdefault(row.key, _read(row))
    return list(recalled.values())


def _sought(user: UserId, words: Sequence[str], most: int) -> dict[str, Any]:
    last = words[-1]
    return {
        "owner": user,
        "words": list(words),
        "begins": last,
        "ends": last + _LAST,
        "most": most,
    }


def _note_words(connection: Connection, user: UserId, memory: NewMemory) -> None:
    words = words_of(f"{memory.key}\n{memory.text}")
    if words:
        key = memory.key
        rows = [{"user_id": user, "word": word, "key": key} for word in words]
        connection.execute(_insert_words, rows)


def _read(row: Row[Any]) -> Memory:
    return Memory(
        key=row.key,
        text=row.text,
        conversation_id=row.conversation_id and ConversationId(row.conversation_id),
        outside=row.outside,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
