"""Attachments: what is accepted, their names in the folder of agents, and which are text."""

import pytest

from backburner.core.content.attachment import (
    MAX_ATTACHMENTS,
    Attachment,
    check_attachments,
    describe_files,
    dump_files,
    folder_name,
    load_files,
    name_in_folder,
    read_text,
)
from backburner.core.content.file import FileReference
from backburner.core.errors import BadRequest

DIGEST = "9f86d081884c7d65" * 4


def file(name: str = "a.txt", digest: str = DIGEST) -> FileReference:
    return FileReference(digest=digest, size=2048, media_type="text/plain", name=name)


def test_names_are_made_safe_and_what_is_named_twice_is_one() -> None:
    given = [Attachment("1", "../a.txt\u202e"), Attachment("2"), Attachment("1", "a.txt")]

    assert check_attachments(given) == [Attachment("1", "a.txt"), Attachment("2")]


def test_a_message_has_a_limited_number_of_files() -> None:
    with pytest.raises(BadRequest, match="10 files, not 11"):
        check_attachments([Attachment("1")] * (MAX_ATTACHMENTS + 1))


def test_an_item_says_which_files_its_message_has() -> None:
    files = (file("a.txt"), file("b.txt"))

    assert load_files(dump_files(files)) == files
    assert dump_files(()) == {}
    assert load_files({}) == ()


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("report.csv", "report-9f86d081.csv"),
        ("my report (1).csv", "my_report__1_-9f86d081.csv"),
        ("Übersicht.pdf", "Übersicht-9f86d081.pdf"),
        ("", "file-9f86d081"),
        ("README", "README-9f86d081"),
        ("a.tar.gz", "a.tar-9f86d081.gz"),
        ("$(rm -rf ~); .sh", "__rm_-rf_____-9f86d081.sh"),
        ("a.not an ending", "a.not_an_ending-9f86d081"),
        ("a.äöü", "a-9f86d081"),
        ("-.txt", "txt-9f86d081"),
    ],
)
def test_commands_need_no_quotes_for_the_name_of_a_file(name: str, shown: str) -> None:
    assert folder_name(file(name)) == shown


def test_a_name_fits_into_every_file_system() -> None:
    assert len(folder_name(file("語" * 90 + ".txt")).encode()) < 150


def test_files_of_the_same_name_have_names_of_their_own_in_the_folder() -> None:
    twin = DIGEST[:8] + "0" * 56
    files = [file(), file(digest="0" * 64), file(digest=twin), file()]

    named = name_in_folder(files)

    assert list(named) == ["a-9f86d081.txt", "a-00000000.txt", "a-9f86d08100000000.txt"]
    assert [one.digest for one in named.values()] == [DIGEST, "0" * 64, twin]


def test_files_are_listed_with_type_and_size() -> None:
    assert describe_files([file(), file("b.txt")]) == (
        "a-9f86d081.txt (text/plain, 2 KB)\nb-9f86d081.txt (text/plain, 2 KB)"
    )


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a,b\r\n1,\t2\n", "a,b\r\n1,\t2\n"),
        (b"", ""),
        (b"\xef\xbb\xbfa", "a"),
        ("语".encode(), "语"),
        (b"\xff\xfea\0", None),
        (b"a\0", None),
        (b"\x1b[2J", None),
        (b"a\x7f", None),
        (b"%PDF-1.7\n\xe2\xe3", None),
    ],
)
def test_text_is_known_by_its_bytes(data: bytes, text: str | None) -> None:
    assert read_text(data) == text
