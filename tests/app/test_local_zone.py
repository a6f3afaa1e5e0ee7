"""The time zone of this machine."""

from pathlib import Path

import pytest
from support.requirements import requirement

from backburner.app.local_zone import find_local_zone


@pytest.fixture
def etc(tmp_path: Path) -> Path:
    return tmp_path


def found(etc: Path, **environ: str) -> str | None:
    return find_local_zone(environ, localtime=etc / "localtime", timezone=etc / "timezone")


@requirement("Z-zone")
@pytest.mark.parametrize(
    "text",
    [
        "Europe/Berlin",
        ":Europe/Berlin",
        "/usr/share/zoneinfo/Europe/Berlin",
        ":/usr/share/zoneinfo/posix/Europe/Berlin",
    ],
)
def test_the_variable_counts_first(etc: Path, text: str) -> None:
    (etc / "timezone").write_text("Asia/Tokyo\n")

    assert found(etc, TZ=text) == "Europe/Berlin"


@pytest.mark.parametrize("text", ["", "CET-1CEST", "Factory", "localtime", "../../etc/passwd"])
def test_a_variable_without_a_known_name_gives_none(etc: Path, text: str) -> None:
    (etc / "timezone").write_text("Asia/Tokyo\n")

    assert found(etc, TZ=text) is None


@requirement("Z-zone")
def test_a_link_to_a_zone_file_names_it(etc: Path) -> None:
    (etc / "localtime").symlink_to("../usr/share/zoneinfo/America/Argentina/Ushuaia")

    assert found(etc) == "America/Argentina/Ushuaia"


def test_a_copy_of_a_zone_file_is_named_by_the_other_file(etc: Path) -> None:
    (etc / "localtime").write_bytes(b"TZif2")
    (etc / "timezone").write_text("Asia/Tokyo\n")

    assert found(etc) == "Asia/Tokyo"


def test_a_machine_that_says_nothing_has_no_zone(etc: Path) -> None:
    assert found(etc) is None
    (etc / "timezone").write_bytes(b"\xff\xfe")
    assert found(etc) is None


def test_all_names_of_utc_are_one(etc: Path) -> None:
    (etc / "localtime").symlink_to("/usr/share/zoneinfo/Etc/UTC")

    assert found(etc) == "UTC"
