"""Users: who there is."""

from datetime import datetime

from sqlalchemy import Connection, insert

from backburner.core.ids import UserId
from backburner.store.tables import users

_insert = insert(users)


def add(connection: Connection, user: UserId, *, name: str, now: datetime) -> None:
    connection.execute(_insert, {"id": user, "name": name, "served_at": now, "created_at": now})
