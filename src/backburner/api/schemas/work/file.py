"""Files that are kept for a user."""

from datetime import datetime
from typing import Annotated, Self

from fastapi import Path
from pydantic import AfterValidator, BaseModel, Field

from backburner.api.schemas.base import RequestBody, example
from backburner.core.content.attachment import MAX_ATTACHMENTS, Attachment
from backburner.core.content.file import (
    DIGEST_CHARS,
    FileReference,
    StoredFile,
    check_digest,
)
from backburner.core.errors import BadRequest, NotFound

#: As a sender gives it: it is made safe, and cut.
MAX_GIVEN_NAME_CHARS = 1000
DIGEST_EXAMPLE = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"


def _check(text: str) -> str:
    """Refuse what cannot be a digest, with the same error as for an unknown one."""
    try:
        return check_digest(text)
    except BadRequest:
        raise NotFound from None


DigestPath = Annotated[
    str, Path(description="The SHA-256 digest of the file."), AfterValidator(_check)
]
Digest = Annotated[str, Field(description="The SHA-256 digest of its bytes.")]
Name = Annotated[str, Field(description="As its sender says, made safe; may be empty.")]
MediaType = Annotated[
    str,
    Field(
        description="By its bytes for PNG, JPEG, GIF and WebP images, otherwise as its sender says:"
        " nobody has checked that."
    ),
]


class FileReferenceOut(BaseModel):
    """A file that a result names. It may have been deleted since."""

    model_config = example(
        digest=DIGEST_EXAMPLE, size=48_120, media_type="image/png", name="chart.png", shown=True
    )

    digest: Digest
    size: int = Field(description="In bytes.")
    media_type: MediaType
    name: Name
    shown: bool = Field(description="The agent was given it as an image.")

    @classmethod
    def of(cls, file: FileReference) -> Self:
        return cls.model_validate(file, from_attributes=True)


class NewAttachmentBody(RequestBody):
    """A file of yours that a message has."""

    model_config = example(digest=DIGEST_EXAMPLE, name="chart.png")

    digest: str = Field(
        max_length=DIGEST_CHARS, description="The SHA-256 digest, as an upload returns it."
    )
    name: str = Field(
        default="",
        max_length=MAX_GIVEN_NAME_CHARS,
        description="Its name in this message, which is made safe; empty: that of the file.",
    )

    def attachment(self) -> Attachment:
        return Attachment(self.digest, self.name)


Attachments = Annotated[
    list[NewAttachmentBody],
    Field(
        max_length=MAX_ATTACHMENTS,
        description=f"Up to {MAX_ATTACHMENTS} files, uploaded with `POST /api/files`."
        " One that you do not have is an error, and nothing is sent.",
    ),
]


class AttachmentOut(BaseModel):
    """A file of a message. It may have been deleted since."""

    model_config = example(
        digest=DIGEST_EXAMPLE, size=48_120, media_type="image/png", name="chart.png"
    )

    digest: Digest
    size: int = Field(description="In bytes.")
    media_type: MediaType
    name: Name


class UploadedFileOut(AttachmentOut):
    """A file that was uploaded, for the messages that will have it."""

    @classmethod
    def of(cls, file: FileReference) -> Self:
        return cls.model_validate(file, from_attributes=True)


class FileOut(BaseModel):
    model_config = example(
        digest=DIGEST_EXAMPLE,
        size=48_120,
        media_type="image/png",
        name="chart.png",
        conversation_id="c_0123456789abcdefghjkmnpqrs",
        run_id="r_0123456789abcdefghjkmnpqrs",
        call_id="t_0123456789abcdefghjkmnpqrs",
        created_at="2026-11-16T12:00:12Z",
    )

    digest: Digest
    size: int = Field(description="In bytes.")
    media_type: MediaType
    name: Name
    conversation_id: str | None = Field(
        description="What it came from first: it may have been deleted, and others may name it."
        " Null: it was uploaded, and no message has named it yet."
    )
    run_id: str | None
    call_id: str | None = Field(description="The tool call that returned it.")
    created_at: datetime

    @classmethod
    def of(cls, file: StoredFile) -> Self:
        return cls(
            digest=file.digest,
            size=file.size,
            media_type=file.media_type,
            name=file.name,
            conversation_id=file.origin.conversation_id,
            run_id=file.origin.run_id,
            call_id=file.origin.call_id,
            created_at=file.created_at,
        )
