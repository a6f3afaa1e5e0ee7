"""`backburner completion`, and completion itself."""

from collections.abc import Callable

import pytest
from support.programs.programs import Ended, Start


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_is_printed(call: Callable[..., Ended], shell: str) -> None:
    ended = call("completion", shell)

    assert ended.code == 0
    assert any("_BACKBURNER_COMPLETE" in line for line in ended.out)


@pytest.mark.starts
def test_commands_are_completed_without_importing_them(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "_BACKBURNER_COMPLETE": "bash_complete",
        "COMP_WORDS": "backburner run",
        "COMP_CWORD": "1",
        "PYTHONPROFILEIMPORTTIME": "1",
    }.items():
        monkeypatch.setenv(name, value)
    ended = start().end()

    assert [line.split(",")[-1] for line in ended.out] == ["runs", "run-now"]
    assert not any("sqlalchemy" in line or "pydantic" in line for line in ended.err)
