"""`backburner erase`: only for those who say exactly that they want it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.programs.programs import Ended, Start
from support.programs.terminals import Terminal, terminal

from backburner.actions.personal_data import ERASE_CONFIRMATION

Call = Callable[..., Ended]


@pytest.fixture
def data(start: Start, tmp_path: Path) -> str:
    start("up", "--port", "0", "--data", tmp_path).wait_until_ready()
    return str(tmp_path)


@pytest.fixture
def asked(data: str) -> Iterator[Terminal]:
    with terminal("erase", "--data", data) as opened:
        yield opened


def is_there(call: Call, data: str) -> bool:
    return call("status", "--data", data).code == 0


def test_whoever_types_the_confirmation_is_erased(call: Call, asked: Terminal, data: str) -> None:
    asked.answer("to go on:", ERASE_CONFIRMATION)

    assert asked.end() == 0
    assert "erased" in asked.seen
    assert "backburner export" in asked.seen
    assert not is_there(call, data)


def test_whoever_types_anything_else_is_not(call: Call, asked: Terminal, data: str) -> None:
    asked.answer("to go on:", "yes")

    assert asked.end() == 2
    assert "Nothing was erased" in asked.seen
    assert is_there(call, data)


def test_a_script_says_it_in_an_option(call: Call, data: str) -> None:
    for words, code in (((), 2), (("--yes", "yes"), 2), (("--yes", ERASE_CONFIRMATION), 0)):
        assert call("erase", *words, "--data", data).code == code
        assert is_there(call, data) is (code != 0)
