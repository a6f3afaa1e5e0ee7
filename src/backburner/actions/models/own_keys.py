"""Keys of single users for models: stored in the vault, and used for runs of that user only.

A key is for the kind and address that its profile had when it was stored, and is sent nowhere else:
an operator may give the profile another address.
"""

from collections.abc import Collection
from urllib.parse import quote

from backburner.actions.deps import Deps
from backburner.core.errors import BadRequest, EngineFailed, NotAllowed, NotFound
from backburner.core.ids import UserId
from backburner.ports import Tx

MAX_KEY_CHARS = 1000
OTHER_ADDRESS = (
    "You stored your own key for {0} when it had another address, and it is sent nowhere else."
    " Enter it again with `backburner models key {0}`, or use that of the settings with --remove."
)


async def set_key(deps: Deps, user: UserId, profile: str, key: str) -> None:
    _check_profile(deps, profile)
    key = key.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise BadRequest("The key is empty, or contains spaces or other characters of no key.")
    if len(key) > MAX_KEY_CHARS:
        raise BadRequest(f"The key is longer than {MAX_KEY_CHARS} characters.")
    await deps.store.transact(
        lambda tx: deps.vault.put(tx.secrets, user, _name_of(deps, profile), key.encode())
    )


async def remove_key(deps: Deps, user: UserId, profile: str) -> None:
    def work(tx: Tx) -> None:
        if not tx.secrets.find(_prefix_of(profile), owner=user):
            raise NotFound("You have no key of your own for this model.")
        tx.secrets.remove(user, _prefix_of(profile))

    await deps.store.transact(work)


async def list_profiles(deps: Deps, user: UserId) -> Collection[str]:
    """List the profiles that the user has an own key for."""
    names = deps.routes.names if deps.own_model_keys else ()
    if not names:
        return set()
    return await deps.store.read(
        lambda tx: {
            name for name in names if tx.secrets.load(user, _name_of(deps, name)) is not None
        }
    )


async def find_key(deps: Deps, user: UserId, profile: str) -> str | None:
    """Return the user's own key for a profile; None: the one in the settings is used.

    Raises `EngineFailed` if they stored one for another address only: nobody else pays for that.
    """
    if not deps.own_model_keys:
        return None
    # Before anything is awaited: the caller has just taken the engine, which a reload replaces.
    name = _name_of(deps, profile)

    def work(tx: Tx) -> bytes | None:
        key = deps.vault.load(tx.secrets, user, name)
        if key is None and tx.secrets.find(_prefix_of(profile), owner=user):
            raise EngineFailed(OTHER_ADDRESS.format(profile), permanent=True)
        return key

    key = await deps.store.read(work)
    return None if key is None else key.decode()


def _check_profile(deps: Deps, profile: str) -> None:
    if not deps.own_model_keys:
        raise NotAllowed(
            "Users have no model keys of their own here.",
            hint="Ask an operator to set own_model_keys.",
        )
    if profile not in deps.routes.names or profile in deps.injection_proof:
        raise NotFound(f"There is no model {profile[:100]!r} that takes a key.")


def _name_of(deps: Deps, profile: str) -> str:
    return f"{_prefix_of(profile)}{quote(deps.model_servers.get(profile, ''), safe='')}/"


def _prefix_of(profile: str) -> str:
    # Ends with what no name contains: removal is by the beginning of the name.
    return f"model-key/{quote(profile, safe='')}/"
