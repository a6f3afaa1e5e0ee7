"""Parts of the OpenAPI document that FastAPI does not derive: errors, sign-in, component names.

Errors that follow from the shape of a request are added here; routes declare all others.

Classes end in `Out` (responses) or `Body` (requests), to tell them from the values of the core.
Components lose the suffix: `TaskOut` becomes `Task`, and `PageOut[TaskOut]` becomes `TaskPage`.
"""

import re
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from backburner.api.http import problems
from backburner.api.http.auth import SESSION_COOKIE, SESSION_HEADER

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
    415: "Cookie-authenticated requests must use `application/json`, and uploads of files"
    " `application/octet-stream`.",
    422: "The request does not match the schema.",
    429: "Limit reached.",
    502: "The server of a connection does not answer, or not as it should.",
    503: "The database is unavailable.",
}
#: Ways to sign in, as generators of clients read them; a browser's session has two halves.
SECURITY_SCHEMES = {
    "token": {"type": "http", "scheme": "bearer"},
    "cookie": {"type": "apiKey", "in": "cookie", "name": SESSION_COOKIE},
    "page": {"type": "apiKey", "in": "header", "name": SESSION_HEADER},
}
SIGNED_IN: list[dict[str, list[str]]] = [{"token": []}, {"cookie": [], "page": []}]
#: Paths for callers who are not signed in.
OPEN_PATHS = frozenset(
    {"/health", "/ready", "/api/sign-in", "/api/invitations/accept", "/api/password/reset"}
)
#: Other ways into a path: a browser that follows a link sends its cookie alone.
OTHER_WAYS: dict[str, list[dict[str, list[str]]]] = {
    **{path: [] for path in OPEN_PATHS},
    "/api/downloads/{item}/{secret}": [{"token": []}, {"cookie": []}],
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


def complete(document: dict[str, Any], *, public_url: str = "") -> dict[str, Any]:
    """Add implied errors, the address and the ways to sign in; give components public names."""
    document["servers"] = [{"url": public_url or "/"}]
    for path, operations in document["paths"].items():
        for operation in operations.values():
            operation["security"] = OTHER_WAYS.get(path, SIGNED_IN)
            not_found = (404,) if "{" in path else ()
            body_errors = BODY_ERRORS if "requestBody" in operation else ()
            for status, response in error_responses(*not_found, *body_errors).items():
                operation["responses"].setdefault(str(status), response)
    components = document.setdefault("components", {})
    components["securitySchemes"] = SECURITY_SCHEMES
    schemas = components.setdefault("schemas", {})
    schemas[ProblemOut.__name__] = ProblemOut.model_json_schema()
    for name, schema in schemas.items():
        if "title" in schema:
            schema["title"] = public_name(name)
    components["schemas"] = {public_name(name): schemas[name] for name in schemas}
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
