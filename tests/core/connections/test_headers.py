"""Headers with which a connection signs in."""

from collections.abc import Mapping

import pytest

from backburner.core.connections.headers import (
    MAX_HEADER_CHARS,
    MAX_HEADER_NAME_CHARS,
    MAX_HEADERS,
    check_headers,
)
from backburner.core.errors import BadRequest


def test_usual_headers_are_taken() -> None:
    check_headers({"Authorization": "Bearer t", "X-Api-Key": "x" * MAX_HEADER_CHARS})


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ({f"x-{number}": "v" for number in range(MAX_HEADERS + 1)}, "may have 10 headers"),
        ({"X-Key": "a", "x-key": "b"}, "given twice"),
        ({"": "v"}, "not the name of a header"),
        ({"x key": "v"}, "not the name of a header"),
        ({"x" * (MAX_HEADER_NAME_CHARS + 1): "v"}, "not the name of a header"),
        ({"Cookie": "v"}, "Cookie cannot be set"),
        ({"x-key": " "}, "cannot be sent"),
        ({"x-key": "secret\nmore"}, "cannot be sent"),
        ({"x-key": "s\u00e9cret"}, "cannot be sent"),
        ({"x-key": "x" * (MAX_HEADER_CHARS + 1)}, "cannot be sent"),
    ],
)
def test_what_cannot_be_sent_is_refused_without_its_value(
    headers: Mapping[str, str], told: str
) -> None:
    with pytest.raises(BadRequest, match=told) as refused:
        check_headers(headers)

    assert "secret" not in str(refused.value)
