"""Input that a server asks of the user in the middle of a call (elicitation), and the answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

InputValue = str | int | float | bool | Sequence[str]
#: Values by the names of their fields; None and the empty text: nothing.
InputValues = Mapping[str, InputValue | None]


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
