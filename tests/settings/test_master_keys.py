"""The variable with master keys: read once, and gone for all that this process starts."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from backburner.core.errors import BadSetting
from backburner.log import Redactor
from backburner.settings import load, take_master_keys

KEY = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY="


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield
    monkeypatch.setenv("BACKBURNER_MASTER_KEYS", "")
    take_master_keys()


def test_no_child_inherits_the_master_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BACKBURNER_MASTER_KEYS", f"one:{KEY}")

    settings = load(data=tmp_path)

    assert "BACKBURNER_MASTER_KEYS" not in os.environ
    code = "import os; print([name for name, value in os.environ.items() if 'QUJD' in value])"
    child = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert child.stdout == "[]\n"
    # Settings may be read again, by a reload of models.
    load(data=tmp_path)
    assert take_master_keys() == f"one:{KEY}"
    assert KEY not in repr(settings)


def test_the_system_does_not_show_the_master_keys_once_they_are_read() -> None:
    code = "from backburner.settings import take_master_keys; print(take_master_keys()); input()"
    started = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "BACKBURNER_MASTER_KEYS": f"one:{KEY}", "BESIDE": "kept"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with started:
        assert started.stdout is not None
        assert started.stdout.readline() == f"one:{KEY}\n"
        shown = Path(f"/proc/{started.pid}/environ").read_bytes()
        started.communicate("\n")

    assert KEY.encode() not in shown
    assert b"\0BESIDE=kept\0" in shown


def test_a_master_key_is_redacted_wherever_it_appears(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BACKBURNER_MASTER_KEYS", f"one:{KEY},two:{KEY[::-1]}")

    redactor = Redactor(load(data=tmp_path).secrets())

    assert redactor.clean_text(f"a {KEY} b {KEY[::-1]}") == "a [secret] b [secret]"


def test_a_variable_without_a_value_counts_as_not_set(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BACKBURNER_MASTER_KEYS", "")

    load(data=tmp_path)

    assert take_master_keys() == ""


def test_other_variables_are_still_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKBURNER_MASTER_KEY", f"one:{KEY}")

    with pytest.raises(BadSetting, match="BACKBURNER_MASTER_KEY is not a setting"):
        load()
