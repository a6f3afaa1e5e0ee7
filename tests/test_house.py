"""The rules of the house hold, and each notices a planted fault."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
from coverage import Coverage

ROOT = Path(__file__).parent.parent
TOOLS = Path(sysconfig.get_path("scripts"))

#: In pieces, so that this file is not what it looks for.
NOT_TO_BE_NAMED = {
    "a registry's host": "pypi" + r"\.org|pythonhosted\.org|npmjs\.(?:org|com)|registry\.yarnpkg",
    "a path of somebody's machine": r"(?<![\w.])/(?:" + r"root\b|home/\w|Users/\w)",
    "the number of an issue": r"(?i)\b(?:issues?|pulls?|pr|gh|fixes|closes)" + r"[ /-]?#?\d+\b",
}


#: Imports that break the rules: where they are planted, and how each is named.
BAD_IMPORTS = [
    ("core/one.py", "import click", "backburner.core.one -> click"),
    ("core/two.py", "import os", "backburner.core.two -> os"),
    (
        "api/one.py",
        "from backburner.cli import main",
        "backburner.api.one -> backburner.cli.main",
    ),
    ("api/two.py", "from backburner import settings", "backburner.api.two -> backburner.settings"),
    ("api/three.py", "import discord", "backburner.api.three -> discord"),
    ("cli/one.py", "import sqlalchemy", "backburner.cli.one -> sqlalchemy"),
    ("cli/two.py", "import claude_agent_sdk", "backburner.cli.two -> claude_agent_sdk"),
    ("cli/three.py", "import fastapi", "backburner.cli.three -> fastapi"),
    ("cli/four.py", "import httpx2", "backburner.cli.four -> httpx2"),
    ("worker/__init__.py", "import backburner.bus", "backburner.worker -> backburner.bus"),
    ("utils/__init__.py", "", "- backburner.utils"),
]

#: Clocks and chance in the core: where they are planted, and the line each is named by.
BAD_CALLS = [
    ("core/one.py", "from datetime import datetime\n\nx = datetime.now()", "one.py:5"),
    ("core/two.py", "import datetime as d\n\nx = d.datetime.now(d.UTC)", "two.py:5"),
    ("core/three.py", "from time import time\n\nx = time()", "three.py:3"),
    ("core/four.py", "from uuid import uuid4\n\nx = uuid4()", "four.py:3"),
]


def copy_house(place: Path) -> Path:
    """Copy everything the rules look at, to plant faults in."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src", place / "src", ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", place)
    return place


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


@pytest.fixture(scope="module")
def refused_imports(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Plant all faults at once: a run takes long, and each has to be named anyway."""
    house = copy_house(tmp_path_factory.mktemp("imports"))
    plant(house, "bus/__init__.py", "")
    for path, text, _ in BAD_IMPORTS:
        plant(house, path, text)
    code, output = lint_imports(house)
    assert code != 0
    return output


@pytest.fixture(scope="module")
def refused_calls(tmp_path_factory: pytest.TempPathFactory) -> str:
    house = copy_house(tmp_path_factory.mktemp("calls"))
    for path, text, _ in BAD_CALLS:
        plant(house, path, text)
    code, output = ruff(house)
    assert code != 0
    return output


def test_the_house_keeps_its_own_rules(tmp_path: Path) -> None:
    house = copy_house(tmp_path)

    for code, output in (lint_imports(house), ruff(house)):
        assert code == 0, output


@pytest.mark.parametrize("named", [named for _, _, named in BAD_IMPORTS])
def test_an_import_that_breaks_the_layers_is_refused_and_named(
    refused_imports: str, named: str
) -> None:
    assert named in refused_imports


@pytest.mark.parametrize("line", [line for _, _, line in BAD_CALLS])
def test_a_clock_or_chance_in_the_core_is_refused_and_named(refused_calls: str, line: str) -> None:
    assert any(line in said and "TID251" in said for said in refused_calls.splitlines())


def test_only_the_tests_of_the_core_are_measured() -> None:
    assert Coverage.current() is None
    assert sys.gettrace() is None


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


LIVES = re.compile(r"^\d+\. .*$", re.MULTILINE)
FILE_AND_NAMES = re.compile(r"`([\w/]+\.py)` `(\w+)`")


def test_the_lives_in_the_development_guide_name_files_and_functions_that_exist() -> None:
    guide = (ROOT / "docs" / "development.md").read_text(encoding="utf-8")
    lines = LIVES.findall(guide)

    assert len(lines) >= 25
    for line in lines:
        named = FILE_AND_NAMES.findall(line)
        assert named, line
        for file, name in named:
            source = (ROOT / "src" / "backburner" / file).read_text(encoding="utf-8")
            assert re.search(rf"^ *(?:async )?(?:def|class) {name}\b", source, re.MULTILINE), line


def test_no_folder_holds_more_than_twenty_modules() -> None:
    # Each revision of the schema stays for ever.
    revisions = ROOT / "src" / "backburner" / "store" / "migrations" / "versions"
    for top in ("src", "tests"):
        for folder in [path for path in (ROOT / top).rglob("*") if path.is_dir()]:
            if folder == revisions:
                continue
            modules = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
            assert len(modules) <= 20, folder


def test_only_one_package_knows_playwright() -> None:
    imported = re.compile(r"^\s*(?:from|import) playwright\b", re.MULTILINE)
    homes = {
        path.parent.relative_to(ROOT).as_posix()
        for top in ("src", "tests", "bench", "soak")
        for path in (ROOT / top).rglob("*.py")
        if imported.search(path.read_text(encoding="utf-8"))
    }

    assert homes == {"tests/support/browser"}


def test_no_public_class_name_is_used_twice_except_by_a_port_and_its_implementation() -> None:
    homes: dict[str, list[str]] = {}
    for path in (ROOT / "src").rglob("*.py"):
        package = path.relative_to(ROOT / "src" / "backburner").parts[0]
        for name in re.findall(
            r"^class ([A-Z]\w*)", path.read_text(encoding="utf-8"), re.MULTILINE
        ):
            homes.setdefault(name, []).append(package)

    twice = {
        name: packages
        for name, packages in homes.items()
        if len(packages) > 1 and not (len(packages) == 2 and "ports" in packages)
    }
    assert twice == {}
