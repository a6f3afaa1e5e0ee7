"""Facts about files: digests, names, media types and limits."""

from base64 import b64decode, b64encode

import pytest
from support.cases.images import HTML, SVG, png

from backburner.core.content.file import (
    BYTES,
    PIECE_BYTES,
    FileLimits,
    check_beginning,
    check_digest,
    check_room,
    check_size,
    choose_media_type,
    clean_name,
    digest_of,
    format_size,
    piece_count,
    pieces,
)
from backburner.core.errors import BadRequest, LimitReached, TooLarge

LIMITS = FileLimits(file=10, user=100)


def test_the_digest_is_that_of_sha_256() -> None:
    assert digest_of(b"abc").startswith("ba7816bf8f01cfea414140de5dae2223")
    assert check_digest(digest_of(b"abc")) == digest_of(b"abc")


@pytest.mark.parametrize(
    "text", ["", "BA7816BF" * 8, "ba7816bf", "../" * 22, "ba7816bf" * 8 + "\n"]
)
def test_what_is_no_digest_is_refused(text: str) -> None:
    with pytest.raises(BadRequest):
        check_digest(text)


def test_the_beginning_of_a_digest_is_long_enough_to_be_meant() -> None:
    assert check_beginning("ba7816bf") == "ba7816bf"
    for text in ("ba7816b", "ba7816bg", "%", "ba7816bf" * 9):
        with pytest.raises(BadRequest):
            check_beginning(text)


@pytest.mark.parametrize(
    ("data", "claimed", "chosen"),
    [
        (png(), "image/png", "image/png"),
        (png(), "text/html", "image/png"),
        (HTML, "image/png", BYTES),
        (HTML, "text/html; charset=utf-8", "text/html"),
        (SVG, "image/svg+xml", "image/svg+xml"),
        (b"%PDF", "Application/PDF", "application/pdf"),
        (b"data", "", BYTES),
        (b"data", "text/html\r\nx-evil: 1", BYTES),
        (b"data", "a/" + "b" * 100, BYTES),
    ],
)
def test_a_media_type_that_is_claimed_is_believed_only_of_what_is_no_image(
    data: bytes, claimed: str, chosen: str
) -> None:
    assert choose_media_type(data, claimed) == chosen


@pytest.mark.parametrize(
    ("name", "clean"),
    [
        ("report.pdf", "report.pdf"),
        ("Übersicht 2026.pdf", "Übersicht 2026.pdf"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Windows\\system32\\a.exe", "a.exe"),
        ("folder/", "folder"),
        (".bashrc", "bashrc"),
        ("-rf", "rf"),
        ("invoice\u202efdp.exe", "invoice fdp.exe"),
        ("a\r\nb\0c\td.txt", "a b\ufffdc d.txt"),
        ('say "hi"?.txt', "say _hi__.txt"),
        ("...", ""),
        ("", ""),
        ("lone \ud800.txt", "lone \ufffd.txt"),
        ("a" * 200 + ".pdf", "a" * 96 + ".pdf"),
        ("a" * 200, "a" * 100),
        ("a" * 200 + "." + "b" * 20, "a" * 100),
    ],
)
def test_a_name_is_safe_to_show_and_to_save_under(name: str, clean: str) -> None:
    assert clean_name(name) == clean


def test_a_file_above_the_limit_is_refused_and_named() -> None:
    check_size("", 10, LIMITS)
    with pytest.raises(TooLarge) as refused:
        check_size("a.pdf", 11, LIMITS)
    assert "'a.pdf'" in str(refused.value)
    with pytest.raises(TooLarge):
        check_size("", 11, LIMITS)


def test_the_files_of_a_user_have_a_limit_together() -> None:
    check_room(10, 90, LIMITS)
    with pytest.raises(LimitReached) as refused:
        check_room(11, 90, LIMITS)
    assert "100 bytes" in str(refused.value)


def test_pieces_can_be_joined_in_base64() -> None:
    data = bytes(range(251)) * (2 * PIECE_BYTES // 251 + 1)
    cut = list(pieces(data))

    assert len(cut) == piece_count(len(data)) == 3
    assert b64decode(b"".join(map(b64encode, cut)), validate=True) == data
    assert (list(pieces(b"")), piece_count(0), piece_count(1)) == ([], 0, 1)


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 bytes"), (1023, "1023 bytes"), (2048, "2 KB"), (3 * 2**20, "3.0 MB")]
)
def test_sizes_are_for_people(size: int, text: str) -> None:
    assert format_size(size) == text
