"""Input that a server asks of the user in the middle of a call (elicitation), and the answers."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

InputValue = str | int | float | bool | Sequence[str]


class InputKind(StrEnum):
    TEXT = "text"
    NUMBER = "number"
    INTEGER = "integer"
    SWITCH = "switch"  #: True or false.
    CHOICE = "choice"  #: One of the options.
    CHOICES = "choices"  #: Any of the options.


@dataclass(frozen=True, slots=True)
class InputOption:
    value: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InputField:
    name: str
    title: str = ""
    description: str = ""
    kind: InputKind = InputKind.TEXT
    required: bool = False
    options: tuple[InputOption, ...] = ()
    default: InputValue | None = None
    #: Of text, such as `email` or `date`.
    format: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRequest:
    """One request of a server: fields to fill in, or an address to visit. All is outside text."""

    #: The server's name for the request; the answer carries it.
    key: str
    message: str
    fields: tuple[InputField, ...] = ()
    #: Visiting it is the answer; empty: the fields are.
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputNeeded:
    """A call that goes on when it is made again with the answers."""

    requests: tuple[InputRequest, ...]
    #: The server's own; it goes back to it unchanged, and is shown to nobody.
    state: str | None = None


class InputAction(StrEnum):
    ACCEPT = "accept"
    DECLINE = "decline"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputAnswer:
    action: InputAction
    #: By the names of the fields, if it is accepted.
    values: Mapping[str, InputValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class InputAnswers:
    """The answers to an `InputNeeded`, by the keys of its requests."""

    answers: Mapping[str, InputAnswer]
    state: str | None = None


_FORBIDDEN_WORDS = (
    "passcode passwd pwd contraseña senha secret secrets otp cvv2? cvc2? credentials? ssn"
)
#: Also in the middle of other words.
_FORBIDDEN_PARTS = "password passphrase passwort kennwort"
_FORBIDDEN_PHRASES = (
    "pass words?|mot de passe|api ?keys?|(?:access|auth|bearer|refresh|security) tokens?"
    "|private keys?|(?:seed|recovery) phrase|pin (?:code|number)|card numbers?|social security"
    "|(?:one time|2fa|mfa|verification|authenticator|recovery|security) codes?"
)
_FORBIDDEN = re.compile(
    rf"\b(?:{'|'.join(_FORBIDDEN_WORDS.split())}|{_FORBIDDEN_PHRASES})\b"
    rf"|{'|'.join(_FORBIDDEN_PARTS.split())}"
)
#: Harmless in a sentence, but not as what a field is for.
_FORBIDDEN_NAMES = re.compile(r"\b(?:pin|token)\b")
_WORD_BREAKS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[\s_\-./]+")


def asks_for_secret(request: InputRequest) -> bool:
    """Say whether a request wants a password or another secret, by its words and its fields.

    Secrets belong on a page of their own service, which a server can name as an address to visit.
    """
    if request.url:
        return False
    texts = [request.message]
    for each in request.fields:
        texts += [each.name, each.title, each.description]
    names = [text for each in request.fields for text in (each.name, each.title)]
    return (
        any(each.format.lower() == "password" for each in request.fields)
        or any(_FORBIDDEN.search(_plain(text)) for text in texts)
        or any(_FORBIDDEN_NAMES.search(_plain(text)) for text in names)
    )


def _plain(text: str) -> str:
    # Letters of another width look the same to the user.
    return _WORD_BREAKS.sub(" ", unicodedata.normalize("NFKC", text)).lower()
