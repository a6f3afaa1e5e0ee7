"""Programs that a user has imported as servers: only on the command line of the server's machine.

Such a program is sealed in the vault of its user, whole: no other account, token or client of the
database can make or change one. It is checked again at each start, as a folder that agents write
may have come after it.
"""

from dataclasses import dataclass

from backburner.actions.connections import definitions, manage, reach, sealed
from backburner.actions.connections.definitions import Check
from backburner.actions.deps import Deps
from backburner.core.accounts import Act, Caller
from backburner.core.connections.connection import Connection
from backburner.core.connections.own_program import (
    IMPORTED,
    check_places,
    check_program,
)
from backburner.core.connections.program import StdioProgram
from backburner.core.errors import Conflict, NotAllowed, NotFound
from backburner.core.ids import ConnectionId, UserId
from backburner.ports import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class NewProgram:
    name: str
    title: str = ""
    program: StdioProgram
    #: The file that it was read from.
    source: str


async def check(deps: Deps, caller: Caller, new: NewProgram) -> Connection | None:
    """Refuse a program that may not be imported; return the connection that it has already."""
    await check_source(deps, caller, new.source)
    check_program(new.program)
    check_places(new.program, deps.folders.forbidden)
    await reach.check_program(deps, caller.user, new.program)
    return await deps.store.read(lambda tx: _find_same(tx, deps, caller, new))


async def check_source(deps: Deps, caller: Caller, source: str) -> None:
    """Refuse a file that agents can change, and to import programs of any file for anybody else.

    The first is for servers too, so it is said to all.
    """
    await reach.check_file(deps, caller, source)
    if not (deps.folders.may_be_added and caller.is_local_client):
        raise NotAllowed(
            "Programs are imported on the command line of the machine that the server runs on.",
            hint="Others connect to those that the operator defines in the setting `mcp_programs`.",
        )


async def add(deps: Deps, caller: Caller, new: NewProgram) -> Check:
    """Add a connection to a program, start it, and list its tools; say what is wrong with it."""
    known = await check(deps, caller, new)
    if known is not None:
        return Check(connection_id=known.id)

    def work(tx: Tx) -> Connection:
        tx.users.lock(caller.user)
        if len(tx.accounts.page(limit=2)) > 1:
            raise NotAllowed(
                "With more than one account, programs are defined by the operator.",
                hint="Name them in the setting `mcp_programs`.",
            )
        connection = manage.make_connection(
            tx, caller.user, name=new.name, title=new.title, program=IMPORTED
        )
        tx.connections.add(connection)
        sealed.put_program(tx, deps, caller.user, connection.id, new.program)
        definitions.record(tx, caller, Act.CONNECTION_ADDED, connection)
        return connection

    connection = await deps.store.transact(work)
    return await definitions.refresh(deps, caller, connection.id)


async def show(deps: Deps, user: UserId, connection_id: ConnectionId) -> StdioProgram:
    """Return the program of a connection, with the values of its variables, which are secret."""

    def work(tx: Tx) -> StdioProgram:
        connection = tx.connections.load(user, connection_id)
        found = sealed.load_program(tx, deps, user, connection.id)
        if found is None:
            raise NotFound(f"{connection.title} is not an imported program.")
        program, _ = found
        return program

    return await deps.store.read(work)


def _find_same(tx: Tx, deps: Deps, caller: Caller, new: NewProgram) -> Connection | None:
    found = tx.connections.find(caller.user, new.name)
    if found is None:
        return None
    same = (new.program, deps.folders.machine)
    is_imported = found.program == IMPORTED
    if is_imported and sealed.load_program(tx, deps, caller.user, found.id) == same:
        return found
    raise Conflict(
        f"There is a connection {new.name} already, and it is another one.",
        hint="Give this one another name, or remove that one first.",
    )
