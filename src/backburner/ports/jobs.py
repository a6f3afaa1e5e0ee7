"""Jobs that a conversation has handed out, and runs that wait for them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from backburner.core.conversation import Conversation
from backburner.core.ids import ConversationId, ItemId, UserId
from backburner.core.run import RunKind, Turn
from backburner.core.work.views import WorkSummary


class Jobs(Protocol):
    def under(
        self,
        user: UserId,
        parent: ConversationId,
        *,
        limit: int,
        ids: Collection[str] | None = None,
        batch: str | None = None,
    ) -> Sequence[Conversation]:
        """Read what a conversation handed out, newest first: whose id begins so, of one batch."""

    def named(
        self, user: UserId, conversation_ids: Collection[ConversationId]
    ) -> Mapping[ConversationId, Conversation]:
        """Read the ones that are still there."""

    def lock(
        self, user: UserId, conversation_ids: Collection[ConversationId]
    ) -> Mapping[ConversationId, Conversation]:
        """Read the ones that are still there; until the transaction ends nobody changes them."""

    def work(
        self, user: UserId, conversation_ids: Collection[ConversationId]
    ) -> Mapping[ConversationId, WorkSummary]:
        """Tell what is known of their runs."""

    def count_open(self, user: UserId, root: ConversationId) -> int: ...
    def retrieve(self, user: UserId, conversation_ids: Collection[ConversationId]) -> None:
        """Note that the results of these were fetched, unless they were before."""

    def is_remembered(self, user: UserId, conversation_id: ConversationId, session_id: str) -> bool:
        """See whether anything is left of an agent's session."""

    def wait(self, turn: Turn, conversation_ids: Mapping[ConversationId, bool]) -> None:
        """Let a run that was just handed back go on once all of these have settled.

        It does at once where they have, each, or where a person has spoken meanwhile.
        """

    def awaited_by(
        self, user: UserId, parent: ConversationId, job: ConversationId
    ) -> RunKind | None:
        """Tell what kind of run waits for a job; None: nothing does."""

    def redirect(self, user: UserId, items: Collection[ItemId], kind: RunKind) -> None:
        """Let what waits in an inbox be served by a run of this kind."""
