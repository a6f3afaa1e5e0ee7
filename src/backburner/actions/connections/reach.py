"""Checks that agents cannot change the files that a program is started from, or what it loads."""

from collections.abc import Mapping

from backburner.actions.deps import Deps
from backburner.core.accounts import Caller
from backburner.core.connections.imports.shown_program import (
    check_nothing_shared,
    check_out_of_reach,
    find_paths,
)
from backburner.core.connections.own_program import READ_BY_ALL
from backburner.core.connections.program import StdioProgram
from backburner.core.ids import UserId
from backburner.ports import Tx


async def check_file(deps: Deps, caller: Caller, path: str) -> None:
    """Refuse a file in a place where agents write, and one that a link there leads to.

    Others than the command line of this machine may mean a file of another one, and are told
    nothing about links of this one, or folders of others.
    """
    is_here = caller.is_local_client
    reachable = await _find_reachable(deps, caller.user, of_others=is_here)
    check_out_of_reach(await deps.folders.trace(path) if is_here else [path], reachable)


async def check_program(deps: Deps, user: UserId, program: StdioProgram) -> None:
    """Refuse a program of which agents can write a path in its command, or anything it may read."""
    reachable = await _find_reachable(deps, user, of_others=True)
    for path in find_paths(program.command):
        check_out_of_reach(await deps.folders.trace(path), reachable)
    for place in (*program.readable, *program.writable, *READ_BY_ALL):
        check_nothing_shared(await deps.folders.trace(place), reachable)


async def _find_reachable(deps: Deps, user: UserId, *, of_others: bool) -> Mapping[str, str]:
    """Return the places where agents write, without links, with a word for each."""
    folders = await deps.store.read(lambda tx: _list_writable(tx, user, of_others=of_others))
    # The settings give folders below these to each account, also to later ones.
    parents = [template.partition("{")[0].rpartition("/")[0] for template in deps.folders.templates]
    places = dict.fromkeys([*folders, *filter(None, parents)])
    return {**{path: f"the folder {path}" for path in places}, **await deps.folders.of_agents()}


def _list_writable(tx: Tx, user: UserId, *, of_others: bool) -> list[str]:
    """List the folders in which agents write: of this user, and any that others have added."""
    own = [one.path for one in tx.folders.list(user) if not (one.read_only or one.from_settings)]
    by_all = tx.folders.added_by_all() if of_others else ()
    return [*own, *(path for owner, path in by_all if owner != user)]
