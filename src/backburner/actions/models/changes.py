"""Changes of the model of a conversation: by its user, or because it began with the demo."""

from dataclasses import dataclass, replace

from backburner.core import transitions
from backburner.core.conversation import Conversation
from backburner.core.routing import AfterDemo
from backburner.ports import Claim, Tx


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The profile that a user chose; None: the default."""

    profile: str | None


def forget_session(tx: Tx, before: Conversation, after: Conversation) -> None:
    """Delete the agent's session that a conversation had and has no more."""
    if before.session is not None and after.session is None:
        tx.sessions.delete(before.user_id, before.id, before.session.id)


def leave_demo(tx: Tx, claim: Claim, after_demo: AfterDemo) -> Claim:
    """Move a conversation that began with the demo to a model that was set up since.

    Done in the transaction that claims its run, so that each conversation is read anyway.
    """
    conversation = claim.conversation
    step = None if claim.resumed else transitions.leave_demo(conversation, after_demo)
    if step is None:
        return claim
    forget_session(tx, conversation, step.conversation)
    tx.conversations.save(step)
    return replace(claim, conversation=step.conversation)
