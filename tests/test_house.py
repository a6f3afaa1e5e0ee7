"""The rules of the house hold, and each notices a planted fault."""

import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOOLS = Path(sysconfig.get_path("scripts"))

#: In pieces, so that this file is not what it looks for.
NOT_TO_BE_NAMED = {
    "a registry's host": "pypi" + r"\.org|pythonhosted\.org|npmjs\.(?:org|com)|registry\.yarnpkg",
    "a path of somebody's machine": r"(?<![\w.])/(?:" + r"root\b|home/\w|Users/\w)",
    "the number of an issue": r"(?i)\b(?:issues?|pulls?|pr|gh|fixes|closes)" + r"[ /-]?#?\d+\b",
}


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """Copy everything the rules look at, to plant faults in."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def plant(house: Path, path: str, text: str) -> None:
    file = house / "src" / "backburner" / path
    file.parent.mkdir(exist_ok=True)
    file.write_text(f'"""Planted."""\n\n{text}\n')


def lint_imports(house: Path) -> tuple[int, str]:
    return run(house, TOOLS / "lint-imports", "--no-cache", "--no-logo")


def ruff(house: Path) -> tuple[int, str]:
    return run(house, TOOLS / "ruff", "check", "--no-cache", "--output-format=concise", "src")


def run(house: Path, *command: str | Path) -> tuple[int, str]:
    # The path puts the copy before the installed package; the width keeps sentences in one line.
    environment = {**os.environ, "PYTHONPATH": str(house / "src"), "COLUMNS": "500"}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=house,
        env=environment,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout


def test_the_house_keeps_its_own_rules(house: Path) -> None:
    for code, output in (lint_imports(house), ruff(house)):
        assert code == 0, output


@pytest.mark.parametrize(
    ("path", "text", "named"),
    [
        ("core/planted.py", "import click", "backburner.core.planted -> click"),
        ("core/planted.py", "import os", "backburner.core.planted -> os"),
        (
            "api/planted.py",
            "from backburner.cli import main",
            "backburner.api.planted -> backburner.cli.main",
        ),
        (
            "api/planted.py",
            "from backburner import settings",
            "backburner.api.planted -> backburner.settings",
        ),
        ("cli/planted.py", "import sqlalchemy", "backburner.cli.planted -> sqlalchemy"),
        ("api/planted.py", "import discord", "backburner.api.planted -> discord"),
        ("cli/planted.py", "import claude_agent_sdk", "backburner.cli.planted -> claude_agent_sdk"),
        ("cli/planted.py", "import fastapi", "backburner.cli.planted -> fastapi"),
        ("utils/__init__.py", "", "utils"),
    ],
)
def test_an_import_that_breaks_the_layers_is_refused_and_named(
    house: Path, path: str, text: str, named: str
) -> None:
    plant(house, path, text)
    code, output = lint_imports(house)

    assert code != 0
    assert named in output


def test_a_machine_is_met_only_in_app(house: Path) -> None:
    plant(house, "bus/__init__.py", "")
    plant(house, "worker/__init__.py", "import backburner.bus")
    code, output = lint_imports(house)

    assert code != 0
    assert "backburner.worker -> backburner.bus" in output


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("from datetime import datetime\n\nx = datetime.now()", "planted.py:5"),
        ("import datetime as d\n\nx = d.datetime.now(d.UTC)", "planted.py:5"),
        ("from time import time\n\nx = time()", "planted.py:3"),
        ("from uuid import uuid4\n\nx = uuid4()", "planted.py:3"),
    ],
)
def test_a_clock_or_chance_in_the_core_is_refused_and_named(
    house: Path, text: str, line: str
) -> None:
    plant(house, "core/planted.py", text)
    code, output = ruff(house)

    assert code != 0
    assert any(line in said and "TID251" in said for said in output.splitlines())


@pytest.mark.parametrize("what", NOT_TO_BE_NAMED)
def test_nothing_in_the_repository_names(what: str) -> None:
    pattern = re.compile(NOT_TO_BE_NAMED[what])
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path in files_of_the_repository()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line)
    ]

    assert found == []


def files_of_the_repository() -> Iterator[Path]:
    """Yield every file of text, in a checkout or in a copy that git knows nothing of."""
    for top in ROOT.iterdir():
        if top.name in (".ci", ".gitignore") or top.name[0] != ".":
            files = (top,) if top.is_file() else top.rglob("*")
            yield from (path for path in files if path.is_file() and b"\0" not in path.read_bytes())
