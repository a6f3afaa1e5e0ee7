"""What the relay reads of a request: the share of what is said, by which a session is measured."""

import json
from typing import Any

import pytest

from backburner.engine.claude.call import MESSAGES, Call

SCOPE: dict[str, Any] = {"query_string": b"", "headers": []}


def share(**asked: Any) -> float:
    body = json.dumps(asked, ensure_ascii=False, separators=(",", ":"))
    call = Call.read(MESSAGES, SCOPE, body.encode())
    assert call is not None
    return call.share


def said(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


@pytest.mark.parametrize("letter", ["x", "ü", "日", "🙂"])
def test_words_of_any_script_have_the_share_of_their_bytes(letter: str) -> None:
    size = len(letter.encode())

    found = share(system="s" * 12_000, messages=said(letter * (12_000 // size)))

    assert found == pytest.approx(0.5, abs=0.01)


def test_where_nothing_is_said_there_is_no_share() -> None:
    assert share(system="s" * 1_000) == 0


def test_half_a_character_is_no_obstacle() -> None:
    call = Call.read(MESSAGES, SCOPE, b'{"system": "\\ud800", "messages": []}')

    assert call is not None
    assert 0 <= call.share < 1
