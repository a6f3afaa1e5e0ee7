"""How the description of the API tells of errors."""

from http import HTTPStatus
from typing import Any

from pydantic import BaseModel, ConfigDict

from backburner.api.problems import MEDIA_TYPE


class ProblemDetails(BaseModel):
    """What is wrong, in a sentence, and what would be right (RFC 9457)."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "type": "about:blank",
                "title": "Not Found",
                "status": 404,
                "detail": "There is nothing here with that id.",
            }
        }
    )

    type: str
    title: str
    status: int
    detail: str
    hint: str = ""


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe the errors that a route can answer with."""
    content = {MEDIA_TYPE: {"schema": ProblemDetails.model_json_schema()}}
    return {
        status: {"description": HTTPStatus(status).phrase, "content": content}
        for status in statuses
    }
