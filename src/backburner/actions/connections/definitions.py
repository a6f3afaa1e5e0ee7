"""Definitions of tools: list and compare them, accept changed ones, tick what a tool does.

Agents get the definitions that the owner of a connection has accepted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from backburner.actions.accounts import consent
from backburner.actions.connections import sessions
from backburner.actions.deps import Deps
from backburner.actions.waits import reconnection
from backburner.core.accounts import Act, Caller
from backburner.core.connections import listing
from backburner.core.connections.catalogue import CATALOGUE
from backburner.core.connections.catalogue_entry import find_by_url
from backburner.core.connections.connection import (
    UNKNOWN_NATURE,
    Connection,
    ConnectionState,
    ConnectionTool,
    Ticks,
    ToolDefinition,
    ToolNature,
)
from backburner.core.errors import Conflict, ConnectionFailed, NotFound
from backburner.core.ids import ConnectionId, ConversationId
from backburner.core.notice import Notice, NoticeKind
from backburner.core.transitions import Step
from backburner.core.transitions.step import system_message
from backburner.core.validation import escape_hidden
from backburner.ports import Authorization, EventKind, ToolList, Tx

MAX_DETAIL_CHARS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The result of connecting to the server of a connection."""

    connection_id: ConnectionId
    #: Why tools were left out, by name.
    left_out: Mapping[str, str] = field(default_factory=dict)
    error: ConnectionFailed | None = None


async def connect(deps: Deps, connection: Connection, authorization: Authorization) -> ToolList:
    """Ask a server for its tools. Raises `SignedOut` or `ConnectionFailed`."""
    session = sessions.open_session(deps, connection, authorization)
    try:
        found = await session.list_tools()
    finally:
        await session.close()
    of_others = await deps.store.read(
        lambda tx: tx.connections.size_of_others(connection.user_id, connection.id)
    )
    usable = listing.select_usable(found.tools, of_others=of_others)
    return ToolList(tools=usable.tools, left_out={**found.left_out, **usable.left_out})


async def refresh(deps: Deps, caller: Caller, connection_id: ConnectionId) -> Check:
    """Connect to the server of a connection now, and list its tools; say what is wrong."""
    connection = await deps.store.read(lambda tx: tx.connections.load(caller.user, connection_id))
    try:
        found = await connect(deps, connection, sessions.authorize(deps, connection))
    except ConnectionFailed as error:
        await sessions.note_use(deps, connection, error)
        return Check(connection_id=connection_id, error=error)
    await sessions.note_use(deps, connection)

    def work(tx: Tx) -> None:
        if connection.state is ConnectionState.SIGNED_OUT:
            # The server had refused the sign-in, perhaps by mistake, and accepts it now.
            reconnection.reconnected(tx, caller.user, connection_id)
        locked = tx.connections.lock(caller.user, connection_id)
        if locked.state is ConnectionState.SIGNED_OUT:
            locked = replace(locked, state=ConnectionState.READY)
            tx.connections.save(locked)
        # A program with a token looks at nothing: its user is told by the next run.
        store_listing(tx, locked, found.tools, tells_owner=caller.is_direct)

    await deps.store.transact(work)
    return Check(connection_id=connection_id, left_out=found.left_out)


async def record_listing(
    deps: Deps,
    connection: Connection,
    listed: Sequence[ToolDefinition],
    *,
    conversation_id: ConversationId,
) -> Sequence[ConnectionTool]:
    """Compare the tools that a run was shown with the accepted ones; return all as they are now.

    The owner is told in this conversation of what is withheld, once for each change.
    """
    user = connection.user_id

    def read(tx: Tx) -> tuple[bool, Sequence[ConnectionTool], Sequence[ToolDefinition]]:
        of_others = tx.connections.size_of_others(user, connection.id)
        tools = listing.select_usable(listed, of_others=of_others).tools
        found = tx.connections.load(user, connection.id)
        known = tx.connections.tools(user, connection.id)
        difference = _compare(found, known, tools)
        is_settled = difference.is_unchanged and not difference.unreported
        return is_settled and found.listed_at is not None, known, tools

    is_settled, known, tools = await deps.store.read(read)
    if is_settled:
        return known

    def work(tx: Tx) -> Sequence[ConnectionTool]:
        # Before the connection: whoever removes one locks conversations first.
        here = tx.conversations.lock(user, conversation_id)
        locked = tx.connections.lock(user, connection.id)
        unreported = store_listing(tx, locked, tools)
        if unreported:
            text = listing.describe_withheld(locked.name, unreported)
            notice = Notice(NoticeKind.RESULT, text)
            tx.conversations.save(
                Step(conversation=here, messages=(system_message(text),), notices=(notice,))
            )
        return tx.connections.tools(user, connection.id)

    return await deps.store.transact(work)


def store_listing(
    tx: Tx, connection: Connection, listed: Sequence[ToolDefinition], *, tells_owner: bool = True
) -> Sequence[ConnectionTool]:
    """Store the tools that a server lists; return the withheld ones that the owner was not told of.

    They are told now, or shown them, if `tells_owner`.
    """
    user = connection.user_id
    known = tx.connections.tools(user, connection.id)
    difference = _compare(connection, known, listed)
    stored = listing.mark_reported(difference) if tells_owner else difference.changed
    tx.connections.put_tools(user, connection.id, stored)
    tx.connections.remove_tools(user, connection.id, difference.forgotten)
    tx.connections.save(replace(connection, listed_at=tx.now))
    tx.changed(user, None, EventKind.USER)
    return difference.unreported


async def accept(
    deps: Deps, caller: Caller, connection_id: ConnectionId, seen: Mapping[str, str]
) -> None:
    """Accept definitions that the owner has seen: the digest of each, by the name of the tool."""
    consent.check_scope(caller)

    def work(tx: Tx) -> None:
        connection = tx.connections.lock(caller.user, connection_id)
        known = tx.connections.tools(caller.user, connection_id)
        accepted = listing.accept(known, seen)
        if accepted:
            tx.connections.put_tools(caller.user, connection_id, accepted)
            names = ", ".join(tool.name for tool in accepted)
            record(tx, caller, Act.TOOLS_ACCEPTED, connection, names)

    await deps.store.transact(work)


async def tick(
    deps: Deps,
    caller: Caller,
    connection_id: ConnectionId,
    name: str,
    changes: Mapping[str, bool | None],
) -> None:
    """Say what a tool does: `read_only`, `repeatable`, or both; None: the catalogue counts.

    `off` takes it away from agents, also before its definition is accepted.
    """
    consent.check_scope(caller)

    def work(tx: Tx) -> None:
        connection = tx.connections.lock(caller.user, connection_id)
        known = tx.connections.tools(caller.user, connection_id)
        tool = next((one for one in known if one.name == name), None)
        if tool is None:
            raise NotFound(
                f"{connection.name} has no tool {name[:80]!r}.",
                hint=f"See `backburner connections tools {connection.name}`.",
            )
        if (tool.gone or not tool.is_accepted) and changes.keys() != {"off"}:
            raise Conflict(
                f"Agents do not get {name!r} as it is now.", hint="Accept its definition first."
            )
        ticks = Ticks(
            read_only=changes.get("read_only", tool.ticks.read_only),
            repeatable=changes.get("repeatable", tool.ticks.repeatable),
            off=bool(changes.get("off", tool.ticks.off)),
        )
        if ticks != tool.ticks:
            tx.connections.put_tools(caller.user, connection_id, [replace(tool, ticks=ticks)])
            said = ", ".join(f"{what}={value}" for what, value in sorted(changes.items()))
            record(tx, caller, Act.TOOL_TICKED, connection, f"{name} ({said})")

    await deps.store.transact(work)


def record(tx: Tx, caller: Caller, act: Act, connection: Connection, detail: str = "") -> None:
    """Keep a record of a change, and announce it."""
    text = f"{connection.name}: {detail}" if detail else connection.name
    shown = escape_hidden(text)[:MAX_DETAIL_CHARS]
    tx.audit.record(act, actor=caller.user, user=caller.user, detail=shown)
    tx.changed(caller.user, None, EventKind.USER)


def _compare(
    connection: Connection, known: Sequence[ConnectionTool], listed: Sequence[ToolDefinition]
) -> listing.Listing:
    return listing.compare(
        known,
        listed,
        natures=lambda name: find_nature(connection, name),
        is_first=connection.listed_at is None,
    )


def find_nature(connection: Connection, tool: str) -> ToolNature:
    """Find what our catalogue says of a tool of exactly this server."""
    entry = find_by_url(CATALOGUE, connection.url) if connection.url else None
    return UNKNOWN_NATURE if entry is None else entry.nature(tool)
