"""Files that only their owner can read."""

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from backburner.private_file import write_private_file


def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    write_private_file(path, [b"one, ", b"two"], overwrite=False)

    assert path.read_bytes() == b"one, two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_existing_file_is_replaced_only_if_wanted(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("old")
    path.chmod(0o644)
    with pytest.raises(FileExistsError):
        write_private_file(path, [b"new"], overwrite=False)
    assert path.read_text() == "old"

    write_private_file(path, [b"new"], overwrite=True)
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield b"half"
        raise ConnectionError

    with pytest.raises(ConnectionError):
        write_private_file(tmp_path / "secret", broken(), overwrite=False)
    assert list(tmp_path.iterdir()) == []
