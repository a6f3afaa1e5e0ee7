"""Users: who there is; and the switch that lets background work stand still, theirs or all."""

from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, exists, insert, select, update

from backburner.core.errors import NotFound
from backburner.core.ids import UserId
from backburner.ports import UserProfile, UserState
from backburner.store.dialect import insert_unless_there
from backburner.store.tables import PAUSED, conversations, install, is_discovery, users

_insert = insert(users)
_load = select(users.c.id, users.c.zone, users.c.paused).where(users.c.id == bindparam("which"))
_lock = _load.with_for_update(key_share=True)
_pause = update(users).where(users.c.id == bindparam("which")).values(paused=bindparam("becomes"))
_set_zone = update(users).where(users.c.id == bindparam("which")).values(zone=bindparam("becomes"))
#: In order, or SQLite would not take the index that has nothing else.
_looks = (
    select(conversations.c.id)
    .where(conversations.c.user_id == users.c.id, is_discovery)
    .order_by(conversations.c.id)
    .limit(1)
    .scalar_subquery()
)
describing = select(
    users,
    exists().where(install.c.key == PAUSED).label("all_paused"),
    _looks.is_not(None).label("discovery"),
).where(users.c.id == bindparam("which"))
_all = select(users.c.id)
_resume_all = delete(install).where(install.c.key == PAUSED)


def add(connection: Connection, user: UserId, *, name: str, now: datetime) -> None:
    connection.execute(_insert, {"id": user, "name": name, "served_at": now, "created_at": now})


def load(connection: Connection, user: UserId) -> UserState:
    return _read(connection, user, lock=False)


def lock(connection: Connection, user: UserId) -> UserState:
    """Read a user; until the transaction ends nobody else does this, or claims work of theirs."""
    return _read(connection, user, lock=True)


def pause_everything(connection: Connection, user: UserId | None, *, paused: bool) -> None:
    """Let all background work of a user stand still or go on; None: everybody's."""
    if user is not None:
        found = connection.execute(_pause, {"which": user, "becomes": paused})
        if found.rowcount != 1:
            raise NotFound
    elif paused:
        insert_unless_there(connection, install, {"key": PAUSED, "value": "true"})
    else:
        connection.execute(_resume_all)


def set_zone(connection: Connection, user: UserId, zone: str) -> None:
    if connection.execute(_set_zone, {"which": user, "becomes": zone}).rowcount != 1:
        raise NotFound


def describe(connection: Connection, user: UserId) -> UserProfile:
    """Read who a user is, for themselves."""
    row = connection.execute(describing, {"which": user}).one_or_none()
    if row is None:
        raise NotFound
    return UserProfile(
        id=UserId(row.id),
        name=row.name,
        login=row.login,
        role=row.role,
        zone=row.zone,
        paused=row.paused,
        all_paused=bool(row.all_paused),
        discovery=bool(row.discovery),
    )


def all_of_them(connection: Connection) -> list[UserId]:
    return [UserId(found) for found in connection.execute(_all).scalars()]


def _read(connection: Connection, user: UserId, *, lock: bool) -> UserState:
    row = connection.execute(_lock if lock else _load, {"which": user}).one_or_none()
    if row is None:
        raise NotFound
    return UserState(id=UserId(row.id), zone=row.zone, paused=row.paused)
