"""The export of a user's data, part by part, and its deletion.

Secrets and internal values are left out of an export.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Select,
    Table,
    bindparam,
    delete,
    exists,
    func,
    select,
    tuple_,
)

from backburner.core.accounts import Role
from backburner.core.errors import NotFound
from backburner.core.ids import ConversationId, UserId
from backburner.ports import ExportPage, PageKey
from backburner.store import tables
from backburner.store.accounts.users import Users
from backburner.store.context import Group
from backburner.store.records.runs import Runs
from backburner.store.tables import is_running, runs, users


@dataclass(frozen=True, slots=True)
class Part:
    table: Table
    #: Unique among the rows of a user, and indexed after the owner.
    key: tuple[Column[Any], ...]
    #: Columns with JSON as text.
    json: frozenset[str] = frozenset()
    left_out: frozenset[str] = frozenset()
    #: Which rows are exported; none: all.
    where: ColumnElement[bool] | None = None

    @property
    def names(self) -> list[str]:
        """The columns that are exported."""
        left_out = self.left_out | {"user_id"}
        return [column.name for column in self.table.columns if column.name not in left_out]


def _part(
    table: Table,
    *key: str,
    json: Sequence[str] = (),
    left_out: Sequence[str] = (),
    where: ColumnElement[bool] | None = None,
) -> Part:
    columns = tuple(table.c[name] for name in key or ("id",))
    # Numbers would tell how busy the whole install is.
    return Part(table, columns, frozenset(json), frozenset([*left_out, "number"]), where)


PARTS = {
    "conversations": _part(
        tables.conversations,
        json=[
            *("schedule", "context", "data", "outside_state", "tools", "connections"),
            "reports_to",
        ],
        left_out=[
            "turn_run",
            "turn_until",
            "epoch",
            "last_result_hash",
            "session_id",
            *("after_id", "seen_number"),
        ],
    ),
    "messages": _part(tables.messages, "number", json=["files"], left_out=["news"]),
    "questions": _part(tables.questions, json=["options", "binds_to"]),
    "runs": _part(tables.runs, left_out=["epoch", "worker", "draft"]),
    # The times of each part of a run, and its prompt.
    "outcomes": _part(tables.outcomes, "run_id", "epoch"),
    "tool_calls": _part(
        tables.tool_calls, json=["arguments", "files"], left_out=["epoch", "digest", "definition"]
    ),
    "receipts": _part(tables.receipts, json=["arguments"], left_out=["digest"]),
    "grants": _part(tables.grants, json=["words"], left_out=["definition", "call"]),
    "notices": _part(tables.notices, "number", json=["options"]),
    "deliveries": _part(
        tables.deliveries, "number", left_out=["key", "lease", "leased_until", "not_before"]
    ),
    "memories": _part(tables.memories, "key"),
    "folders": _part(tables.folders, "path", "machine", json=["instructions"]),
    "connections": _part(tables.connections, json=["headers"], left_out=["last_error"]),
    "connection_tools": _part(
        tables.connection_tools,
        *("connection_id", "name"),
        json=["definition", "accepted_definition"],
        left_out=["digest", "accepted", "reported"],
    ),
    "connection_calls": _part(tables.connection_calls),
    "summaries": _part(
        tables.summaries, "conversation_id", json=["messages"], left_out=["session_id"]
    ),
    # Their bytes are read apart.
    "files": _part(
        tables.files, "digest", left_out=["unused_since", "deleted_at"], where=~tables.is_unused
    ),
    "spend": _part(tables.spend, "number"),
    "allowances": _part(tables.allowances, "scope", "root_id"),
    "credentials": _part(tables.credentials, left_out=["digest"]),
    # Whoever has the rest of it could write to the browser, or read what it is sent.
    "push_subscriptions": _part(
        tables.push_subscriptions,
        left_out=["digest", "endpoint", "receiver_key", "auth", "server_key"],
    ),
}
#: Tables of a user that are not exported, with the reason.
LEFT_OUT = {
    "inbox": "its items repeat messages, questions and events",
    "file_pieces": "the bytes of files, which are exported with them",
    "file_uses": "which calls and messages name which files, as they say themselves",
    "waits": "which runs wait for which jobs",
    "started_sign_ins": "sign-ins that end within minutes",
    "token_leases": "which process renews which tokens",
    "counters": "the last number of each kind of row",
    "totals": "the sums of spend",
    "session_entries": "messages and calls again, in the format of an engine",
    "events": "numbers by which a client notices changes",
    "outage_reports": "which outages of models they were told about",
    "memory_words": "the search index of memories",
    "answers": "responses to requests, kept for a day",
    "secrets": "an export would be as good as a sign-in",
    "data_keys": "the key that seals the secrets",
    "audit": "what operators did; /api/me/audit shows what concerns the user",
}
_PROFILE = ("id", "name", "login", "zone", "role", "paused", "created_at")
_select_profile = select(*(users.c[name] for name in _PROFILE))
_select_running = select(runs.c.conversation_id).where(is_running)


@cache
def select_page(name: str, *, is_first: bool) -> Select[Any]:
    """Build the statement for a page of a part: the exported columns, then the key."""
    part = PARTS[name]
    exported = [part.table.c[column] for column in part.names]
    key = [column.label(f"key_{number}") for number, column in enumerate(part.key)]
    page = select(*exported, *key).where(part.table.c.user_id == bindparam("owner"))
    if part.where is not None:
        page = page.where(part.where)
    if not is_first:
        last = [
            bindparam(f"after_{number}", type_=column.type)
            for number, column in enumerate(part.key)
        ]
        page = page.where(tuple_(*part.key) > tuple_(*last))
    return page.order_by(*part.key).limit(bindparam("limit"))


class PersonalData(Group):
    @property
    def parts(self) -> Sequence[str]:
        return tuple(PARTS)

    def profile(self, user: UserId) -> Mapping[str, Any]:
        row = self._execute(_select_profile.where(users.c.id == user)).mappings().one_or_none()
        if row is None:
            raise NotFound
        return _to_json(dict(row), frozenset())

    def page(self, user: UserId, name: str, after: PageKey | None, *, limit: int) -> ExportPage:
        part = PARTS[name]
        values: dict[str, Any] = {"owner": user, "limit": limit}
        values |= {f"after_{number}": value for number, value in enumerate(after or ())}
        rows = self._execute(select_page(name, is_first=after is None), values).all()
        next_key = tuple(rows[-1][-len(part.key) :]) if len(rows) == limit else None
        exported = [dict(zip(part.names, row, strict=False)) for row in rows]
        return ExportPage([_to_json(row, part.json) for row in exported], next_key)

    def is_last_operator(self, user: UserId) -> bool:
        others = select(func.count()).where(users.c.id != user)
        can_operate = (users.c.role == Role.OPERATOR.value) & users.c.disabled_at.is_(None)
        is_operator = exists().where(users.c.id == user, users.c.role == Role.OPERATOR.value)
        if not self._execute(select(is_operator)).scalar_one():
            return False
        has_others = self._execute(others).scalar_one() > 0
        return has_others and self._execute(others.where(can_operate)).scalar_one() == 0

    def stop_runs(self, user: UserId) -> Sequence[ConversationId]:
        Users(self.tx).set_paused(user, paused=True)
        running = self._execute(_select_running.where(runs.c.user_id == user)).scalars().all()
        for conversation_id in running:
            Runs(self.tx).request_stop(user, conversation_id, kind=None)
        return running

    def erase(self, user: UserId) -> None:
        # Table by table: a cascade would search every table once for each conversation.
        for table in reversed(tables.metadata.sorted_tables):
            # Counters are deleted last, by cascade: a commit waits for them while it has locks.
            if "user_id" in table.c and table is not tables.counters:
                self._execute(delete(table).where(table.c.user_id == user))
        if self._execute(delete(users).where(users.c.id == user)).rowcount != 1:
            raise NotFound


def _to_json(row: Mapping[str, Any], json_columns: frozenset[str]) -> dict[str, Any]:
    return {
        name: json.loads(value) if name in json_columns and value is not None else _value(value)
        for name, value in row.items()
    }


def _value(value: Any) -> Any:
    match value:
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case timedelta():
            return value.total_seconds()
        case _:
            return value
