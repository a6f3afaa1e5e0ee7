"""Checks that agents cannot change the files that a program is started from."""

from collections.abc import Mapping, Sequence

from backburner.actions.deps import Deps
from backburner.core.connections.imports.shown_program import check_out_of_reach
from backburner.core.ids import UserId
from backburner.ports import Tx


async def check(deps: Deps, user: UserId, paths: Sequence[str]) -> None:
    """Refuse paths in places where agents write, and those that a link there leads to."""
    reachable = await deps.store.read(lambda tx: _reachable(tx, deps, user))
    for path in paths:
        check_out_of_reach(await deps.folders.trace(path), reachable)


def _reachable(tx: Tx, deps: Deps, user: UserId) -> Mapping[str, str]:
    """Return the places where agents write, with a word for each."""
    read_only = {folder.path for folder in tx.folders.list(user) if folder.read_only}
    added = [path for _, path in tx.folders.added_by_all() if path not in read_only]
    # The settings give folders below these to each account, also to later ones.
    parents = [template.partition("{")[0].rpartition("/")[0] for template in deps.folders.templates]
    places = dict.fromkeys([*added, *filter(None, parents)])
    return {**{path: f"the folder {path}" for path in places}, **deps.folders.of_agents}
