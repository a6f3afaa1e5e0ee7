"""The files of other clients: where they are looked for, and which are not read."""

import json
import os
from pathlib import Path

import pytest
from support.requirements import requirement

from backburner.cli.commands.connections.client_files import PLACES, find_files, read_file
from backburner.core.errors import BadRequest, NotFound


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: Path, name: str = "clock") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"mcpServers": {name: {"command": "/usr/bin/clock"}}}))
    return path


@requirement("Z-import")
def test_the_files_of_clients_are_found_in_the_home_folder(home: Path) -> None:
    files = [write(home / place) for places in PLACES.values() for place in places]
    # Files of projects are read by their path alone: others may have made them.
    project = write(home / ".mcp.json")
    assert find_files(None, None) == files
    assert find_files(None, "cursor") == [home / ".cursor/mcp.json"]
    assert find_files(".mcp.json", None) == [project]
    assert find_files("~/.mcp.json", None) == [project]


def test_without_a_file_it_is_said_whose_was_looked_for(home: Path) -> None:
    assert home.exists()
    with pytest.raises(NotFound, match="no file of other clients in your home folder"):
        find_files(None, None)
    with pytest.raises(NotFound, match="no file of windsurf"):
        find_files(None, "windsurf")


@requirement("Z-import")
def test_files_that_are_none_are_refused(home: Path) -> None:
    big = home / "big.json"
    with big.open("w") as file:
        file.truncate(50_000_000)
    pipe = home / "pipe"
    os.mkfifo(pipe)
    shared = write(home / "shared.json")
    shared.chmod(0o666)
    binary = home / "binary.json"
    binary.write_bytes(b"\xff\xfe")
    for path, said in (
        (big, "larger than 20 MB"),
        (pipe, "is not a file"),
        (home, "Is a directory"),
        (shared, "Everybody on this machine can change"),
        (binary, "is not UTF-8 text"),
    ):
        with pytest.raises(BadRequest, match=said):
            read_file(path)
    with pytest.raises(NotFound, match="There is no file"):
        read_file(home / "none.json")


def test_the_links_of_a_path_are_kept_for_the_server_to_look_at(home: Path) -> None:
    link = home / "link.json"
    link.symlink_to(write(home / "real.json"))
    assert find_files("link.json", None) == [link]
    assert read_file(link).path == link
