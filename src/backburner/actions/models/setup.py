"""The setup of models by operators: list, test, store, choose and remove them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from backburner.actions.deps import Deps
from backburner.core.accounts import Act
from backburner.core.errors import EngineFailed
from backburner.core.ids import UserId
from backburner.core.retry import Outage
from backburner.ports import (
    Hint,
    HintKind,
    ModelEntry,
    ModelList,
    ModelRole,
    ModelTest,
)


@dataclass(frozen=True, slots=True)
class ModelSetupState:
    models: ModelList
    #: By profile.
    outages: Mapping[str, Outage]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedModels:
    names: Sequence[str] = ()
    #: Why the server does not list them, and what to do; empty: it does.
    problem: str = ""
    hint: str = ""


async def list_setup(deps: Deps) -> ModelSetupState:
    models = await deps.model_setup.list()
    outages = await deps.store.read(lambda tx: tx.outages.all())
    return ModelSetupState(models, {outage.profile: outage for outage in outages})


async def try_entry(deps: Deps, entry: ModelEntry | None, profile: str | None) -> ModelTest:
    """Send a model one short request. Nothing is stored."""
    return await deps.model_setup.test(entry, profile)


async def list_offered(deps: Deps, entry: ModelEntry | None, profile: str | None) -> OfferedModels:
    """List the models of a server, to choose one of them."""
    try:
        return OfferedModels(names=await deps.model_setup.offered(entry, profile))
    except EngineFailed as error:
        return OfferedModels(problem=error.message, hint=error.hint)


async def save(
    deps: Deps, actor: UserId, name: str, entry: ModelEntry, roles: Sequence[ModelRole]
) -> ModelSetupState:
    """Store a profile and use it at once, in the given roles as well."""
    saved = await deps.model_setup.save(name, entry, roles)
    detail = ", ".join([f"{name}: {saved.kind}", saved.model, saved.address, *sorted(roles)])
    await _record(deps, Act.MODEL_SAVED, actor, detail)
    return await list_setup(deps)


async def choose(
    deps: Deps, actor: UserId, chosen: Mapping[ModelRole, str | None]
) -> ModelSetupState:
    """Choose the profiles of chats and of background work; None: that of chats."""
    await deps.model_setup.choose(chosen)
    detail = ", ".join(f"{role}: {name or 'as chats'}" for role, name in sorted(chosen.items()))
    await _record(deps, Act.MODELS_CHOSEN, actor, detail)
    return await list_setup(deps)


async def remove(deps: Deps, actor: UserId, name: str) -> None:
    await deps.model_setup.remove(name)
    await _record(deps, Act.MODEL_REMOVED, actor, name)


async def _record(deps: Deps, act: Act, actor: UserId, detail: str) -> None:
    await deps.store.transact(lambda tx: tx.audit.record(act, actor=actor, detail=detail))
    # Other processes with the same files.
    if deps.bus is not None:
        deps.bus.hint(Hint(HintKind.MODELS))
