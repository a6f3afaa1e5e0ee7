"""Changes of the model of a conversation: by its user, or because it began with the demo."""

from dataclasses import dataclass, replace

from backburner.actions.deps import Deps
from backburner.core import transitions
from backburner.core.conversation import Conversation
from backburner.ports import Claim, Tx


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The profile that a user chose; None: the default."""

    profile: str | None


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
