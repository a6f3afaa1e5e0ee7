"""The models that conversations use: list and reload them, change one, leave the demo."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from backburner.actions.deps import Deps
from backburner.core import transitions
from backburner.core.accounts import Act
from backburner.core.conversation import Conversation
from backburner.core.ids import UserId
from backburner.ports import Claim, Hint, HintKind, Tx


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The profile that a user chose; None: the default."""

    profile: str | None


@dataclass(frozen=True, slots=True)
class ModelUse:
    """A profile, and the kinds of conversation that use it unless they name another."""

    profile: str
    chats: bool
    background: bool


def list_models(deps: Deps) -> Sequence[ModelUse]:
    """List the profiles that conversations can use."""
    routes = deps.routes
    background = routes.background or routes.chat
    return [ModelUse(name, name == routes.chat, name == background) for name in routes.names]


async def reload(deps: Deps, actor: UserId) -> Sequence[ModelUse]:
    """Read the profiles again in all processes; an error changes nothing in this one."""
    if await deps.reload_models():
        await deps.store.transact(lambda tx: tx.audit.record(Act.MODELS_RELOADED, actor=actor))
    # Also if nothing has changed here: others may have files of their own.
    if deps.bus is not None:
        deps.bus.hint(Hint(HintKind.MODELS))
    return list_models(deps)


def forget_session(tx: Tx, before: Conversation, after: Conversation) -> None:
    """Delete the agent's session that a conversation had and has no more."""
    if before.session is not None and after.session is None:
        tx.sessions.delete(before.user_id, before.id, before.session.id)


def leave_demo(deps: Deps, tx: Tx, claim: Claim) -> Claim:
    """Move a conversation that began with the demo to a model that was set up since.

    Done in the transaction that claims its run, so that each conversation is read anyway.
    """
    conversation = claim.conversation
    if conversation.profile not in deps.injection_proof or claim.resumed:
        return claim
    step = transitions.leave_demo(
        conversation,
        deps.routes,
        deps.injection_proof,
        min_interval=deps.limits.min_interval,
    )
    if step is None:
        return claim
    forget_session(tx, conversation, step.conversation)
    tx.conversations.save(step)
    return replace(claim, conversation=step.conversation)
