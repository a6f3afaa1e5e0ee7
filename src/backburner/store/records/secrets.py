"""Sealed secrets of users and of the install, and the wrapped keys that seal them."""

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, Text, bindparam, delete, select, update

from backburner.core.ids import UserId
from backburner.store.context import Group
from backburner.store.dialect import insert_if_absent, upsert
from backburner.store.tables import data_keys, install, install_secrets, secrets

#: The key in `install` with the wrapped key of the install, as Base64.
DATA_KEY = "data_key"
#: Comes after every name.
_LAST_CHARACTER = "\U0010ffff"

_owner, _name = bindparam("owner", type_=Text()), bindparam("name", type_=Text())
_of_user = secrets.c.user_id == _owner
_load = select(secrets.c.sealed).where(_of_user, secrets.c.name == _name)
_find = select(secrets.c.user_id, secrets.c.name).order_by(secrets.c.user_id, secrets.c.name)
_load_own = select(install_secrets.c.sealed).where(install_secrets.c.name == _name)
_load_key = select(data_keys.c.wrapped).where(data_keys.c.user_id == _owner)
_load_own_key = select(install.c.value).where(install.c.key == DATA_KEY)
_hold_key, _hold_own_key = (
    statement.with_for_update(read=True) for statement in (_load_key, _load_own_key)
)
_lock_key, _lock_own_key = (statement.with_for_update() for statement in (_load_key, _load_own_key))
_put_key = (
    update(data_keys).where(data_keys.c.user_id == _owner).values(wrapped=bindparam("new_wrapped"))
)
_all_keys = select(data_keys.c.user_id, data_keys.c.wrapped).order_by(data_keys.c.user_id)
_forget_key = delete(data_keys).where(data_keys.c.user_id == _owner)
_forget_own_key = delete(install).where(install.c.key == DATA_KEY)


class Secrets(Group):
    def load(self, owner: UserId | None, name: str) -> bytes | None:
        statement = _load_own if owner is None else _load
        values = {"name": name} if owner is None else {"name": name, "owner": owner}
        sealed = self._execute(statement, values).scalar_one_or_none()
        return None if sealed is None else bytes(sealed)

    def put(self, owner: UserId | None, name: str, sealed: bytes) -> None:
        row = {"name": name, "sealed": sealed}
        if owner is None:
            upsert(self.connection, install_secrets, row)
        else:
            upsert(self.connection, secrets, {"user_id": owner, **row})

    def add(self, owner: UserId | None, name: str, sealed: bytes) -> bool:
        row = {"name": name, "sealed": sealed}
        if owner is None:
            return insert_if_absent(self.connection, install_secrets, row)
        return insert_if_absent(self.connection, secrets, {"user_id": owner, **row})

    def remove(self, owner: UserId | None, prefix: str) -> None:
        table: Table = install_secrets if owner is None else secrets
        statement = delete(table).where(*_begins(table, prefix))
        if owner is not None:
            statement = statement.where(table.c.user_id == owner)
        self._execute(statement)

    def find(self, prefix: str, *, owner: UserId | None = None) -> Sequence[tuple[UserId, str]]:
        statement = _find if owner is None else _find.where(secrets.c.user_id == owner)
        rows = self._execute(statement.where(*_begins(secrets, prefix)))
        return [(UserId(row.user_id), row.name) for row in rows]

    def load_key(self, owner: UserId | None) -> bytes | None:
        return self._read_key(owner, _load_key, _load_own_key)

    def hold_key(self, owner: UserId | None) -> bytes | None:
        return self._read_key(owner, _hold_key, _hold_own_key)

    def lock_key(self, owner: UserId | None) -> bytes | None:
        return self._read_key(owner, _lock_key, _lock_own_key)

    def add_key(self, owner: UserId | None, wrapped: bytes) -> bool:
        if owner is None:
            row = {"key": DATA_KEY, "value": _to_text(wrapped)}
            return insert_if_absent(self.connection, install, row)
        return insert_if_absent(self.connection, data_keys, {"user_id": owner, "wrapped": wrapped})

    def put_key(self, owner: UserId | None, wrapped: bytes) -> None:
        if owner is None:
            upsert(self.connection, install, {"key": DATA_KEY, "value": _to_text(wrapped)})
        else:
            self._update_one(_put_key, {"owner": owner, "new_wrapped": wrapped})

    def all_keys(self) -> Sequence[tuple[UserId | None, bytes]]:
        own = self.load_key(None)
        first: list[tuple[UserId | None, bytes]] = [] if own is None else [(None, own)]
        rows = self._execute(_all_keys)
        return [*first, *((UserId(row.user_id), bytes(row.wrapped)) for row in rows)]

    def forget(self, owner: UserId | None) -> None:
        self.remove(owner, "")
        if owner is None:
            self._execute(_forget_own_key)
        else:
            self._execute(_forget_key, {"owner": owner})

    def _read_key(
        self, owner: UserId | None, of_user: Select[Any], of_install: Select[Any]
    ) -> bytes | None:
        values: Mapping[str, Any] = {} if owner is None else {"owner": owner}
        statement = of_install if owner is None else of_user
        wrapped = self._execute(statement, values).scalar_one_or_none()
        if wrapped is None:
            return None
        return b64decode(wrapped) if owner is None else bytes(wrapped)


def _begins(table: Table, prefix: str) -> tuple[ColumnElement[bool], ...]:
    return table.c.name >= prefix, table.c.name < prefix + _LAST_CHARACTER


def _to_text(wrapped: bytes) -> str:
    return b64encode(wrapped).decode()
