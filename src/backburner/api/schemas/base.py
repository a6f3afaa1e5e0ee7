"""Shared by all schemas: the base of request bodies, ids, and examples."""

from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, model_validator

from backburner.core.errors import BadRequest, NotFound
from backburner.core.ids import ConversationId, GrantId, QuestionId, RunId
from backburner.core.validation import check_json
from backburner.ports import MAX_ID_CHARS


class RequestBody(BaseModel):
    """Base of request bodies. Refuses unknown fields, and JSON that cannot be stored or printed."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=False)

    @model_validator(mode="before")
    @classmethod
    def _check(cls, value: object) -> object:
        if isinstance(value, bytes):
            raise BadRequest("The request body is not JSON.", hint="Send it as application/json.")
        # The size was checked before the body was parsed.
        check_json("The request", value, limit=2**31)
        return value


def check_id(text: str) -> str:
    """Refuse what cannot be an id, with the same error as for an unknown id."""
    if len(text) > MAX_ID_CHARS or not text.replace("_", "").replace("-", "").isalnum():
        raise NotFound
    if not text.isascii():
        raise NotFound
    return text


ConversationIdPath = Annotated[
    ConversationId, Path(description="The conversation's id."), AfterValidator(check_id)
]
TaskIdPath = Annotated[ConversationId, Path(description="The task's id."), AfterValidator(check_id)]
JobIdPath = Annotated[ConversationId, Path(description="The job's id."), AfterValidator(check_id)]
RunIdPath = Annotated[RunId, Path(description="The run's id."), AfterValidator(check_id)]
QuestionIdPath = Annotated[
    QuestionId, Path(description="The question's id."), AfterValidator(check_id)
]
GrantIdPath = Annotated[GrantId, Path(description="The grant's id."), AfterValidator(check_id)]
ConversationIdQuery = Annotated[
    ConversationId, Query(description="The conversation's id."), AfterValidator(check_id)
]
ParentIdQuery = Annotated[
    ConversationId, Query(description="Their parent conversation."), AfterValidator(check_id)
]


def example(**values: Any) -> ConfigDict:
    return ConfigDict(json_schema_extra={"example": values})


def strict_example(**values: Any) -> ConfigDict:
    return ConfigDict(extra="forbid", **example(**values))
