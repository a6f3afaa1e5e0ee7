"""Which requests of servers can be asked: to answer one is to answer all of it, so all is shown."""

import json
from collections.abc import Sequence

from backburner.core.connections.inputs.input_field import show_default
from backburner.core.connections.inputs.input_request import InputField, InputRequest
from backburner.core.errors import BadRequest
from backburner.core.question import MAX_PROMPT_CHARS
from backburner.core.validation import escape_hidden, normalize_title

#: The rest of a question names the server and the call, and says how to answer.
MAX_ASKED_CHARS = MAX_PROMPT_CHARS - 1_500
#: Of our own words in the line of one value or address, and beside each of its words.
_LINE_CHARS, _WORD_CHARS = 75, 10
TOO_LONG = (
    "The server asks its user for more than a question can show, so they were not asked, and the"
    " call was not completed."
)
ALIKE = (
    "The server asks its user for values whose names cannot be told apart, so they were not asked,"
    " and the call was not completed."
)


def check_askable(requests: Sequence[InputRequest]) -> None:
    """Refuse requests that a question can show only in part, or whose answers could be mixed up."""
    if sum(map(_size, requests)) > MAX_ASKED_CHARS:
        raise BadRequest(TOO_LONG)
    names = [field.name for request in requests for field in request.fields]
    plain = {normalize_title(name).casefold() for name in names}
    if len(plain) < len(names) or "" in plain:
        raise BadRequest(ALIKE)


def _size(request: InputRequest) -> int:
    """Return no less than the number of characters that a request has in a question."""
    # Each line of the message is marked as one of the server.
    lines = 3 * len(request.message.splitlines())
    address = 2 * len(request.url) + _LINE_CHARS if request.url else 0
    return len(request.message) + lines + address + sum(map(_field_size, request.fields))


def _field_size(field: InputField) -> int:
    options = (text for one in field.options for text in (one.label, one.value))
    words = (field.name, field.title, field.description, field.format, *options)
    default = len(show_default(field) or "") + _WORD_CHARS
    return _LINE_CHARS + default + sum(map(_quoted_size, words))


def _quoted_size(value: object) -> int:
    if value in ("", None):
        return 0
    return len(escape_hidden(json.dumps(value, ensure_ascii=False))) + _WORD_CHARS
