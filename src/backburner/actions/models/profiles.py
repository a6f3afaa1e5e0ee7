"""The profiles that conversations can use: list and reload them."""

from collections.abc import Sequence
from dataclasses import dataclass

from backburner.actions.deps import Deps
from backburner.actions.models import own_keys
from backburner.core.accounts import Act
from backburner.core.ids import UserId
from backburner.ports import Hint, HintKind


@dataclass(frozen=True, slots=True)
class ModelUse:
    """A profile, and the kinds of conversation that use it unless they name another."""

    profile: str
    chats: bool
    background: bool
    #: The user who asks has a key of their own for it.
    own_key: bool = False


async def list_models(deps: Deps, user: UserId) -> Sequence[ModelUse]:
    """List the profiles that conversations can use."""
    routes = deps.routes
    background = routes.background or routes.chat
    own = await own_keys.list_profiles(deps, user)
    return [
        ModelUse(name, name == routes.chat, name == background, own_key=name in own)
        for name in routes.names
    ]


async def reload(deps: Deps, actor: UserId) -> Sequence[ModelUse]:
    """Read the profiles again in all processes; an error changes nothing in this one."""
    if await deps.reload_models():
        await deps.store.transact(lambda tx: tx.audit.record(Act.MODELS_RELOADED, actor=actor))
    # Also if nothing has changed here: others may have files of their own.
    if deps.bus is not None:
        deps.bus.hint(Hint(HintKind.MODELS))
    return await list_models(deps, actor)
