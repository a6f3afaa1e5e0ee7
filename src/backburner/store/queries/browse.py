"""What there is to see of a user's own; the statements stand where what they read is kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from backburner.core.conversation import Message
from backburner.core.ids import ConversationId, GrantId, MessageId, QuestionId, RunId, UserId
from backburner.core.memory import Memory
from backburner.core.run import Run
from backburner.ports import (
    ConversationFilter,
    ConversationPage,
    ConversationRow,
    Gauges,
    GrantRow,
    NoticeRow,
    PageKey,
    QuestionRow,
    ToolCallRow,
    UserProfile,
)
from backburner.store.accounts import users
from backburner.store.queries import browse_conversations, browse_work, gauges
from backburner.store.records import grants, memories


@dataclass(frozen=True, slots=True)
class Browse:
    connection: Connection

    def conversations(
        self, user: UserId, wanted: ConversationFilter, after: PageKey | None, *, limit: int
    ) -> ConversationPage:
        return browse_conversations.page(self.connection, user, wanted, after, limit=limit)

    def conversation(self, user: UserId, conversation_id: ConversationId) -> ConversationRow:
        return browse_conversations.one(self.connection, user, conversation_id)

    def messages(
        self, user: UserId, conversation_id: ConversationId, after: PageKey | None, *, limit: int
    ) -> Sequence[Message]:
        return browse_work.page_of_messages(
            self.connection, user, conversation_id, after, limit=limit
        )

    def message(self, user: UserId, message_id: MessageId) -> Message:
        return browse_work.one_message(self.connection, user, message_id)

    def questions(
        self, user: UserId, after: PageKey | None, *, limit: int
    ) -> Sequence[QuestionRow]:
        return browse_work.page_of_questions(self.connection, user, after, limit=limit)

    def question(self, user: UserId, question_id: QuestionId) -> QuestionRow:
        return browse_work.one_question(self.connection, user, question_id)

    def runs(
        self, user: UserId, conversation_id: ConversationId, after: PageKey | None, *, limit: int
    ) -> Sequence[Run]:
        return browse_work.page_of_runs(self.connection, user, conversation_id, after, limit=limit)

    def calls(self, user: UserId, run: RunId) -> Sequence[ToolCallRow]:
        return browse_work.calls_of(self.connection, user, run)

    def notices(
        self, user: UserId, after: PageKey | None, *, unseen: bool, limit: int
    ) -> Sequence[NoticeRow]:
        return browse_work.page_of_notices(self.connection, user, after, unseen=unseen, limit=limit)

    def grants(self, user: UserId, conversation_id: ConversationId) -> Sequence[GrantRow]:
        browse_work.require(self.connection, user, conversation_id)
        return grants.given(self.connection, user, conversation_id)

    def all_grants(self, user: UserId, after: PageKey | None, *, limit: int) -> Sequence[GrantRow]:
        return grants.page(self.connection, user, after, limit=limit)

    def grant(self, user: UserId, grant_id: GrantId) -> GrantRow:
        return grants.one(self.connection, user, grant_id)

    def memories(self, user: UserId, after: PageKey | None, *, limit: int) -> Sequence[Memory]:
        return memories.page(self.connection, user, after, limit=limit)

    def memory(self, user: UserId, key: str) -> Memory:
        return memories.one(self.connection, user, key)

    def me(self, user: UserId) -> UserProfile:
        return users.describe(self.connection, user)

    def gauges(self, *, now: datetime) -> Gauges:
        return gauges.read(self.connection, now=now)
