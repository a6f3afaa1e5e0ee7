"""Values with defaults: a test says what matters to it, and the rest is an ordinary afternoon.

Every function takes any field of what it makes as a keyword.
"""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from backburner.core.conversation import Conversation, Kind, Message, MessageRole, Source
from backburner.core.ids import ConversationId, ItemId, MessageId, QuestionId, RunId, UserId
from backburner.core.memory import Memory
from backburner.core.question import NO, YES, Purpose, Question, QuestionType
from backburner.core.run import Failure, FailureKind, Item, ItemKind, Run, RunKind, RunStatus

#: A Monday, when nobody's clocks change.
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)

#: The cast: a user, a team mate, and somebody who may see nothing.
USER = UserId("u_user")
MATE = UserId("u_mate")
STRANGER = UserId("u_stranger")
#: Whoever adds users, where nobody in particular does.
OPERATOR = UserId("u_operator")

CONVERSATION = ConversationId("c_conversation")
OTHER = ConversationId("c_other")
ITEM = ItemId("i_item")
MESSAGE = MessageId("m_message")
QUESTION = QuestionId("q_question")
RUN = RunId("r_run")


def conversation(**changes: Any) -> Conversation:
    """Make a chat in which nothing has happened yet."""
    made = Conversation(id=CONVERSATION, user_id=USER, kind=Kind.CHAT, created_at=NOON)
    return replace(made, **changes)


def message(content: str = "Hello.", **changes: Any) -> Message:
    """Make a chat message of the user's."""
    made = Message(
        id=MESSAGE,
        conversation_id=CONVERSATION,
        role=MessageRole.USER,
        content=content,
        source=Source.CHAT,
        created_at=NOON,
    )
    return replace(made, **changes)


def memory(**changes: Any) -> Memory:
    """Make a memory that its user wrote."""
    made = Memory(
        key="tea",
        text="With milk.",
        conversation_id=None,
        outside=False,
        created_at=NOON,
        updated_at=NOON,
    )
    return replace(made, **changes)


def question(**changes: Any) -> Question:
    """Make a question that the agent asks in a background run, to be answered yes or no."""
    made = Question(
        id=QUESTION,
        purpose=Purpose.QUESTION,
        type=QuestionType.CONFIRMATION,
        prompt="Shall I go on?",
        options=(YES, NO),
        run_id=RUN,
        asked_at=NOON,
    )
    return replace(made, **changes)


def run(**changes: Any) -> Run:
    """Make a background run under way, claimed under the schedule a conversation is born with."""
    made = Run(
        id=RUN,
        conversation_id=CONVERSATION,
        kind=RunKind.BACKGROUND,
        status=RunStatus.RUNNING,
        epoch=1,
        schedule_revision=0,
        started_at=NOON,
    )
    return replace(made, **changes)


def item(**changes: Any) -> Item:
    """Make a message of the user's that waits for its reply."""
    made = Item(
        id=ITEM,
        kind=ItemKind.MESSAGE,
        run_kind=RunKind.REPLY,
        arrived_at=NOON,
        content={"text": "Hello."},
    )
    return replace(made, **changes)


def failure(kind: FailureKind = FailureKind.MODEL, **changes: Any) -> Failure:
    """Make a failure that may pass."""
    return replace(Failure(kind, "The model was overloaded."), **changes)
