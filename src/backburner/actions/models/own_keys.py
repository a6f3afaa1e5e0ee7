"""Keys of single users for models: stored in the vault, and used for runs of that user only."""

from collections.abc import Collection
from urllib.parse import quote

from backburner.actions.deps import Deps
from backburner.core.errors import BadRequest, NotAllowed, NotFound
from backburner.core.ids import UserId
from backburner.ports import Tx

MAX_KEY_CHARS = 1000


async def set_key(deps: Deps, user: UserId, profile: str, key: str) -> None:
    _check_profile(deps, profile)
    key = key.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise BadRequest("The key is empty, or contains spaces or other characters of no key.")
    if len(key) > MAX_KEY_CHARS:
        raise BadRequest(f"The key is longer than {MAX_KEY_CHARS} characters.")
    await deps.store.transact(
        lambda tx: deps.vault.put(tx.secrets, user, _name_of(profile), key.encode())
    )


async def remove_key(deps: Deps, user: UserId, profile: str) -> None:
    def work(tx: Tx) -> None:
        if tx.secrets.load(user, _name_of(profile)) is None:
            raise NotFound("You have no key of your own for this model.")
        tx.secrets.remove(user, _name_of(profile))

    await deps.store.transact(work)


async def list_profiles(deps: Deps, user: UserId) -> Collection[str]:
    """List the profiles that the user has an own key for."""
    names = deps.routes.names if deps.own_model_keys else ()
    if not names:
        return set()
    return await deps.store.read(
        lambda tx: {name for name in names if tx.secrets.load(user, _name_of(name)) is not None}
    )


async def find_key(deps: Deps, user: UserId, profile: str) -> str | None:
    """Return the user's own key for a profile; None: the one in the settings is used."""
    if not deps.own_model_keys:
        return None
    key = await deps.store.read(lambda tx: deps.vault.load(tx.secrets, user, _name_of(profile)))
    return None if key is None else key.decode()


def _check_profile(deps: Deps, profile: str) -> None:
    if not deps.own_model_keys:
        raise NotAllowed(
            "Users have no model keys of their own here.",
            hint="Ask an operator to set own_model_keys.",
        )
    if profile not in deps.routes.names or profile in deps.injection_proof:
        raise NotFound(f"There is no model {profile[:100]!r} that takes a key.")


def _name_of(profile: str) -> str:
    # Ends with what no name contains: removal is by the beginning of the name.
    return f"model-key/{quote(profile, safe='')}/"
