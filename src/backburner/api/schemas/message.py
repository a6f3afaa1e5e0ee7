"""Messages."""

from datetime import datetime
from typing import Self

from pydantic import BaseModel, Field

from backburner.actions.chat import UserMessage
from backburner.api.schemas.base import RequestBody, example
from backburner.api.schemas.work.file import DIGEST_EXAMPLE, AttachmentOut, Attachments
from backburner.core.conversation import Message, MessageRole, Source
from backburner.core.validation import MAX_MESSAGE_CHARS


class NewMessageBody(RequestBody):
    model_config = example(
        content="What is wrong with this chart?",
        attachments=[{"digest": DIGEST_EXAMPLE, "name": "chart.png"}],
    )

    content: str = Field(
        description=f"Up to {MAX_MESSAGE_CHARS:,} characters; may be empty if there are files."
    )
    attachments: Attachments = Field(default_factory=list)
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

    def message(self) -> UserMessage:
        return UserMessage(self.content, [one.attachment() for one in self.attachments])


class EditedMessageBody(NewMessageBody):
    replaces: str | None = Field(
        default=None,
        description="The message that it replaces: if you have sent another one since, nothing is"
        " changed. Without it, it replaces whichever is your last one.",
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
        closes=None,
        attachments=[],
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
    closes: str | None = Field(description="The question whose answer or withdrawal it records.")
    attachments: list[AttachmentOut] = Field(
        validation_alias="files",
        description="The files that its user attached, or that its agent handed over.",
    )

    @classmethod
    def of(cls, message: Message) -> Self:
        return cls.model_validate(message, from_attributes=True)
