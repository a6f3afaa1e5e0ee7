"""Rules for logins, names and passwords. Error messages never quote them."""

import re
from dataclasses import dataclass

from backburner.core.errors import BadRequest
from backburner.core.validation import check_text

MIN_PASSWORD_CHARS = 12
MAX_PASSWORD_CHARS = 200
MAX_NAME_CHARS = 100
LOGIN_PATTERN = re.compile(r"[a-z0-9][a-z0-9._@+-]{1,63}")

#: Common passwords of sufficient length, in lower case and without punctuation.
COMMON_PASSWORDS = frozenset(
    "password1234 password12345 password123456 passwordpassword passw0rd1234 mypassword123"
    " 123456789012 1234567890123 12345678901234 123456789012345 1234567890123456 123123123123"
    " 123456123456 123456789123 098765432109 0987654321098 112233445566 121212121212"
    " qwertyuiop12 qwertyuiop123 qwertyuiopasdf qwertyqwerty qwerty123456 qwerty1234567"
    " 1q2w3e4r5t6y 1qaz2wsx3edc qazwsxedcrfv asdfghjkl123 zxcvbnm12345 abcdefghijkl"
    " abcdefghijklm abcd12345678 abc123abc123 a123456789012 iloveyou1234 iloveyouiloveyou"
    " letmein12345 welcome12345 welcome123456 adminadmin12 administrator administrator1"
    " admin1234567 admin12345678 changeme1234 changemechangeme correcthorsebatterystaple"
    " sunshine1234 football1234 baseball1234 princess1234 dragon123456 monkey123456"
    " backburner12 backburner123 backburner1234 backburnerbackburner".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HashCost:
    """The cost of hashing a password."""

    rounds: int = 3
    #: Memory of each hash: many concurrent attempts must not exhaust the machine.
    memory_kib: int = 64 * 1024


DEFAULT_HASH_COST = HashCost()


def check_login(text: str) -> str:
    """Normalise a login: users need not remember its case."""
    login = text.strip().lower()
    if not LOGIN_PATTERN.fullmatch(login):
        raise BadRequest(
            "The login is invalid.",
            hint="Use 2 to 64 characters: letters, digits and . _ @ + -,"
            " starting with a letter or digit.",
        )
    return login


def check_name(text: str) -> str:
    name = check_text("The name", text, limit=MAX_NAME_CHARS).strip()
    if not name.isprintable():
        raise BadRequest("The name has unprintable characters.", hint="Remove them.")
    return name


def check_password(password: str, *, login: str) -> str:
    if not MIN_PASSWORD_CHARS <= len(password) <= MAX_PASSWORD_CHARS:
        raise BadRequest(
            f"A password must have {MIN_PASSWORD_CHARS} to {MAX_PASSWORD_CHARS} characters.",
            hint="Use a few words.",
        )
    check_text("The password", password, limit=MAX_PASSWORD_CHARS)
    plain = re.sub(r"[\W_]", "", password.casefold())
    if plain and plain == re.sub(r"[\W_]", "", login):
        raise BadRequest("The password is the same as the login.", hint="Choose another one.")
    if plain in COMMON_PASSWORDS or len(set(password)) < 4:
        raise BadRequest("The password is too common.", hint="Choose another one.")
    return password
