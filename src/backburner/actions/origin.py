"""The origin of a request: a user, an agent in a run, or an MCP client."""

from dataclasses import dataclass

from backburner.actions.deps import Deps
from backburner.core.accounts import Caller
from backburner.core.conversation import Conversation, Use, Uses
from backburner.core.errors import Conflict
from backburner.core.ids import ConversationId, RunId, UserId
from backburner.core.run import Turn
from backburner.core.work import proposal
from backburner.ports import Tx

#: Matches no conversation.
NO_CONVERSATION = ConversationId("")


@dataclass(frozen=True, slots=True)
class Origin:
    user: UserId
    #: The conversation of the agent or of the client's token, parent of the work they create.
    conversation: ConversationId
    #: The requesting run; None: a user, or a client with a user's token.
    turn: Turn | None = None
    #: What of the user's its work may use; work below a conversation also inherits from that.
    uses: Uses = None
    #: The names of the connections that its work may use; None: no token restricts it.
    connections: frozenset[str] | None = None

    @classmethod
    def by_user(cls, user: UserId) -> "Origin":
        return cls(user, NO_CONVERSATION)

    @classmethod
    def by(cls, caller: Caller, conversation: ConversationId = NO_CONVERSATION) -> "Origin":
        return cls(
            caller.user,
            conversation,
            uses=caller.work_uses,
            connections=caller.work_connections,
        )

    @classmethod
    def of(cls, turn: Turn, uses: Uses = None) -> "Origin":
        return cls(turn.user_id, turn.conversation_id, turn, uses)

    @property
    def is_user(self) -> bool:
        return self.conversation == NO_CONVERSATION

    def may_use(self, use: Use) -> bool:
        return self.uses is None or use in self.uses

    def hold(self, tx: Tx) -> Conversation:
        """Lock the conversation; a run that has lost its turn is fenced."""
        if self.turn is not None:
            return tx.turns.hold(self.turn)
        return tx.conversations.lock(self.user, self.conversation)

    def hold_to_start(self, tx: Tx) -> Conversation:
        """Lock the conversation to set up work; a run that was asked to stop sets up none."""
        here = self.hold(tx)
        if self.turn is not None and tx.turns.is_cancelled(self.turn):
            raise Conflict("The user has stopped this run.", hint="Set up nothing more.")
        return here

    @property
    def run_id(self) -> RunId | None:
        return None if self.turn is None else self.turn.run_id

    def mark_outside_text(self, tx: Tx, deps: Deps) -> None:
        """Record that the agent has read outside text; clients track that themselves."""
        if self.turn is None:
            return
        here = tx.turns.hold(self.turn)
        if not here.outside_read and deps.can_be_injected(here.profile):
            tx.turns.mark_outside_text(self.turn)

    def may_start(self, here: Conversation) -> bool:
        """Check whether work may start without the owner's approval.

        A client acts for the owner, and asks them itself before it calls a tool.
        """
        if self.turn is None:
            return True
        return proposal.needs_no_approval(self.turn.kind, outside_text_read=here.outside_read)
