"""Where work is handed out and looked after from: a run, or a client of somebody outside."""

from dataclasses import dataclass

from backburner.actions.deps import Deps
from backburner.core.conversation import Conversation
from backburner.core.ids import ConversationId, UserId
from backburner.core.run import Turn
from backburner.core.work import proposal
from backburner.ports import Tx


@dataclass(frozen=True, slots=True)
class Origin:
    """Who asks, and in which conversation: all they hand out hangs under it."""

    user: UserId
    conversation: ConversationId
    #: The run that asks; None: a client with a token of the user's own.
    turn: Turn | None = None

    @classmethod
    def of(cls, turn: Turn) -> "Origin":
        return cls(turn.user_id, turn.conversation_id, turn)

    def hold(self, tx: Tx) -> Conversation:
        """Lock the conversation; a run that has lost its turn is told so."""
        if self.turn is not None:
            return tx.turns.hold(self.turn)
        return tx.conversations.lock(self.user, self.conversation)

    def note_outside(self, tx: Tx, deps: Deps) -> None:
        """Note that whoever asks reads words of others now; a client outside sees to it itself."""
        if self.turn is None:
            return
        here = tx.turns.hold(self.turn)
        if not here.outside_read and deps.can_be_injected(here.profile):
            tx.turns.mark_outside_text(self.turn)

    def may_start(self, here: Conversation) -> bool:
        """Decide whether work that is asked for begins, or only waits for the owner's yes.

        A client outside is the owner's own, and asks them itself before it calls anything.
        """
        if self.turn is None:
            return True
        return proposal.needs_no_approval(self.turn.kind, outside_text_read=here.outside_read)
