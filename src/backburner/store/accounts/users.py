"""Users: who there is; and the switch that lets background work stand still, theirs or all."""

from sqlalchemy import bindparam, delete, exists, select, update

from backburner.core.errors import NotFound
from backburner.core.ids import UserId
from backburner.ports import EventKind, Hint, HintKind, UserProfile, UserState
from backburner.store.context import Group
from backburner.store.dialect import insert_if_absent
from backburner.store.tables import PAUSED, conversations, install, is_discovery, users

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


class Users(Group):
    def load(self, user: UserId) -> UserState:
        return self._read(user, lock=False)

    def lock(self, user: UserId) -> UserState:
        """Read a user and lock the row: no other transaction locks it or claims their work."""
        return self._read(user, lock=True)

    def pause_everything(self, user: UserId | None, *, paused: bool) -> None:
        """Let all background work of a user stand still or go on; None: everybody's."""
        if user is not None:
            self.set_paused(user, paused=paused)
        elif paused:
            insert_if_absent(self.connection, install, {"key": PAUSED, "value": "true"})
        else:
            self._execute(_resume_all)
        self.tx.hint(Hint(HintKind.WORK), Hint(HintKind.CHANGED, user))
        for concerned in self._all_ids() if user is None else (user,):
            self.tx.events.note(concerned, None, EventKind.USER)

    def set_paused(self, user: UserId, *, paused: bool) -> None:
        """Pause or resume the background work of a user without announcing it."""
        if self._execute(_pause, {"which": user, "becomes": paused}).rowcount != 1:
            raise NotFound

    def set_zone(self, user: UserId, zone: str) -> None:
        if self._execute(_set_zone, {"which": user, "becomes": zone}).rowcount != 1:
            raise NotFound

    def _all_ids(self) -> list[UserId]:
        return [UserId(found) for found in self._execute(_all).scalars()]

    def _read(self, user: UserId, *, lock: bool) -> UserState:
        row = self._execute(_lock if lock else _load, {"which": user}).one_or_none()
        if row is None:
            raise NotFound
        return UserState(id=UserId(row.id), zone=row.zone, paused=row.paused)


class ProfileQueries(Group):
    def me(self, user: UserId) -> UserProfile:
        """Read who a user is, for themselves."""
        row = self._execute(describing, {"which": user}).one_or_none()
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
