"""Folders in the data folder are removed whole, and no others."""

import asyncio
import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.faults.limits import no_bytes_can_be_written

from backburner.app.folder import _unusable, check_writable, remove_folder, remove_folders
from backburner.core.errors import MachineFailed

#: Deeper than Python recurses, and a longer path than a call may have.
DIG = "import os\nfor _ in range(3000): os.mkdir('d'); os.chdir('d')"


async def test_only_a_folder_of_that_very_name_is_removed(tmp_path: Path) -> None:
    (tmp_path / "workspaces").mkdir()
    for name in ("..", ".", "", "../other"):
        with pytest.raises(MachineFailed):
            await remove_folder(tmp_path / "workspaces", name)
    await remove_folder(tmp_path / "workspaces", "not-there")

    assert (tmp_path / "workspaces").exists()


async def test_a_user_is_removed_from_every_folder(tmp_path: Path) -> None:
    for parent in ("workspaces", "kept_changes"):
        for user in ("u_one", "u_other"):
            (tmp_path / parent / user).mkdir(parents=True)
            (tmp_path / parent / user / "file").touch()

    await remove_folders((tmp_path / "workspaces", tmp_path / "kept_changes", tmp_path), "u_one")

    for parent in ("workspaces", "kept_changes"):
        assert not (tmp_path / parent / "u_one").exists()
        assert (tmp_path / parent / "u_other" / "file").exists()


async def test_a_very_deep_folder_is_removed(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    dig = [sys.executable, "-c", DIG]
    await asyncio.to_thread(subprocess.run, dig, cwd=tmp_path / "deep", check=True)

    try:
        await remove_folder(tmp_path, "deep")

        assert not (tmp_path / "deep").exists()
    finally:
        # Nor could pytest, which removes old folders at the end of a later session.
        remove = ["/bin/rm", "-rf", str(tmp_path / "deep")]
        await asyncio.to_thread(subprocess.run, remove, check=True)


async def test_folders_that_may_not_be_read_are_removed(tmp_path: Path) -> None:
    (tmp_path / "folder" / "closed").mkdir(parents=True)
    (tmp_path / "folder" / "closed" / "file").touch()
    (tmp_path / "folder" / "closed").chmod(0)

    await remove_folder(tmp_path, "folder")

    assert not (tmp_path / "folder").exists()


def test_a_full_disk_is_called_a_full_disk(tmp_path: Path) -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    assert "the disk is full. Free some space" in str(_unusable(tmp_path, full))


def test_a_folder_in_which_nothing_can_be_written_is_refused(tmp_path: Path) -> None:
    with no_bytes_can_be_written(), pytest.raises(MachineFailed, match="data folder"):
        check_writable(tmp_path)
    check_writable(tmp_path)
