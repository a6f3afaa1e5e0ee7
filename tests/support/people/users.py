"""Users that a test puts into a database itself."""

from datetime import datetime

from sqlalchemy import insert

from backburner.core.ids import UserId
from backburner.store import tables
from backburner.store.context import Context


def add_user(tx: Context, user: UserId, *, name: str = "", now: datetime | None = None) -> None:
    joined_at = tx.now if now is None else now
    row = {"id": user, "name": name, "served_at": joined_at, "created_at": joined_at}
    tx.connection.execute(insert(tables.users), row)
