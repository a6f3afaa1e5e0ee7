"""Imported programs: what they may be, what they may use, and how they are kept."""

from dataclasses import replace

import pytest
from support.requirements import requirement

from backburner.core.connections.own_program import (
    MAX_PLACES,
    check_places,
    check_program,
    read_program,
    with_path,
    write_program,
)
from backburner.core.connections.program import StdioProgram
from backburner.core.errors import BadRequest
from backburner.core.work.folders import ForbiddenPlaces

CLOCK = StdioProgram(
    command=("/opt/clock/bin/clock", "--utc"),
    environment={"API_KEY": "a"},
    network=True,
    readable=("/srv/zones",),
    writable=("/srv/log",),
)
FORBIDDEN = ForbiddenPlaces(homes=["/people/ada"], private={"/people/ada/keys": "keys"})


def test_a_program_is_read_as_it_was_written() -> None:
    assert read_program(write_program(CLOCK, "00aa")) == (CLOCK, "00aa")


def test_a_program_finds_what_lies_beside_it_first() -> None:
    def path(program: str) -> str:
        return with_path(replace(CLOCK, command=(program,))).environment["PATH"]

    assert path("/opt/clock/bin/clock") == "/opt/clock/bin:/usr/local/bin:/usr/bin:/bin"
    assert path("/usr/bin/clock") == "/usr/bin:/usr/local/bin:/bin"
    assert path("/clock") == "/:/usr/local/bin:/usr/bin:/bin"
    assert with_path(CLOCK).environment["API_KEY"] == "a"


@requirement("Z-import")
@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("clock",), "begins with /"),
        (("/usr/bin/npx", "--yes", "clock@latest"), "clock has no exact version"),
        (("/usr/bin/docker", "run", "clock"), "outside the cage"),
    ],
)
def test_a_program_that_is_not_exactly_one_is_refused(command: tuple[str, ...], said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        check_program(replace(CLOCK, command=command))


def test_a_pinned_package_and_a_program_that_is_here_may_run() -> None:
    check_program(CLOCK)
    check_program(replace(CLOCK, command=("/usr/bin/npx", "--yes", "clock@1.0.0")))


@requirement("Z-import")
@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("/", "home folder"),
        ("/people", "home folder"),
        ("/people/ada", "home folder"),
        ("/people/ada/keys", "see keys"),
        ("/people/ada/keys/id", "see keys"),
    ],
)
def test_a_program_sees_no_home_folder_and_no_keys(place: str, said: str) -> None:
    for program in (replace(CLOCK, readable=(place,)), replace(CLOCK, writable=(place,))):
        with pytest.raises(BadRequest, match=said):
            check_places(program, FORBIDDEN)


def test_a_program_may_use_some_folders() -> None:
    check_places(CLOCK, FORBIDDEN)
    check_places(replace(CLOCK, readable=("/people/ada/code",)), FORBIDDEN)
    with pytest.raises(BadRequest, match=f"{MAX_PLACES} folders"):
        check_places(replace(CLOCK, readable=("/srv/a",) * MAX_PLACES), FORBIDDEN)
