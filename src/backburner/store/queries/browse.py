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
    Asked,
    Found,
    Gauges,
    Given,
    Mark,
    Me,
    Numbered,
    Seen,
    Told,
    ToolCall,
    Wanted,
)
from backburner.store.accounts import users
from backburner.store.queries import browse_conversations, browse_work, gauges
from backburner.store.records import grants, memories


@dataclass(frozen=True, slots=True)
class Browse:
    connection: Connection

    def conversations(
        self, user: UserId, wanted: Wanted, after: Mark | None, *, most: int
    ) -> Found:
        return browse_conversations.page(self.connection, user, wanted, after, most=most)

    def conversation(self, user: UserId, which: ConversationId) -> Seen:
        return browse_conversations.one(self.connection, user, which)

    def messages(
        self, user: UserId, which: ConversationId, after: Mark | None, *, most: int
    ) -> Sequence[Numbered]:
        return browse_work.page_of_messages(self.connection, user, which, after, most=most)

    def message(self, user: UserId, which: MessageId) -> Message:
        return browse_work.one_message(self.connection, user, which)

    def questions(self, user: UserId, after: Mark | None, *, most: int) -> Sequence[Asked]:
        return browse_work.page_of_questions(self.connection, user, after, most=most)

    def question(self, user: UserId, which: QuestionId) -> Asked:
        return browse_work.one_question(self.connection, user, which)

    def runs(
        self, user: UserId, which: ConversationId, after: Mark | None, *, most: int
    ) -> Sequence[Run]:
        return browse_work.page_of_runs(self.connection, user, which, after, most=most)

    def calls(self, user: UserId, run: RunId) -> Sequence[ToolCall]:
        return browse_work.calls_of(self.connection, user, run)

    def notices(
        self, user: UserId, after: Mark | None, *, unseen: bool, most: int
    ) -> Sequence[Told]:
        return browse_work.page_of_notices(self.connection, user, after, unseen=unseen, most=most)

    def grants(self, user: UserId, which: ConversationId) -> Sequence[Given]:
        browse_work.require(self.connection, user, which)
        return grants.given(self.connection, user, which)

    def all_grants(self, user: UserId, after: Mark | None, *, most: int) -> Sequence[Given]:
        return grants.page(self.connection, user, after, most=most)

    def grant(self, user: UserId, which: GrantId) -> Given:
        return grants.one(self.connection, user, which)

    def memories(self, user: UserId, after: Mark | None, *, most: int) -> Sequence[Memory]:
        return memories.page(self.connection, user, after, most=most)

    def memory(self, user: UserId, key: str) -> Memory:
        return memories.one(self.connection, user, key)

    def me(self, user: UserId) -> Me:
        return users.describe(self.connection, user)

    def gauges(self, *, now: datetime) -> Gauges:
        return gauges.read(self.connection, now=now)
