"""`backburner export` and `erase`."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.programs.programs import Ended, Start
from support.programs.terminals import terminal

from backburner.actions.personal_data import ERASE_CONFIRMATION

Call = Callable[..., Ended]


@pytest.fixture
def data(start: Start, tmp_path: Path) -> str:
    start("up", "--port", "0", "--data", tmp_path).wait_until_ready()
    return str(tmp_path)


def is_signed_in(call: Call, data: str) -> bool:
    return call("status", "--data", data).code == 0


def test_an_export_is_written_to_a_new_file_that_only_its_owner_can_read(
    talk: Call, tmp_path: Path
) -> None:
    file = tmp_path / "export.json"
    first, second = talk("export", str(file)), talk("export", str(file))

    assert first.code == 0
    assert json.loads(file.read_text())["profile"]["name"] == "Ann"
    assert file.stat().st_mode & 0o077 == 0
    assert second.code == 4
    assert [path.name for path in tmp_path.iterdir()] == ["export.json"]


def test_erase_asks_for_the_exact_confirmation(call: Call, data: str) -> None:
    with terminal("erase", "--data", data) as shown:
        shown.answer("to confirm:", "yes")
        assert shown.end() == 2
        assert "Nothing was erased" in shown.seen
    assert is_signed_in(call, data)

    with terminal("erase", "--data", data) as shown:
        shown.answer("to confirm:", ERASE_CONFIRMATION)
        assert shown.end() == 0
        assert "backburner export" in shown.seen
        assert "erased" in shown.seen
    assert not is_signed_in(call, data)


def test_a_script_confirms_with_an_option(call: Call, data: str) -> None:
    for options, code in (((), 2), (("--yes", "yes"), 2), (("--yes", ERASE_CONFIRMATION), 0)):
        assert call("erase", *options, "--data", data).code == code
        assert is_signed_in(call, data) is (code != 0)
