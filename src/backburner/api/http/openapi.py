"""Parts of the OpenAPI document that FastAPI does not derive: errors and component names.

Errors that follow from the shape of a request are added here; routes declare all others.

Classes end in `Out` (responses) or `Body` (requests), to tell them from the values of the core.
Components lose the suffix: `TaskOut` becomes `Task`, and `PageOut[TaskOut]` becomes `TaskPage`.
"""

import re
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from backburner.api.http import problems

REF = "#/components/schemas/"
_PAGE = re.compile(r"PageOut_(\w+)_")
_MEANINGS = {
    400: "The request is malformed.",
    401: "You are not signed in.",
    403: "The credential lacks the scope, or the request comes from another site.",
    404: "Nothing with this id exists.",
    408: "The request body took too long to arrive.",
    409: "Conflict with the current state; nothing was changed.",
    413: "The request, or a part of it, is too large.",
    415: "Cookie-authenticated requests must use `application/json`.",
    422: "The request does not match the schema.",
    429: "Limit reached.",
    503: "The database is unavailable.",
}
#: Of requests with a body.
BODY_ERRORS = (408, 413)


class ProblemOut(BaseModel):
    """Problem details as in RFC 9457."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "type": "about:blank",
                "title": "Conflict",
                "status": 409,
                "detail": "This work is already paused.",
                "hint": "Resume it first.",
            }
        }
    )

    type: str
    title: str
    status: int
    detail: str = Field(description="What is wrong.")
    hint: str = Field(default="", description="What to do; left out where that is clear.")


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {
        status: {
            "description": _MEANINGS[status],
            "content": {problems.MEDIA_TYPE: {"schema": {"$ref": f"{REF}ProblemOut"}}},
        }
        for status in statuses
    }


#: Of every authenticated request.
COMMON_RESPONSES = error_responses(400, 401, 403, 422, 503)


def complete(document: dict[str, Any]) -> dict[str, Any]:
    """Add implied errors and the component they refer to; give components their public names."""
    for path, operations in document["paths"].items():
        for operation in operations.values():
            not_found = (404,) if "{" in path else ()
            body_errors = BODY_ERRORS if "requestBody" in operation else ()
            for status, response in error_responses(*not_found, *body_errors).items():
                operation["responses"].setdefault(str(status), response)
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    schemas[ProblemOut.__name__] = ProblemOut.model_json_schema()
    for name, schema in schemas.items():
        if "title" in schema:
            schema["title"] = public_name(name)
    document["components"]["schemas"] = {public_name(name): schemas[name] for name in schemas}
    renamed: dict[str, Any] = _rename_references(document)
    return renamed


def public_name(name: str) -> str:
    if page := _PAGE.fullmatch(name):
        return f"{public_name(page[1])}Page"
    return name.removesuffix("Out").removesuffix("Body")


def _rename_references(node: Any) -> Any:
    if isinstance(node, list):
        return [_rename_references(part) for part in node]
    if not isinstance(node, dict):
        return node
    return {
        key: f"{REF}{public_name(value.removeprefix(REF))}"
        if key == "$ref"
        else _rename_references(value)
        for key, value in node.items()
    }
