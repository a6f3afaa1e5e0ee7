"""Questions of a server to the user: read from its requests, and written with its answers."""

import re
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from typing import Any

from mcp_types import (
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequiredResult,
    InputResponses,
)

from backburner.core.connections.inputs.input_checks import TOO_LONG, check_askable
from backburner.core.connections.inputs.input_request import (
    InputAction,
    InputAnswers,
    InputField,
    InputKind,
    InputNeeded,
    InputOption,
    InputRequest,
    InputValue,
)
from backburner.core.connections.inputs.secret_words import asks_for_secret
from backburner.core.errors import BadRequest
from backburner.core.validation import hidden_characters
from backburner.gateway.oauth.addresses import parse_address
from backburner.gateway.upstream.definitions import clean_words
from backburner.gateway.upstream.limits import (
    MAX_INPUT_FIELDS,
    MAX_INPUT_OPTIONS,
    MAX_INPUT_REQUESTS,
    MAX_STATE_CHARS,
    MAX_WORDS_CHARS,
)

MAX_LABEL_CHARS = 200
MAX_URL_CHARS = 2_000
MAX_HOST_CHARS = 253
TOO_MANY = (
    f"The server asks for more than {MAX_INPUT_REQUESTS} things at once, so the call was not"
    " completed."
)
NO_ADDRESS = (
    "The server wants the user to visit an address that is not valid, or could be taken for"
    " another one: only https is allowed. The call was not completed."
)
NOT_PASSED_ON = (
    "The server asks for a password or another secret. Backburner does not pass secrets on to"
    " servers, so the call was not completed."
)
#: With the characters that addresses consist of: no spaces, quotes or backslashes, and in ASCII.
_ADDRESS = re.compile(rf"https://[\w\-.~:/?#\[\]@!$&'()*+,;=%]{{1,{MAX_URL_CHARS}}}", re.ASCII)
#: Names of other scripts are in punycode.
_HOST = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?\.)*[a-z](?:[a-z0-9-]*[a-z0-9])?")
_KINDS = {
    "string": InputKind.TEXT,
    "number": InputKind.NUMBER,
    "integer": InputKind.INTEGER,
    "boolean": InputKind.SWITCH,
}


def read_input_needed(result: InputRequiredResult) -> InputNeeded:
    """Read what a server needs before it completes a call. Raises `BadRequest` to refuse it."""
    if len(result.request_state or "") > MAX_STATE_CHARS:
        raise BadRequest(
            f"The server wants a state of more than {MAX_STATE_CHARS:,} characters back with the"
            " answer, so the call was not completed."
        )
    requests = result.input_requests or {}
    if len(requests) > MAX_INPUT_REQUESTS:
        raise BadRequest(TOO_MANY)
    read = tuple(
        _read_request(_whole(key, MAX_LABEL_CHARS), each) for key, each in requests.items()
    )
    check_askable(read)
    return InputNeeded(requests=read, state=result.request_state)


def read_urls(data: object) -> InputNeeded | None:
    """Read the addresses that a user has to visit before a call succeeds; None: there are none.

    Raises `BadRequest` to refuse them.
    """
    listed = data.get("elicitations") if isinstance(data, Mapping) else None
    if not isinstance(listed, list) or not listed:
        return None
    if len(listed) > MAX_INPUT_REQUESTS:
        raise BadRequest(TOO_MANY)
    requests = []
    for number, each in enumerate(listed, 1):
        try:
            params = ElicitRequestURLParams.model_validate(each)
            requests.append(_visit(str(number), params))
        except ValueError:
            return None
    check_askable(requests)
    return InputNeeded(requests=tuple(requests))


def read_params(key: str, params: ElicitRequestFormParams | ElicitRequestURLParams) -> InputRequest:
    """Read one request. Raises `BadRequest` if it asks for a secret, or for what we cannot show."""
    if isinstance(params, ElicitRequestURLParams):
        return _visit(key, params)
    request = InputRequest(
        key=key,
        message=_label(params.message, MAX_WORDS_CHARS),
        fields=_read_fields(params.requested_schema),
    )
    check_askable([request])
    if asks_for_secret(request):
        raise BadRequest(NOT_PASSED_ON)
    return request


def write_answers(answers: InputAnswers) -> InputResponses:
    return {
        key: ElicitResult(
            action=answer.action.value,
            content=_content(answer.values) if answer.action is InputAction.ACCEPT else None,
        )
        for key, answer in answers.answers.items()
    }


def _content(values: Mapping[str, InputValue]) -> dict[str, Any] | None:
    plain = {
        name: value if isinstance(value, str | int | float) else list(value)
        for name, value in values.items()
    }
    return plain or None


def _read_request(key: str, request: object) -> InputRequest:
    if not isinstance(request, ElicitRequest):
        raise BadRequest(
            "The server wants to use our model or to see our folders, which Backburner does not"
            " offer, so the call was not completed."
        )
    return read_params(key, request.params)


def _visit(key: str, params: ElicitRequestURLParams) -> InputRequest:
    """Read an address for the user's browser, whose host has to be the one that is shown."""
    address = parse_address(params.url) if _ADDRESS.fullmatch(params.url) else None
    if address is None or address.userinfo or not _is_host(address.raw_host.decode()):
        raise BadRequest(NO_ADDRESS)
    return InputRequest(key=key, message=_label(params.message, MAX_WORDS_CHARS), url=params.url)


def _is_host(text: str) -> bool:
    """Say whether every browser goes to this host. Some take a number for an address."""
    try:
        ip_address(text)
    except ValueError:
        return len(text) <= MAX_HOST_CHARS and bool(_HOST.fullmatch(text))
    return True


def _read_fields(schema: Mapping[str, Any]) -> tuple[InputField, ...]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or len(properties) > MAX_INPUT_FIELDS:
        raise BadRequest(
            f"The server asks for more than {MAX_INPUT_FIELDS} values, or in a form that is not"
            " valid, so the call was not completed."
        )
    required = schema.get("required")
    needed = set(map(str, required)) if isinstance(required, list) else set()
    return tuple(
        _read_field(str(name), each, required=name in needed) for name, each in properties.items()
    )


def _read_field(name: str, schema: object, *, required: bool) -> InputField:
    if not isinstance(schema, Mapping) or hidden_characters(name):
        raise BadRequest("The server asks for a value in a form that is not valid.")
    kind, options = _read_kind(schema)
    return InputField(
        name=_whole(name, MAX_LABEL_CHARS),
        title=_label(schema.get("title")),
        description=_label(schema.get("description"), MAX_WORDS_CHARS),
        kind=kind,
        required=required,
        options=options,
        default=_default(schema.get("default")),
        format=_label(schema.get("format")),
    )


def _read_kind(schema: Mapping[str, Any]) -> tuple[InputKind, tuple[InputOption, ...]]:
    kind = schema.get("type")
    if kind == "array":
        items = schema.get("items")
        options = _read_options(items) if isinstance(items, Mapping) else ()
        if options:
            return InputKind.CHOICES, options
    elif kind == "string" and (options := _read_options(schema)):
        return InputKind.CHOICE, options
    elif isinstance(kind, str) and kind in _KINDS:
        return _KINDS[kind], ()
    raise BadRequest(
        "The server asks for a value of a type that users cannot be asked for, so the call was not"
        " completed."
    )


def _read_options(schema: Mapping[str, Any]) -> tuple[InputOption, ...]:
    titled = schema.get("oneOf") or schema.get("anyOf")
    values = schema.get("enum")
    labels = schema.get("enumNames")
    if isinstance(titled, list):
        pairs = [
            (each.get("const"), each.get("title")) for each in titled if isinstance(each, Mapping)
        ]
    elif isinstance(values, list):
        names: Sequence[Any] = labels if isinstance(labels, list) else values
        pairs = list(zip(values, names, strict=False))
    else:
        return ()
    is_text = all(isinstance(value, str) and len(value) <= MAX_LABEL_CHARS for value, _ in pairs)
    if len(pairs) > MAX_INPUT_OPTIONS or not is_text:
        raise BadRequest(
            f"The server offers more than {MAX_INPUT_OPTIONS} options, or options that are not"
            f" text of up to {MAX_LABEL_CHARS} characters, so the call was not completed."
        )
    return tuple(
        InputOption(_whole(value, MAX_WORDS_CHARS), _label(label) or _label(value))
        for value, label in pairs
        if isinstance(value, str)
    )


def _label(value: object, limit: int = MAX_LABEL_CHARS) -> str:
    return clean_words(_whole(value, limit), limit=limit) if isinstance(value, str) else ""


def _whole(text: str, limit: int) -> str:
    """Refuse a text that could be shown only in part."""
    if len(text) > limit:
        raise BadRequest(TOO_LONG)
    return text


def _default(value: object) -> InputValue | None:
    match value:
        case str():
            # Whole: the beginning of it would be another one.
            return value
        case bool() | int() | float():
            return value
        case list() if all(isinstance(each, str) for each in value):
            return tuple(value)
        case _:
            return None
