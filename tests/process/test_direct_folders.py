"""A command starts in its folder and nowhere else, however the path to it changes meanwhile."""

import subprocess
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from support.faults.swapping import SECRET, SwappedFolder
from support.requirements import requirement

from backburner.core.commands import Cage
from backburner.core.errors import ProcessFailed
from backburner.ports import CommandBounds
from backburner.process.command import reaper_options
from backburner.process.confinement import REAPER_COMMAND, confine_to
from backburner.process.launcher import CleanLauncher
from backburner.process.shell import ConfinedShell

#: Of commands that were run, and that were tried.
ROUNDS, MAX_ROUNDS = 12, 2_000
#: Landlock does not cover modes: without namespaces, only the folder it starts in keeps it off.
LINE = "cat canary; echo x >planted; chmod 777 ."


@pytest.fixture(params=[False, True], ids=["the folder", "the folder above"])
def place(tmp_path: Path, request: pytest.FixtureRequest) -> SwappedFolder:
    return SwappedFolder(tmp_path, above=request.param)


def start(place: SwappedFolder, line: str, *, sees_processes: bool) -> tuple[int, str]:
    """Start a command in the secret folder, as if the path had led there for a moment."""
    confinement = confine_to(
        place.folder, direct=[place.folder], network=False, sees_processes=sees_processes
    )
    options = [*reaper_options(confinement, None), f"cwd={place.folder}"]
    argv = [*REAPER_COMMAND, "env=PATH", *options, "--", "/bin/sh", "-c", line]
    done = subprocess.run(
        argv, cwd=place.secret, capture_output=True, text=True, check=False, timeout=20
    )
    return done.returncode, done.stdout + done.stderr


@requirement("B-folder")
@pytest.mark.parametrize("sees_processes", [True, False])
def test_a_command_is_in_its_folder_though_its_starter_was_led_elsewhere(
    place: SwappedFolder, *, sees_processes: bool
) -> None:
    code, output = start(place, f"pwd; {LINE}", sees_processes=sees_processes)

    assert code == 0
    assert output.startswith(f"{place.folder}\n")
    assert SECRET not in output
    assert (place.folder / "planted").exists()
    place.check_untouched()


@requirement("B-folder")
@pytest.mark.parametrize("sees_processes", [True, False])
def test_a_command_does_not_start_where_a_link_leads(
    place: SwappedFolder, *, sees_processes: bool
) -> None:
    place.swap()
    code, output = start(place, LINE, sees_processes=sees_processes)

    assert code == 126
    assert output == "/bin/sh: Its folder is gone, or was replaced by a link.\n"
    place.check_untouched()


@requirement("B-folder")
def test_an_agent_program_does_not_start_with_a_folder_that_became_a_link(
    place: SwappedFolder, tmp_path: Path
) -> None:
    CleanLauncher().write(
        tmp_path / "wrapper",
        program=Path("/bin/cat"),
        keep=(),
        writable=[place.folder],
        direct=[place.folder],
        limit_report=tmp_path / "limit",
    )
    (place.folder / "canary").write_text("public")
    argv = [tmp_path / "wrapper", place.folder / "canary"]

    first = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=20)
    place.swap()
    second = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=20)

    assert (first.returncode, first.stdout) == (0, "public")
    assert (second.returncode, second.stdout) == (126, "")


@requirement("B-folder")
@pytest.mark.parametrize("cage", Cage)
async def test_no_moment_is_one_in_which_a_command_is_led_elsewhere(
    place: SwappedFolder, cage: Cage
) -> None:
    shell, ran = ConfinedShell(), 0
    with place.swapping():
        for number in range(MAX_ROUNDS):
            bounds = CommandBounds(cage=cage, sees_processes=number % 2 == 0)
            # There may be a link, or nothing at all.
            with suppress(ProcessFailed):
                done = await shell.run(
                    LINE, folder=place.folder, within=timedelta(seconds=20), bounds=bounds
                )
                assert SECRET not in done.output
                ran += 1
            if ran == ROUNDS:
                break
    assert ran == ROUNDS
    place.check_untouched()
