"""What users have had put into memory, each under a key of their own."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Text, bindparam, delete, func, select, update

from backburner.core.errors import NotFound
from backburner.core.ids import ConversationId, UserId
from backburner.ports import Mark, Memory
from backburner.store.dialect import insert_unless_there
from backburner.store.tables import memories

_owner, _key = bindparam("owner", type_=Text()), bindparam("which", type_=Text())
_one = select(memories).where(memories.c.user_id == _owner, memories.c.key == _key)
_change = (
    update(memories)
    .where(memories.c.user_id == _owner, memories.c.key == _key)
    .values(
        text=bindparam("content"),
        conversation_id=None,
        outside=bindparam("from_outside"),
        updated_at=bindparam("at"),
    )
)
_delete = delete(memories).where(memories.c.user_id == _owner, memories.c.key == _key)
_count = select(func.count()).select_from(memories).where(memories.c.user_id == _owner)
page_of_all = (
    select(memories)
    .where(memories.c.user_id == _owner)
    .order_by(memories.c.key)
    .limit(bindparam("most"))
)
page_after = page_of_all.where(memories.c.key > bindparam("key", type_=Text()))


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
    connection: Connection, user: UserId, key: str, text: str, *, outside: bool, now: datetime
) -> bool:
    """Write a memory over the one that has its key; True: there was none."""
    row = {
        "user_id": user,
        "key": key,
        "text": text,
        "outside": outside,
        "created_at": now,
        "updated_at": now,
    }
    if insert_unless_there(connection, memories, row):
        return True
    values = {"owner": user, "which": key, "content": text, "from_outside": outside, "at": now}
    connection.execute(_change, values)
    return False


def remove(connection: Connection, user: UserId, key: str) -> None:
    if connection.execute(_delete, {"owner": user, "which": key}).rowcount != 1:
        raise NotFound


def _read(row: Row[Any]) -> Memory:
    return Memory(
        key=row.key,
        text=row.text,
        conversation_id=row.conversation_id and ConversationId(row.conversation_id),
        outside=row.outside,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
