"""Models that conversations can use."""

from typing import Self

from pydantic import BaseModel, Field

from backburner.actions.models.profiles import ModelUse
from backburner.api.schemas.base import example


class ModelOut(BaseModel):
    model_config = example(profile="claude", chats=True, background=False)

    profile: str = Field(description="Its name, for the field `profile` of other requests.")
    chats: bool = Field(description="Chats use it by default.")
    background: bool = Field(description="Tasks, jobs and discovery use it by default.")

    @classmethod
    def of(cls, model: ModelUse) -> Self:
        return cls.model_validate(model, from_attributes=True)
