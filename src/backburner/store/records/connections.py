"""Connections of users to MCP servers, and the tools that they bring."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row, and_, bindparam, case, delete, func, null, or_, select, update

from backburner.core.connections.connection import (
    AuthKind,
    Connection,
    ConnectionState,
    ConnectionTool,
    Ticks,
    ToolDefinition,
    ToolNature,
)
from backburner.core.errors import Conflict, NotFound
from backburner.core.ids import ConnectionId, ConversationId, UserId
from backburner.ports import OfferedTool
from backburner.store.context import Group
from backburner.store.dialect import has_row_locks, insert_if_absent, upsert, version_of
from backburner.store.tables import (
    connection_tools,
    connections,
    conversations,
    credentials,
    is_shown,
)

_of_user = connections.c.user_id == bindparam("owner")
_this = and_(_of_user, connections.c.id == bindparam("connection_id"))
_load = select(connections).where(_this)
_lock = _load.with_for_update(key_share=True)
#: Waits for those who hold it.
_lock_to_delete = _load.with_for_update().with_only_columns(connections.c.name)
_hold = (
    select(connections.c.name)
    .where(_of_user, connections.c.name.in_(bindparam("names", expanding=True)))
    .with_for_update(key_share=True, read=True)
)
_find = select(connections).where(_of_user, connections.c.name == bindparam("of_name"))
_list = select(connections).where(_of_user).order_by(connections.c.name)
_delete = delete(connections).where(_this)
#: Scopes have no spaces in them.
_SCOPES = ("scopes", "wanted_scopes", "refused_scopes")
#: Fields that are columns of the same name and type.
_PLAIN = tuple(
    field.name
    for field in fields(Connection)
    if field.name not in ("auth", "state", "headers", *_SCOPES)
)
_update = (
    update(connections)
    .where(_this)
    .values(
        {
            column.name: bindparam(f"new_{column.name}")
            for column in connections.columns
            if column.name not in ("user_id", "id", "name", "created_at")
        }
    )
)
#: The last use is recorded at most so often.
USE_INTERVAL = timedelta(minutes=1)
_note_success = (
    update(connections)
    .where(
        _this,
        # Not with every call: a run makes many, and all of them wait for one row.
        or_(
            connections.c.last_used_at.is_(None),
            connections.c.last_used_at <= bindparam("before"),
            connections.c.last_error != "",
        ),
    )
    .values(last_used_at=bindparam("at"), last_error="", last_error_at=None)
)
_note_error = (
    update(connections)
    .where(_this)
    .values(last_error=bindparam("error"), last_error_at=bindparam("at"))
)
_tools = (
    select(connection_tools)
    .where(
        connection_tools.c.user_id == bindparam("owner"),
        connection_tools.c.connection_id == bindparam("connection_id"),
    )
    .order_by(connection_tools.c.name)
)
_is_offered = and_(
    connection_tools.c.accepted == connection_tools.c.digest,
    ~connection_tools.c.gone,
    ~connection_tools.c.off,
)
#: Of some connections, what agents are shown; of others and of withheld tools the definitions stay
#: where they are, because they may be large.
_all_tools = (
    select(
        *(
            column
            for column in connection_tools.columns
            if column.name not in ("definition", "accepted_definition")
        ),
        case(
            (
                and_(
                    connection_tools.c.connection_id.in_(bindparam("shown", expanding=True)),
                    _is_offered,
                ),
                connection_tools.c.definition,
            )
        ).label("definition"),
        null().label("accepted_definition"),
    )
    .where(connection_tools.c.user_id == bindparam("owner"))
    .order_by(connection_tools.c.connection_id, connection_tools.c.name)
)
_size_of_others = select(
    func.coalesce(func.sum(func.length(connection_tools.c.definition)), 0)
).where(
    connection_tools.c.user_id == bindparam("owner"),
    connection_tools.c.connection_id != bindparam("connection_id"),
)
_find_offered = (
    select(
        connections,
        connection_tools.c.read_only,
        connection_tools.c.repeatable,
        connection_tools.c.discloses,
        connection_tools.c.ticked_read_only,
        connection_tools.c.ticked_repeatable,
        connection_tools.c.off,
    )
    .join(
        connection_tools,
        and_(
            connection_tools.c.user_id == connections.c.user_id,
            connection_tools.c.connection_id == connections.c.id,
        ),
    )
    .where(
        _this,
        connection_tools.c.name == bindparam("tool"),
        connection_tools.c.digest == bindparam("of_digest"),
        connection_tools.c.accepted == bindparam("of_digest"),
        ~connection_tools.c.gone,
        ~connection_tools.c.off,
    )
)
_find_offered_with_version = _find_offered.add_columns(
    version_of(connections, connection_tools).label("version")
)
_delete_tool = delete(connection_tools).where(
    connection_tools.c.user_id == bindparam("owner"),
    connection_tools.c.connection_id == bindparam("connection_id"),
    connection_tools.c.name == bindparam("of_name"),
)
_named_in = (
    select(conversations.c.id, conversations.c.connections)
    .where(
        conversations.c.user_id == bindparam("owner"),
        conversations.c.connections.like(bindparam("pattern")),
    )
    .order_by(conversations.c.id)
    .with_for_update(key_share=True)
)
_change_conversation = (
    update(conversations)
    .where(
        conversations.c.user_id == bindparam("owner"),
        conversations.c.id == bindparam("conversation_id"),
    )
    .values(connections=bindparam("names"))
)
_given_to = (
    select(credentials.c.id, credentials.c.connections)
    .where(credentials.c.user_id == bindparam("owner"), credentials.c.connections != "")
    .order_by(credentials.c.id)
    .with_for_update(key_share=True)
)
_change_credential = (
    update(credentials)
    .where(
        credentials.c.user_id == bindparam("owner"),
        credentials.c.id == bindparam("credential_id"),
    )
    .values(connections=bindparam("names"))
)


class Connections(Group):
    def add(self, connection: Connection) -> None:
        if not insert_if_absent(self.connection, connections, _to_row(connection)):
            raise Conflict(
                f"There is a connection {connection.name} already.",
                hint="Choose another name, or remove that one first.",
            )

    def load(self, user: UserId, connection_id: ConnectionId) -> Connection:
        return _to_connection(self._read_one(_load, _key(user, connection_id)))

    def find(self, user: UserId, name: str) -> Connection | None:
        row = self._execute(_find, {"owner": user, "of_name": name}).one_or_none()
        return None if row is None else _to_connection(row)

    def list(self, user: UserId) -> Sequence[Connection]:
        return [_to_connection(row) for row in self._execute(_list, {"owner": user})]

    def lock(self, user: UserId, connection_id: ConnectionId) -> Connection:
        row = self.tx.lock_with_clock(_lock, _key(user, connection_id))
        if row is None:
            raise NotFound
        return _to_connection(row)

    def save(self, connection: Connection) -> None:
        row = {f"new_{name}": value for name, value in _to_row(connection).items()}
        self._update_one(_update, {**row, **_key(connection.user_id, connection.id)})

    def remove(self, user: UserId, connection_id: ConnectionId) -> None:
        name = self.load(user, connection_id).name
        # A later connection of that name is another one.
        self._take_from_users(user, name)
        # After conversations: whoever has locked one may wait for the connection.
        self._read_one(_lock_to_delete, _key(user, connection_id))
        # Again: work that names it may have been made meanwhile.
        self._take_from_users(user, name)
        self._execute(_delete, _key(user, connection_id))

    def hold(self, user: UserId, names: Iterable[str]) -> frozenset[str]:
        """Keep others from removing these before the transaction ends; return those there are."""
        found = self._execute(_hold, {"owner": user, "names": sorted(names)})
        return frozenset(found.scalars())

    def named_in(self, user: UserId, name: str) -> Sequence[ConversationId]:
        shown = _named_in.where(is_shown)
        rows = self._execute(shown, {"owner": user, "pattern": f'%"{name}"%'})
        return [ConversationId(row.id) for row in rows]

    def _take_from_users(self, user: UserId, name: str) -> None:
        for row in self._execute(_named_in, {"owner": user, "pattern": f'%"{name}"%'}).all():
            names = [one for one in json.loads(row.connections) if one != name]
            values = {"owner": user, "conversation_id": row.id, "names": json.dumps(names)}
            self._execute(_change_conversation, values)
        for row in self._execute(_given_to, {"owner": user}).all():
            kept = " ".join(one for one in row.connections.split() if one != name)
            values = {"owner": user, "credential_id": row.id, "names": kept}
            self._execute(_change_credential, values)

    def tools(self, user: UserId, connection_id: ConnectionId) -> Sequence[ConnectionTool]:
        return [_to_tool(row) for row in self._execute(_tools, _key(user, connection_id))]

    def tools_of_all(
        self, user: UserId, *, shown: Sequence[ConnectionId] = ()
    ) -> Mapping[ConnectionId, Sequence[ConnectionTool]]:
        found: dict[ConnectionId, list[ConnectionTool]] = {}
        for row in self._execute(_all_tools, {"owner": user, "shown": shown}):
            found.setdefault(ConnectionId(row.connection_id), []).append(_to_tool(row))
        return found

    def size_of_others(self, user: UserId, connection_id: ConnectionId) -> int:
        values = {"owner": user, "connection_id": connection_id}
        return int(self._execute(_size_of_others, values).scalar_one())

    def put_tools(
        self, user: UserId, connection_id: ConnectionId, tools: Iterable[ConnectionTool]
    ) -> None:
        for tool in tools:
            row = {"user_id": user, "connection_id": connection_id, **_to_tool_row(tool)}
            upsert(self.connection, connection_tools, row)

    def remove_tools(self, user: UserId, connection_id: ConnectionId, names: Iterable[str]) -> None:
        for name in names:
            self._execute(_delete_tool, {**_key(user, connection_id), "of_name": name})

    def find_offered(
        self, user: UserId, connection_id: ConnectionId, tool: str, digest: str
    ) -> OfferedTool | None:
        values = {**_key(user, connection_id), "tool": tool, "of_digest": digest}
        has_versions = has_row_locks(self.connection)
        statement = _find_offered_with_version if has_versions else _find_offered
        row = self._execute(statement, values).one_or_none()
        if row is None:
            return None
        nature, ticks = _to_decisions(row)
        # Without the definition, which may be long: who asks knows it.
        found = ConnectionTool(
            definition=ToolDefinition(name=tool),
            digest=digest,
            accepted=digest,
            nature=nature,
            ticks=ticks,
        )
        version = row.version if has_versions else None
        return OfferedTool(_to_connection(row), found, version=version)

    def note_use(
        self, user: UserId, connection_id: ConnectionId, *, at: datetime, error: str = ""
    ) -> None:
        key = _key(user, connection_id)
        if error:
            self._write(_note_error, {**key, "at": at, "error": error})
        else:
            self._write(_note_success, {**key, "at": at, "before": at - USE_INTERVAL})


def _key(user: UserId, connection_id: ConnectionId) -> dict[str, Any]:
    return {"owner": user, "connection_id": connection_id}


def _to_row(connection: Connection) -> dict[str, Any]:
    return {name: getattr(connection, name) for name in _PLAIN} | {
        "auth": connection.auth.value,
        "state": connection.state.value,
        "headers": json.dumps(connection.headers),
        **{name: " ".join(getattr(connection, name)) for name in _SCOPES},
    }


def _to_connection(row: Row[Any]) -> Connection:
    values = row._mapping  # noqa: SLF001 (the public name of a row's mapping)
    return Connection(
        **{name: values[name] for name in _PLAIN},
        auth=AuthKind(values["auth"]),
        state=ConnectionState(values["state"]),
        headers=tuple(json.loads(values["headers"])),
        scopes=tuple(values["scopes"].split()),
        wanted_scopes=tuple(values["wanted_scopes"].split()),
        refused_scopes=tuple(values["refused_scopes"].split()),
    )


def _to_tool_row(tool: ConnectionTool) -> dict[str, Any]:
    before = tool.accepted_definition
    return {
        "name": tool.name,
        "definition": _dump(tool.definition),
        "digest": tool.digest,
        "accepted_definition": None if before is None else _dump(before),
        "accepted": tool.accepted,
        "reported": tool.reported,
        "read_only": tool.nature.read_only,
        "repeatable": tool.nature.repeatable,
        "discloses": tool.nature.discloses,
        "ticked_read_only": tool.ticks.read_only,
        "ticked_repeatable": tool.ticks.repeatable,
        "gone": tool.gone,
        "off": tool.ticks.off,
    }


def _to_tool(row: Any) -> ConnectionTool:
    before = row.accepted_definition
    nature, ticks = _to_decisions(row)
    return ConnectionTool(
        definition=_load_definition(row.name, row.definition),
        digest=row.digest,
        accepted=row.accepted,
        accepted_definition=None if before is None else _load_definition(row.name, before),
        reported=row.reported,
        nature=nature,
        ticks=ticks,
        gone=row.gone,
    )


def _to_decisions(row: Row[Any]) -> tuple[ToolNature, Ticks]:
    nature = ToolNature(read_only=row.read_only, repeatable=row.repeatable, discloses=row.discloses)
    ticks = Ticks(read_only=row.ticked_read_only, repeatable=row.ticked_repeatable, off=row.off)
    return nature, ticks


def _dump(definition: ToolDefinition) -> str:
    stored = {
        "description": definition.description,
        "parameters": dict(definition.parameters),
        "says_read_only": definition.says_read_only,
    }
    return json.dumps(stored, ensure_ascii=False)


def _load_definition(name: str, text: str | None) -> ToolDefinition:
    return ToolDefinition(name=name, **json.loads(text or "{}"))
