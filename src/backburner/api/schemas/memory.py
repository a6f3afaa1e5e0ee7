"""Memories."""

from datetime import datetime
from typing import Self

from pydantic import BaseModel, Field

from backburner.actions.memories import MAX_MEMORY_CHARS
from backburner.api.schemas.base import RequestBody, example
from backburner.core.memory import Memory


class NewMemoryBody(RequestBody):
    model_config = example(text="Takes it black.")

    text: str = Field(description=f"Up to {MAX_MEMORY_CHARS:,} characters.")


class MemoryOut(BaseModel):
    model_config = example(
        key="coffee",
        text="Takes it black.",
        conversation_id=None,
        outside=False,
        created_at="2026-11-16T12:00:00Z",
        updated_at="2026-11-16T12:00:00Z",
    )

    key: str
    text: str
    conversation_id: str | None = Field(description="The conversation that it was learned in.")
    outside: bool = Field(description="The text may contain outside text.")
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, memory: Memory) -> Self:
        return cls.model_validate(memory, from_attributes=True)
