"""The form for a request of a server during a call: its words in quotes, a field for each value."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from backburner.core.connections.inputs.input_field import show_default
from backburner.core.connections.inputs.input_question import load_requests
from backburner.core.connections.inputs.input_request import InputField, InputKind, InputRequest
from backburner.core.question import Purpose, Question
from backburner.core.validation import escape_hidden
from backburner.web.rendering import load_words

#: Types of input elements by the format of a text. A browser's time has no zone.
_TYPES = {"email": "email", "uri": "url", "date": "date"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FormOption:
    value: str
    label: str
    chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    #: The server's, by which the value is sent.
    name: str
    label: str
    about: str
    kind: InputKind
    #: Of its element.
    type: str
    required: bool
    #: The default, as it stands in the element.
    value: str
    options: Sequence[FormOption]

    @property
    def is_group(self) -> bool:
        """It has several elements."""
        return self.kind in (InputKind.SWITCH, InputKind.CHOICES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A page that the server wants to be visited."""

    host: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InputForm:
    title: str
    #: What the server says.
    quotes: Sequence[str]
    visits: Sequence[Visit]
    #: None where its answers are buttons.
    fields: Sequence[FormField]
    #: Where the answer goes.
    note: str


def read_form(question: Question) -> InputForm | None:
    """Read what a server asks for; None: it is another question."""
    if question.purpose is not Purpose.INPUT:
        return None
    requests = load_requests(question)
    fields = [field for request in requests for field in request.fields]
    # The first line names the server and the call, and the last one where the answer goes.
    lines = question.prompt.strip().splitlines()
    said = [request.message for request in requests]
    has_buttons = bool(question.options)
    return InputForm(
        title=lines[0].removesuffix(":"),
        quotes=[
            escape_hidden(text).strip()
            for text in (*said, *(_describe(one) for one in fields if has_buttons))
            if text.strip()
        ],
        visits=[_visit(request) for request in requests if request.url],
        fields=[] if has_buttons else [_show_field(field) for field in fields],
        note=lines[-1],
    )


def _visit(request: InputRequest) -> Visit:
    return Visit(host=urlsplit(request.url).hostname or "", address=escape_hidden(request.url))


def _describe(field: InputField) -> str:
    return ": ".join(filter(None, (field.title or field.name, field.description)))


def _show_field(field: InputField) -> FormField:
    number = field.kind in (InputKind.NUMBER, InputKind.INTEGER)
    has_default = show_default(field) is not None
    return FormField(
        name=field.name,
        label=escape_hidden(field.title or field.name),
        about=escape_hidden(field.description),
        kind=field.kind,
        type="number" if number else _TYPES.get(field.format, "text"),
        required=field.required,
        value=str(field.default) if has_default and not _has_options(field) else "",
        options=list(_list_options(field)),
    )


def _has_options(field: InputField) -> bool:
    return field.kind in (InputKind.SWITCH, InputKind.CHOICE, InputKind.CHOICES)


def _list_options(field: InputField) -> Sequence[FormOption]:
    default = field.default
    if field.kind is InputKind.SWITCH:
        words = load_words().question.answers.confirmation
        return [
            FormOption(value="true", label=words.yes, chosen=default is True),
            FormOption(value="false", label=words.no, chosen=default is False),
        ]
    chosen = default if isinstance(default, list | tuple) else (default,)
    return [
        FormOption(
            value=option.value,
            label=escape_hidden(option.label or option.value),
            chosen=option.value in chosen,
        )
        for option in field.options
    ]
