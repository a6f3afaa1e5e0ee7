"""Who asks for work or for a change to it: a user, an agent in a run, or an MCP client."""

from dataclasses import dataclass

from backburner.actions.deps import Deps
from backburner.core.conversation import Conversation
from backburner.core.ids import ConversationId, UserId
from backburner.core.run import Turn
from backburner.core.work import proposal
from backburner.ports import Tx

NOWHERE = ConversationId("")


@dataclass(frozen=True, slots=True)
class Origin:
    user: UserId
    #: An agent's conversation, or that of a client's token: what they create becomes its child.
    conversation: ConversationId
    #: The run that asks; None: a user, or a client with a token of the user's own.
    turn: Turn | None = None

    @classmethod
    def by_user(cls, user: UserId) -> "Origin":
        return cls(user, NOWHERE)

    @classmethod
    def of(cls, turn: Turn) -> "Origin":
        return cls(turn.user_id, turn.conversation_id, turn)

    @property
    def is_user(self) -> bool:
        return self.conversation == NOWHERE

    def hold(self, tx: Tx) -> Conversation:
        """Lock the conversation; a run that has lost its turn is fenced."""
        if self.turn is not None:
            return tx.turns.hold(self.turn)
        return tx.conversations.lock(self.user, self.conversation)

    def mark_outside_text(self, tx: Tx, deps: Deps) -> None:
        """Record that the agent reads outside text now; clients see to that themselves."""
        if self.turn is None:
            return
        here = tx.turns.hold(self.turn)
        if not here.outside_read and deps.can_be_injected(here.profile):
            tx.turns.mark_outside_text(self.turn)

    def may_start(self, here: Conversation) -> bool:
        """Decide whether requested work starts, or waits for the owner's approval as a proposal.

        A client is the owner's own, and asks them itself before it calls anything.
        """
        if self.turn is None:
            return True
        return proposal.needs_no_approval(self.turn.kind, outside_text_read=here.outside_read)
