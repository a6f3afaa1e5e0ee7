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
    MessageRow,
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
        self, user: UserId, wanted: ConversationFilter, after: PageKey | None, *, most: int
    ) -> ConversationPage:
        return browse_conversations.page(self.connection, user, wanted, after, most=most)

    def conversation(self, user: UserId, which: ConversationId) -> ConversationRow:
        return browse_conversations.one(self.connection, user, which)

    def messages(
        self, user: UserId, which: ConversationId, after: PageKey | None, *, most: int
    ) -> Sequence[MessageRow]:
        return browse_work.page_of_messages(self.connection, user, which, after, most=most)

    def message(self, user: UserId, which: MessageId) -> Message:
        return browse_work.one_message(self.connection, user, which)

    def questions(self, user: UserId, after: PageKey | None, *, most: int) -> Sequence[QuestionRow]:
        return browse_work.page_of_questions(self.connection, user, after, most=most)

    def question(self, user: UserId, which: QuestionId) -> QuestionRow:
        return browse_work.one_question(self.connection, user, which)

    def runs(
        self, user: UserId, which: ConversationId, after: PageKey | None, *, most: int
    ) -> Sequence[Run]:
        return browse_work.page_of_runs(self.connection, user, which, after, most=most)

    def calls(self, user: UserId, run: RunId) -> Sequence[ToolCallRow]:
        return browse_work.calls_of(self.connection, user, run)

    def notices(
        self, user: UserId, after: PageKey | None, *, unseen: bool, most: int
    ) -> Sequence[NoticeRow]:
        return browse_work.page_of_notices(self.connection, user, after, unseen=unseen, most=most)

    def grants(self, user: UserId, which: ConversationId) -> Sequence[GrantRow]:
        browse_work.require(self.connection, user, which)
        return grants.given(self.connection, user, which)

    def all_grants(self, user: UserId, after: PageKey | None, *, most: int) -> Sequence[GrantRow]:
        return grants.page(self.connection, user, after, most=most)

    def grant(self, user: UserId, which: GrantId) -> GrantRow:
        return grants.one(self.connection, user, which)

    def memories(self, user: UserId, after: PageKey | None, *, most: int) -> Sequence[Memory]:
        return memories.page(self.connection, user, after, most=most)

    def memory(self, user: UserId, key: str) -> Memory:
        return memories.one(self.connection, user, key)

    def me(self, user: UserId) -> UserProfile:
        return users.describe(self.connection, user)

    def gauges(self, *, now: datetime) -> Gauges:
        return gauges.read(self.connection, now=now)
