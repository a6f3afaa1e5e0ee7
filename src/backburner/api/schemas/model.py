"""Models that conversations can use."""

from typing import Self

from pydantic import BaseModel, Field

from backburner.actions.models.own_keys import MAX_KEY_CHARS
from backburner.actions.models.profiles import ModelUse
from backburner.api.schemas.base import RequestBody, example, strict_example


class ModelOut(BaseModel):
    model_config = example(profile="claude", chats=True, background=False, own_key=False)

    profile: str = Field(description="Its name, for the field `profile` of other requests.")
    chats: bool = Field(description="Chats use it by default.")
    background: bool = Field(description="Tasks, jobs and discovery use it by default.")

    own_key: bool = Field(description="Your work with it uses a key of your own.")

    @classmethod
    def of(cls, model: ModelUse) -> Self:
        return cls.model_validate(model, from_attributes=True)


class ModelKeyBody(RequestBody):
    model_config = strict_example(profile="claude", key="sk-0123456789")

    profile: str = Field(max_length=1000, description="The name of the profile.")
    key: str = Field(
        min_length=1,
        max_length=MAX_KEY_CHARS,
        repr=False,
        description="A key of the same kind as in the settings: an API key, or the token of a"
        " subscription.",
    )
