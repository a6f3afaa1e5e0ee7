"""Accounts: logins, roles and password hashes of users."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, bindparam, select, update
from sqlalchemy.exc import IntegrityError

from backburner.core.accounts import Role, User
from backburner.core.ids import UserId, new_user_id
from backburner.store.context import Group
from backburner.store.dialect import insert_if_absent
from backburner.store.tables import install, users

#: The key in `install` with the id of its owner, so that two processes create only one.
OWNER = "owner"

_select_any = select(users.c.id).limit(1)
_select_owner = select(install.c.value).where(install.c.key == OWNER)
_by_id = users.c.id == bindparam("user_id")
_load = select(users).where(_by_id)
_select_by_login = select(users.c.id, users.c.password).where(
    users.c.login == bindparam("login"), users.c.disabled_at.is_(None)
)
_select_page = (
    select(users)
    .where(users.c.id > bindparam("after"))
    .order_by(users.c.id)
    .limit(bindparam("limit"))
)
_select_known = (
    select(users).where(users.c.id.in_(bindparam("user_ids", expanding=True))).order_by(users.c.id)
)
_lock_operators = (
    select(users.c.id)
    .where(users.c.role == Role.OPERATOR.value, users.c.disabled_at.is_(None))
    .order_by(users.c.id)
    .with_for_update()
)
_select_with_password = (
    select(users.c.id).where(users.c.password.is_not(None), users.c.disabled_at.is_(None)).limit(1)
)
_update = update(users).where(_by_id)


class Accounts(Group):
    def ensure_owner(self, *, now: datetime) -> UserId | None:
        if self._execute(_select_any).first() is None:
            insert_if_absent(self.connection, install, {"key": OWNER, "value": new_user_id()})
            row = _row(UserId(self._execute(_select_owner).scalar_one()), now)
            insert_if_absent(self.connection, users, row | {"role": Role.OPERATOR.value})
        owner = self._execute(_select_owner).scalar_one_or_none()
        return UserId(owner) if owner and self._exists(_load, {"user_id": owner}) else None

    def add(self, user: UserId, *, login: str, name: str, role: Role, now: datetime) -> bool:
        row = _row(user, now) | {"login": login, "name": name, "role": role.value}
        return insert_if_absent(self.connection, users, row)

    def load(self, user: UserId) -> User:
        return _to_user(self._read_one(_load, {"user_id": user}))

    def find_login(self, login: str) -> tuple[UserId | None, str | None]:
        row = self._execute(_select_by_login, {"login": login}).one_or_none()
        return (UserId(row.id), row.password) if row else (None, None)

    def password_hash(self, user: UserId) -> str | None:
        password: str | None = self._read_one(_load, {"user_id": user}).password
        return password

    def page(self, *, after: str = "", limit: int) -> Sequence[User]:
        rows = self._execute(_select_page, {"after": after, "limit": limit})
        return [_to_user(row) for row in rows]

    def known(self, users: Collection[UserId]) -> Sequence[User]:
        return [_to_user(row) for row in self._execute(_select_known, {"user_ids": list(users)})]

    def lock_operators(self) -> Sequence[UserId]:
        return [UserId(user_id) for user_id in self._execute(_lock_operators).scalars()]

    def has_any_password(self) -> bool:
        return self._execute(_select_with_password).first() is not None

    def change(self, user: UserId, *, name: str | None = None, role: Role | None = None) -> None:
        values = {"name": name, "role": role.value if role else None}
        self._update(user, {key: value for key, value in values.items() if value is not None})

    def set_password(self, user: UserId, *, login: str, password: str) -> bool:
        # Another transaction may be taking the login: only the unique index shows it.
        try:
            with self.connection.begin_nested():
                self._update(user, {"login": login, "password": password})
        except IntegrityError:
            return False
        return True

    def disable(self, user: UserId, *, at: datetime | None) -> None:
        self._update(user, {"disabled_at": at})

    def _update(self, user: UserId, values: dict[str, Any]) -> None:
        if values:
            self._update_one(_update.values(**values), {"user_id": user})


def _row(user: UserId, now: datetime) -> dict[str, Any]:
    return {"id": user, "name": "", "served_at": now, "created_at": now}


def _to_user(row: Row[Any]) -> User:
    return User(
        id=UserId(row.id),
        login=row.login,
        name=row.name,
        role=Role(row.role),
        has_password=row.password is not None,
        created_at=row.created_at,
        disabled_at=row.disabled_at,
    )
