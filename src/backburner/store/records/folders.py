"""Folders in which conversations may work: list, add, remove, and who uses one."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Boolean, Row, Text, and_, bindparam, delete, or_, select, text, update

from backburner.core.conversation import WorkFolder
from backburner.core.errors import Conflict
from backburner.core.ids import ConversationId, UserId
from backburner.core.work.folders import Folder
from backburner.store.context import Group
from backburner.store.dialect import upsert
from backburner.store.tables import conversations, folders, inbox, is_unserved

_owner = bindparam("owner", type_=Text())
_of_user = folders.c.user_id == _owner
_where = bindparam("where", type_=Text())
#: The same folder of each machine, if all machines share it.
_this = and_(
    _of_user,
    folders.c.path == bindparam("which"),
    or_(folders.c.machine == _where, _where == text("''")),
)
_list = select(folders).where(_of_user).order_by(folders.c.path, folders.c.machine)
_added_by_all = select(folders.c.user_id, folders.c.path).where(~folders.c.from_settings)
_find = select(folders).where(_this).order_by(folders.c.machine)
_used_otherwise = select(folders.c.path).where(
    _this, folders.c.read_only != bindparam("read_only", type_=Boolean())
)
_remove = delete(folders).where(_this)
_report = update(folders).where(_this).values(reported=bindparam("digest"))
#: Discovery only reads, whatever others do.
_of_folder = and_(
    conversations.c.user_id == _owner,
    conversations.c.folder == bindparam("which"),
    or_(conversations.c.folder_machine == _where, _where == text("''")),
    conversations.c.kind != text("'discovery'"),
)
_under_way = (
    select(conversations.c.id).where(_of_folder, conversations.c.turn_run.is_not(None)).limit(1)
)
_change_users = (
    update(conversations).where(_of_folder).values(folder_read_only=bindparam("read_only"))
)
_holders = select(conversations.c.folder, conversations.c.folder_machine, conversations.c.id).where(
    conversations.c.user_id == _owner,
    conversations.c.turn_run.is_not(None),
    conversations.c.folder.is_not(None),
    ~conversations.c.folder_read_only,
)
_wanted = (
    select(
        conversations.c.user_id,
        conversations.c.folder,
        conversations.c.folder_machine,
        conversations.c.profile,
    )
    .join(
        inbox,
        and_(
            inbox.c.user_id == conversations.c.user_id,
            inbox.c.conversation_id == conversations.c.id,
        ),
    )
    .where(
        is_unserved,
        inbox.c.from_person,
        conversations.c.folder.is_not(None),
        conversations.c.turn_run.is_(None),
        ~conversations.c.folder_read_only,
    )
)


class Folders(Group):
    def list(self, user: UserId) -> Sequence[Folder]:
        return [_to_folder(row) for row in self._execute(_list, {"owner": user})]

    def find(self, user: UserId, path: str, machine: str) -> Folder | None:
        row = self._execute(_find, _key(user, path, machine)).first()
        return None if row is None else _to_folder(row)

    def added_by_all(self) -> Sequence[tuple[UserId, str]]:
        """Return the folders that users have added, so that nobody else is given one of them."""
        return [(UserId(row.user_id), row.path) for row in self._execute(_added_by_all, {})]

    def put(self, user: UserId, folder: Folder) -> None:
        """Add a folder, or replace it; another use is refused while runs work in it.

        One that all machines share takes the place of the same one of each machine.
        """
        key = _key(user, folder.path, folder.machine)
        use = {**key, "read_only": folder.read_only}
        changes_use = self._exists(_used_otherwise, use)
        if changes_use and self._exists(_under_way, key):
            raise Conflict(
                f"A run works in {folder.path}.", hint="Try again when it has ended, or cancel it."
            )
        row = {
            "user_id": user,
            "path": folder.path,
            "machine": folder.machine,
            "machine_name": folder.machine_name,
            "read_only": folder.read_only,
            "from_settings": folder.from_settings,
            "instructions": json.dumps(dict(folder.instructions)),
            "reported": folder.reported,
            "created_at": folder.created_at,
        }
        if not folder.machine:
            self.remove(user, folder.path, folder.machine)
        upsert(self.connection, folders, row)
        if changes_use:
            self._execute(_change_users, use)

    def remove(self, user: UserId, path: str, machine: str) -> None:
        self._execute(_remove, _key(user, path, machine))

    def mark_reported(self, user: UserId, folder: WorkFolder, digest: str) -> None:
        """Record that the user was told about these changed instructions."""
        self._execute(_report, {**_key(user, folder.path, folder.machine), "digest": digest})

    def holders(self, user: UserId) -> Mapping[tuple[str, str], ConversationId]:
        """Return the conversations whose runs write now, by folder and machine."""
        rows = self._execute(_holders, {"owner": user})
        return {(row.folder, row.folder_machine): ConversationId(row.id) for row in rows}

    def wanted_for_replies(self) -> Mapping[tuple[UserId, str, str], frozenset[str]]:
        """Return owner, path and machine of folders that replies write in, with their profiles."""
        wanted = dict[tuple[UserId, str, str], frozenset[str]]()
        for row in self._execute(_wanted, {}):
            key = UserId(row.user_id), row.folder, row.folder_machine
            wanted[key] = wanted.get(key, frozenset()) | {row.profile}
        return wanted


def _key(user: UserId, path: str, machine: str) -> Mapping[str, str]:
    return {"owner": user, "which": path, "where": machine}


def _to_folder(row: Row[Any]) -> Folder:
    return Folder(
        path=row.path,
        read_only=row.read_only,
        machine=row.machine,
        machine_name=row.machine_name,
        created_at=row.created_at,
        from_settings=row.from_settings,
        instructions=json.loads(row.instructions),
        reported=row.reported,
    )
