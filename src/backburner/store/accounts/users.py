"""Users, and the switch that pauses background work, of one user or of all."""

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import Row, bindparam, delete, exists, select, update

from backburner.core.accounts import ZoneSource
from backburner.core.errors import NotFound
from backburner.core.ids import UserId
from backburner.ports import EventKind, Hint, HintKind, UserProfile, UserState
from backburner.store.context import Group
from backburner.store.dialect import insert_if_absent
from backburner.store.tables import PAUSED, conversations, install, is_discovery, users

_by_id = users.c.id == bindparam("user_id")
_load = select(
    users.c.id, users.c.zone, users.c.zone_source, users.c.paused, users.c.resumed_at
).where(_by_id)
_lock = _load.with_for_update(key_share=True)
_set_paused = update(users).where(_by_id).values(paused=bindparam("is_paused"))
_set_zone = (
    update(users)
    .where(_by_id)
    .values(zone=bindparam("new_zone"), zone_source=bindparam("new_source"))
)
#: Ordered, or SQLite would not use the index of discovery alone.
_discovery = (
    select(conversations.c.id)
    .where(conversations.c.user_id == users.c.id, is_discovery)
    .order_by(conversations.c.id)
    .limit(1)
    .scalar_subquery()
)
select_profile = select(
    users,
    exists().where(install.c.key == PAUSED).label("all_paused"),
    _discovery.is_not(None).label("discovery"),
).where(_by_id)
_select_all = select(users.c.id)
_select_zones = select(users.c.id, users.c.zone).where(
    users.c.id.in_(bindparam("owners", expanding=True))
)
_set_resumed_at = update(users).values(resumed_at=bindparam("now"))
_set_own_resumed_at = _set_resumed_at.where(_by_id, users.c.paused)
_resume_all = delete(install).where(install.c.key == PAUSED)


class Users(Group):
    def load(self, user: UserId) -> UserState:
        return _to_state(self._read_one(_load, {"user_id": user}))

    def lock(self, user: UserId) -> UserState:
        """Read a user and lock the row: no other transaction locks it or claims their work."""
        row = self.tx.lock_with_clock(_lock, {"user_id": user})
        if row is None:
            raise NotFound
        return _to_state(row)

    def pause_everything(self, user: UserId | None, *, paused: bool) -> None:
        """Pause or resume the background work of a user; None: of all users."""
        if user is not None:
            self.set_paused(user, paused=paused)
        elif paused:
            insert_if_absent(self.connection, install, {"key": PAUSED, "value": "true"})
        elif self._execute(_resume_all).rowcount:
            self._execute(_set_resumed_at, {"now": self.tx.now})
        self.tx.hint(Hint(HintKind.WORK), Hint(HintKind.CHANGED, user))
        for user_id in self._execute(_select_all).scalars() if user is None else (user,):
            self.tx.events.note(UserId(user_id), None, EventKind.USER)

    def set_paused(self, user: UserId, *, paused: bool) -> None:
        """Pause or resume the background work of a user without announcing it."""
        if not paused:
            self._execute(_set_own_resumed_at, {"user_id": user, "now": self.tx.now})
        self._update_one(_set_paused, {"user_id": user, "is_paused": paused})

    def zones(self, users: Collection[UserId]) -> Mapping[UserId, str]:
        rows = self._execute(_select_zones, {"owners": list(users)})
        return {UserId(row.id): row.zone for row in rows}

    def set_zone(self, user: UserId, zone: str, source: ZoneSource = ZoneSource.USER) -> None:
        values = {"user_id": user, "new_zone": zone, "new_source": source.value}
        self._update_one(_set_zone, values)


def _to_state(row: Row[Any]) -> UserState:
    return UserState(
        id=UserId(row.id),
        zone=row.zone,
        zone_source=ZoneSource(row.zone_source),
        paused=row.paused,
        resumed_at=row.resumed_at,
    )


class ProfileQueries(Group):
    def profile(self, user: UserId) -> UserProfile:
        """Read the profile of a user."""
        row = self._read_one(select_profile, {"user_id": user})
        return UserProfile(
            id=UserId(row.id),
            name=row.name,
            login=row.login,
            role=row.role,
            zone=row.zone,
            zone_source=ZoneSource(row.zone_source),
            paused=row.paused,
            all_paused=bool(row.all_paused),
            discovery=bool(row.discovery),
            has_password=row.password is not None,
            created_at=row.created_at,
        )
