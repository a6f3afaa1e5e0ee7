"""Requests as the relay reads them: the share of the messages, which measures a session."""

import json
from typing import Any

import pytest

from backburner.engine.claude.call import MESSAGES, ModelCall

SCOPE: dict[str, Any] = {"query_string": b"", "headers": []}


def share(**request: Any) -> float:
    body = json.dumps(request, ensure_ascii=False, separators=(",", ":"))
    call = ModelCall.read(MESSAGES, SCOPE, body.encode())
    assert call is not None
    return call.share


def messages(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


@pytest.mark.parametrize("letter", ["x", "ü", "日", "🙂"])
def test_messages_in_any_script_have_the_share_of_their_bytes(letter: str) -> None:
    size = len(letter.encode())

    result = share(system="s" * 12_000, messages=messages(letter * (12_000 // size)))

    assert result == pytest.approx(0.5, abs=0.01)


def test_a_request_without_messages_has_a_share_of_zero() -> None:
    assert share(system="s" * 1_000) == 0


def test_a_request_with_a_lone_surrogate_can_be_read() -> None:
    call = ModelCall.read(MESSAGES, SCOPE, b'{"system": "\\ud800", "messages": []}')

    assert call is not None
    assert 0 <= call.share < 1
