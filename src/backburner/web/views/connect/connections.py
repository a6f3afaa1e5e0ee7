"""Connections in a list: how each works, in one word, and what it may do."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from backburner.actions.connections.overview import ConnectionOverview
from backburner.core.connections.connection import AuthKind, Connection, ConnectionState
from backburner.core.connections.own_program import IMPORTED
from backburner.core.connections.sign_in import server_of
from backburner.web.display import Display
from backburner.web.rendering import count, load_words

#: What stands for a service, by a part of its name.
_ICONS = {
    "mail": "mail",
    "calendar": "calendar",
    "github": "branch",
    "gitlab": "branch",
    "git": "branch",
    "wiki": "file",
    "notion": "file",
    "docs": "file",
    "chat": "chat",
    "slack": "chat",
    "drive": "folder",
    "search": "search",
    "linear": "list",
    "jira": "list",
    "canva": "image",
    "figma": "image",
}


@dataclass(frozen=True, slots=True)
class Health:
    name: str
    #: In one word.
    word: str
    #: The colour of its sign.
    tone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionRow:
    id: str
    title: str
    icon: str
    health: Health
    line: str
    #: The line says what its user has to do.
    is_urgent: bool


def show_row(found: ConnectionOverview, display: Display) -> ConnectionRow:
    connection = found.connection
    health = describe_health(found)
    waits = count(load_words().connections.waits, len(found.waiting)) if found.waiting else ""
    return ConnectionRow(
        id=connection.id,
        title=connection.title,
        icon=choose_icon(connection.name, program=bool(connection.program)),
        health=health,
        line=waits or describe_use(found, display),
        is_urgent=bool(waits),
    )


def sort_rows(rows: Sequence[ConnectionRow]) -> Sequence[ConnectionRow]:
    """List what needs its user first."""
    order = ("signed_out", "fails", "look")
    return sorted(
        rows,
        key=lambda row: (
            order.index(row.health.name) if row.health.name in order else len(order),
            row.title.casefold(),
        ),
    )


def describe_health(found: ConnectionOverview) -> Health:
    connection = found.connection
    if connection.disabled:
        name, tone = "off", "off"
    elif connection.state is not ConnectionState.READY:
        name, tone = "signed_out", "ember"
    elif connection.last_error:
        name, tone = "fails", "bad"
    elif any(tool.is_withheld for tool in found.tools):
        name, tone = "look", "ember"
    elif found.day.is_slow:
        name, tone = "slow", "warn"
    else:
        name, tone = "works", "ok"
    return Health(name, load_words().connections[name], tone)


def describe_use(found: ConnectionOverview, display: Display) -> str:
    words, listed = load_words().connections, [tool for tool in found.tools if not tool.gone]
    allowed = sum(tool.is_offered and tool.read_only for tool in listed)
    tools = words.allowed.format(allowed=allowed, tools=len(listed)) if listed else words.no_tools
    return f"{tools} · {describe_last_use(found.connection, display)}"


def describe_last_use(connection: Connection, display: Display) -> str:
    words, at = load_words().connections, connection.last_used_at
    if at is None:
        return str(words.never_used)
    if display.now - at < timedelta(minutes=1):
        time = words.now
    elif display.now - at < timedelta(hours=12):
        time = words.ago.format(time=display.since(at))
    else:
        time = display.moment(at)
    return str(words.used.format(time=time))


def describe_server(connection: Connection) -> str:
    """Name the host; of a program, where it comes from."""
    words = load_words().connections
    if connection.url:
        return server_of(connection)
    return str(words.on_this_machine if connection.program == IMPORTED else words.by_operator)


def describe_sign_in(connection: Connection) -> str:
    words = load_words().connections
    if connection.state is not ConnectionState.READY:
        return ""
    kinds = {
        AuthKind.OAUTH: words.signed_in,
        AuthKind.HEADER: words.with_key,
        AuthKind.NONE: words.no_sign_in if connection.url else "",
    }
    return str(kinds[connection.auth])


def choose_icon(name: str, *, program: bool = False) -> str:
    plain = name.casefold()
    known = (icon for part, icon in _ICONS.items() if part in plain)
    return next(known, "terminal" if program else "plug")
