"""What goes in and out as JSON: the bodies of requests, and the values of the core as answers."""

from datetime import timedelta
from typing import Annotated, Any

from fastapi import Path
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from backburner.core.errors import BadRequest, NotFound
from backburner.core.validation import check_json
from backburner.ports import MAX_ID_CHARS


class Problem(BaseModel):
    """What is wrong, as RFC 9457 has it."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "type": "about:blank",
                "title": "Conflict",
                "status": 409,
                "detail": "This work is already paused.",
                "hint": "Resume it to let it go on.",
            }
        }
    )

    type: str
    title: str
    status: int
    detail: str = Field(description="What is wrong, in a sentence.")
    hint: str = Field(default="", description="What would be right; left out where that is clear.")


#: The longest timeout that a run can be given.
LONGEST_RUN = timedelta(days=1)
_PROBLEM = "#/components/schemas/Problem"
_MEANINGS = {
    400: "It cannot be understood.",
    401: "You are not signed in.",
    403: "Your credential is not good for that.",
    404: "There is nothing here with that id.",
    408: "The body took too long to come.",
    409: "It does not fit the way things are now; nothing was changed.",
    413: "It is larger than is allowed.",
    415: "Whoever comes with a cookie sends JSON.",
    422: "The request is not as it should be.",
    429: "There is as much of it as there may be.",
    503: "The database does not answer.",
}
#: Whatever is asked for may be answered with one of these.
ALWAYS = (400, 401, 403, 422, 503)
#: And what brings a body.
BODY = (408, 413)


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Document how a request may be refused, besides the ways that go for all."""
    return {
        status: {
            "description": _MEANINGS[status],
            "content": {"application/problem+json": {"schema": {"$ref": _PROBLEM}}},
        }
        for status in sorted({*ALWAYS, *statuses})
    }


def add_problem(described: dict[str, Any]) -> dict[str, Any]:
    """Put into the description of the API what all refusals refer to."""
    schemas = described.setdefault("components", {}).setdefault("schemas", {})
    schemas["Problem"] = Problem.model_json_schema()
    return described


class Body(BaseModel):
    """What a request brings. Nothing is read of one that nobody could keep or print."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=False)

    @model_validator(mode="before")
    @classmethod
    def _check(cls, value: object) -> object:
        if isinstance(value, bytes):
            raise BadRequest("That is not JSON.", hint="Send it as application/json.")
        # What is too large has been refused before.
        check_json("The request", value, limit=2**31)
        return value


def as_id(text: str) -> str:
    # Whatever cannot be an id is answered as an id that nobody has.
    if len(text) > MAX_ID_CHARS or not text.replace("_", "").replace("-", "").isalnum():
        raise NotFound
    if not text.isascii():
        raise NotFound
    return text


Id = Annotated[str, Path(description="Its id."), AfterValidator(as_id)]


def example(**values: Any) -> ConfigDict:
    return ConfigDict(json_schema_extra={"example": values})
