"""Messages."""

from datetime import datetime
from typing import Self

from pydantic import BaseModel, Field

from backburner.api.schemas.base import RequestBody, example
from backburner.core.conversation import Message, MessageRole, Source
from backburner.core.validation import MAX_MESSAGE_CHARS


class NewMessageBody(RequestBody):
    model_config = example(content="Watch CI on main and tell me if it breaks.")

    content: str = Field(description=f"Up to {MAX_MESSAGE_CHARS:,} characters.")
    profile: str | None = Field(
        default=None,
        description="The profile of the reply, or of the run that it resumes as an answer;"
        " null: that of the conversation.",
    )
    answers: str | None = Field(
        default=None,
        description="The question that it answers. Without it, yes or no decides a proposal only"
        " if that was shown last in the conversation and is the only open question.",
    )


class MessageOut(BaseModel):
    model_config = example(
        id="m_0123456789abcdefghjkmnpqrs",
        conversation_id="c_0123456789abcdefghjkmnpqrs",
        role="user",
        content="Watch CI on main and tell me if it breaks.",
        source="chat",
        created_at="2026-11-16T12:00:00Z",
        run_id=None,
        outside=False,
        shows=None,
    )

    id: str
    conversation_id: str
    role: MessageRole
    content: str
    source: Source = Field(description="Whether it comes from the chat or from the worker.")
    created_at: datetime
    run_id: str | None = Field(description="The run that wrote it.")
    outside: bool = Field(description="The message may contain outside text.")
    shows: str | None = Field(description="The question that it shows.")

    @classmethod
    def of(cls, message: Message) -> Self:
        return cls.model_validate(message, from_attributes=True)
