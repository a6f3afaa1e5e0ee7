"""Which folders can be added, and which overlap."""

import pytest
from support.stage.make import NOON

from backburner.core.errors import BackburnerError, BadRequest, Conflict
from backburner.core.work.folders import (
    Folder,
    ForbiddenPlaces,
    check_machine_id,
    check_overlap,
    check_place,
    instructions_digest,
    overlap,
)

FORBIDDEN = ForbiddenPlaces(
    homes=["/people/ada", "/usr/people/eve"],
    private={"/people/ada/data": "the data folder", "/opt/keys/tls.pem": "a key of the server"},
)


def folder(path: str, machine: str = "a1") -> Folder:
    return Folder(path=path, machine=machine, machine_name="x", read_only=False, created_at=NOON)


@pytest.mark.parametrize(
    "path",
    ["/people/ada/code/app", "/srv/app", "/opt/app", "/usr/people/eve/app", "/people/ada/database"],
)
def test_the_folder_of_a_project_can_be_added(path: str) -> None:
    check_place(path, FORBIDDEN)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/", "the whole machine"),
        ("/etc/app", "a folder of the system"),
        ("/usr/share", "a folder of the system"),
        ("/people/ada", "a home folder"),
        ("/people", "a home folder"),
        ("/people/ada/.ssh", "settings and sign-ins"),
        ("/people/ada/.config/gh", "settings and sign-ins"),
        ("/people/ada/data", "lies in the data folder"),
        ("/people/ada/data/workspaces", "lies in the data folder"),
        ("/opt/keys", "contains a key of the server"),
        ("/opt", "contains a key of the server"),
        ("/srv/" + "x" * 1_000, "the limit is"),
    ],
)
def test_a_place_that_is_too_much_or_private_is_refused(path: str, reason: str) -> None:
    with pytest.raises(BadRequest, match=reason):
        check_place(path, FORBIDDEN)


@pytest.mark.parametrize("path", ["/srv/app/src", "/srv"])
def test_folders_of_one_machine_do_not_overlap(path: str) -> None:
    with pytest.raises(Conflict, match="folders remove"):
        check_overlap(path, [folder("/srv/app")], "a1")


@pytest.mark.parametrize(
    ("other", "is_in_the_way"),
    [("/srv", True), ("/srv/app", True), ("/srv/app/src", True), ("/srv/application", False)],
)
def test_a_folder_overlaps_with_itself_and_those_in_and_around_it(
    other: str, *, is_in_the_way: bool
) -> None:
    assert overlap("/srv/app", other) is is_in_the_way


def test_the_same_folder_and_those_of_other_machines_do_not_overlap() -> None:
    check_overlap("/srv/app", [folder("/srv/app"), folder("/srv/application")], "a1")
    check_overlap("/srv/app/src", [folder("/srv/app", "b2")], "a1")


@pytest.mark.parametrize(("one", "other"), [("", "a1"), ("a1", "")])
def test_a_folder_that_machines_share_overlaps_on_each(one: str, other: str) -> None:
    with pytest.raises(Conflict):
        check_overlap("/srv/app/src", [folder("/srv/app", one)], other)


def test_the_id_of_a_machine_has_letters_and_digits_only() -> None:
    assert check_machine_id("0a1b") == "0a1b"
    with pytest.raises(BackburnerError):
        check_machine_id("a' OR 1")


def test_a_folder_for_work_has_its_machine_and_use() -> None:
    place = folder("/srv/app").for_work
    assert (place.path, place.machine, place.read_only) == ("/srv/app", "a1", False)


def test_any_change_of_instructions_changes_their_digest() -> None:
    digests = [
        instructions_digest(texts)
        for texts in ({}, {"AGENTS.md": "a"}, {"AGENTS.md": "b"}, {"CLAUDE.md": "a"})
    ]
    assert len(set(digests)) == 4
