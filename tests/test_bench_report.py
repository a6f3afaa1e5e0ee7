"""The report of the benches: written to a file, and compared with one."""

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

REPORT = Path(__file__).parent.parent / "bench" / "_report.py"


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Report a rate and a time, with these arguments on the command line."""
    spec = importlib.util.spec_from_file_location("_report", REPORT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.chdir(tmp_path)

    def report(*arguments: str, rate: float = 100, time: float = 10) -> None:
        monkeypatch.setattr(sys, "argv", ["bench", *arguments])
        rows = [
            {"what": "rate", "value": rate, "better": "more"},
            {"what": "time", "value": time, "better": "less"},
            {"what": "other", "value": rate * time, "better": ""},
        ]
        module.report("thing", rows)

    return report


def test_a_report_is_printed_or_written(
    report: Callable[..., None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report("--json", "--quick")
    printed = json.loads(capsys.readouterr().out)
    report("--json", "file", "--quick")

    assert json.loads((tmp_path / "file").read_text()) == printed
    assert "rate" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("rate", "time", "code"), [(95, 10.5, 0), (300, 1, 0), (80, 10, 1), (100, 12, 1)]
)
def test_a_row_that_is_worse_than_before_is_a_failure(
    report: Callable[..., None], rate: float, time: float, code: int
) -> None:
    report("--json", "file")
    with pytest.raises(SystemExit) as ended:
        report("--against", "file", rate=rate, time=time)

    assert ended.value.code == code


def test_a_file_that_cannot_be_compared_is_refused_in_words(report: Callable[..., None]) -> None:
    with pytest.raises(SystemExit, match="--against needs a file"):
        report("--against", "missing")
