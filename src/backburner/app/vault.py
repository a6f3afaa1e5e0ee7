"""Builds the vault, and looks after its keys without a server."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import closing
from typing import TypeVar

from backburner import log
from backburner.actions.deps import Deps
from backburner.actions.operate import vault as actions
from backburner.actions.operate.vault import Rotation
from backburner.app.clock import Clock
from backburner.app.machines import NoTools
from backburner.core.accounts import ON_THE_SERVER
from backburner.core.errors import NotFound
from backburner.ports import VaultStatus
from backburner.settings import MASTER_KEYS, Settings, take_master_keys
from backburner.store.lifecycle.opening import look_at_database, open_database, read_at_rest
from backburner.vault.master_keys import KEY_FILE, MasterKeys, parse_master_keys
from backburner.vault.vault import SealingVault

T = TypeVar("T")


def build_master_keys(settings: Settings) -> MasterKeys:
    return MasterKeys(
        settings.data / KEY_FILE,
        given=parse_master_keys(take_master_keys(), MASTER_KEYS),
        named=settings.master_key_file,
        redact=log.add_secrets,
    )


def build_vault(settings: Settings) -> SealingVault:
    is_file = settings.database.get_secret_value().startswith("sqlite")
    return SealingVault(build_master_keys(settings), is_shared=not is_file)


def read_status(settings: Settings) -> VaultStatus | None:
    """Read the state of the vault without changing anything.

    None: there is no database, its tables are of another revision, or a server has it open.
    """
    vault = build_vault(settings)
    # As the restore before: a pooler may not be there yet.
    url = (settings.database_direct_url or settings.database).get_secret_value()
    return read_at_rest(url, Clock().read, lambda tx: vault.status(tx.secrets))


def rotate(settings: Settings, *, keep_old: bool) -> Rotation:
    return _offline(settings, lambda deps: actions.rotate(deps, ON_THE_SERVER, keep_old=keep_old))


def forget_locked(settings: Settings) -> int:
    return _offline(settings, lambda deps: actions.forget_locked(deps, ON_THE_SERVER))


def find_restore_problems(settings: Settings) -> Iterator[str]:
    """Say which secrets of a restored backup cannot be opened here, and how to bring the key."""
    status = read_status(settings)
    if status is None or status.is_open:
        return
    if status.problem:
        yield f"{status.problem} {status.hint}"
    keys = ", ".join(sorted(status.locked))
    yield (
        f"The secrets in this backup were sealed with the master key {keys}, which is not in"
        f" {status.source}. Whatever needs them does not work until you bring it."
    )
    yield (
        f"To bring it, add its line to {status.source}, from the same place on the machine of the"
        " backup, or from a copy. If it is lost: `backburner vault reset`."
    )


def describe_locked(locked: Mapping[str, int]) -> Iterator[str]:
    """Say which master keys are missing, and what to do."""
    for key_id, count in locked.items():
        keys = "1 key is" if count == 1 else f"{count} keys are"
        yield (
            f"{keys} locked by the master key {key_id}, which is not here. Bring it, or let users"
            " enter their secrets again after `backburner vault reset`."
        )


def _offline(settings: Settings, act: Callable[[Deps], Awaitable[T]]) -> T:
    async def run(deps: Deps) -> T:
        return await act(deps)

    url = settings.database.get_secret_value()
    state = look_at_database(url)
    if state.revision is None and not state.in_use:
        raise NotFound("Found no Backburner database.", hint="Select its folder with --data.")
    vault = build_vault(settings)
    with closing(open_database(url, Clock().read)) as database:
        deps = Deps(
            store=database,
            engines={},
            default_profile="",
            toolbox=NoTools(),
            vault=vault,
            vault_keys=vault,
        )
        return asyncio.run(run(deps))
