"""Which logins, names and passwords are accepted."""

import pytest

from backburner.core.errors import BadRequest
from backburner.core.passwords import COMMON_PASSWORDS, check_login, check_name, check_password


@pytest.mark.parametrize("text", ["ada", " Ada ", "ada@mail.example", "a1", "ada.l+x_y-z"])
def test_a_login_is_kept_in_small_letters(text: str) -> None:
    assert check_login(text) == text.strip().lower()


@pytest.mark.parametrize(
    "text", ["", "a", ".ada", "a b", "ada\n x", "ädä", "a\u0308da", "a" * 65, "a\0b"]
)
def test_a_login_with_other_characters_is_refused(text: str) -> None:
    with pytest.raises(BadRequest):
        check_login(text)


def test_a_name_is_any_text_that_can_be_shown() -> None:
    assert check_name(" Ada Lovelace ") == "Ada Lovelace"
    for bad in ("a\nb", "a" * 101, "a\0b", "\u202etxt"):
        with pytest.raises(BadRequest):
            check_name(bad)


@pytest.mark.parametrize(
    "password", ["three words or more", "x1!y" * 3, "a" * 196 + "bcde", "ключевые слова"]
)
def test_a_long_password_is_taken_whatever_it_is_made_of(password: str) -> None:
    assert check_password(password, login="ada") == password


@pytest.mark.parametrize(
    "password",
    [
        *("short", "eleven char", "a" * 150 + "bcd" * 20, "aaaaaaaaaaaa", "121212121212"),
        *("Password-1234", "qwerty 123 456", "ada-lovelace-1", "Ada Lovelace 1", "no\0text at all"),
        *(word for word in sorted(COMMON_PASSWORDS) if len(word) > 20),
    ],
)
def test_a_short_or_common_password_is_refused_and_not_quoted(password: str) -> None:
    with pytest.raises(BadRequest) as refused:
        check_password(password, login="ada.lovelace1")

    assert password not in str(refused.value)


def test_every_common_password_is_long_enough_to_be_listed() -> None:
    assert all(len(word) >= 12 for word in COMMON_PASSWORDS)
