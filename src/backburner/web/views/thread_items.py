"""The items of a conversation, as templates show them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from markupsafe import Markup

from backburner.core.content.file import FileReference
from backburner.web.display import format_size
from backburner.web.markdown.characters import clean_source
from backburner.web.markdown.writer import write_plain_text
from backburner.web.rendering import load_words
from backburner.web.views.question import QuestionCard
from backburner.web.views.tool_line import MAX_LINES, ToolLine


@dataclass(frozen=True, slots=True)
class ShownTools:
    """The tool calls of a run: the last ones, and those that are folded above them."""

    id: str = ""
    folded: Sequence[ToolLine] = ()
    lines: Sequence[ToolLine] = ()


@dataclass(frozen=True, slots=True)
class ShownFile:
    digest: str
    name: str
    size: str
    bytes: int
    is_image: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Something with a place: its id in the page, and the time that it is found by again."""

    #: Which part of a template shows it.
    kind: ClassVar[str]
    id: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Said(Placed):
    """A message of a user or a run, with what was done for it."""

    run_id: str
    html: Markup
    time: str
    tools: ShownTools = ShownTools()
    files: Sequence[ShownFile] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMessage(Said):
    kind: ClassVar[str] = "message"
    yours: bool
    source: str
    full_time: str
    cost: str = ""
    failed: bool = False
    outside: bool = False
    can_edit: bool = False
    can_retry: bool = False
    last: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownBackground(Said):
    kind: ClassVar[str] = "background"
    state: str
    started_by: str
    label: str
    facts: str
    #: The request that runs the work now, if this was its last run and has failed.
    run_again: str = ""
    run_confirm: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMark(Placed):
    kind: ClassVar[str] = "mark"
    burner: str
    text: Markup | str
    #: What stands below it.
    report: Markup | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredQuestion(Placed):
    kind: ClassVar[str] = "answered"
    answer: str
    how: str
    done: bool


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    kind: ClassVar[str] = "question"
    card: QuestionCard


@dataclass(frozen=True, slots=True)
class DayLine:
    kind: ClassVar[str] = "day"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownReplyTools:
    """The steps of a reply that has said nothing, or has not begun to."""

    kind: ClassVar[str] = "tools"
    run_id: str
    tools: ShownTools
    #: It is being written.
    is_writing: bool


ThreadItem = (
    DayLine
    | ShownMessage
    | ShownBackground
    | ShownMark
    | OpenQuestion
    | AnsweredQuestion
    | ShownReplyTools
)


def fold_tools(run_id: str, lines: Sequence[ToolLine]) -> ShownTools:
    """Show the last of the lines, and fold the others."""
    if len(lines) <= MAX_LINES:
        return ShownTools(run_id, (), lines)
    return ShownTools(run_id, lines[: 1 - MAX_LINES], lines[1 - MAX_LINES :])


def show_beginning(text: str, message_id: str, path: str) -> Markup:
    """Show the beginning of a message as it is written, with a button that loads all of it."""
    words, element = load_words().chat, f"all-{message_id}"
    beginning = Markup(write_plain_text(f"{clean_source(text)}…"))  # noqa: S704 (escaped)
    return beginning + Markup(
        '<p>{} <button class="link" type="button" data-toggle="{}" aria-expanded="false"'
        ' aria-controls="{}">{}</button></p><div id="{}" data-load="{}" hidden></div>'
    ).format(words.beginning_only, element, element, words.show_all, element, path)


def show_files(files: Sequence[FileReference]) -> Sequence[ShownFile]:
    return [
        ShownFile(
            file.digest, file.name, format_size(file.size), file.size, is_image(file.media_type)
        )
        for file in files
    ]


def is_image(media_type: str) -> bool:
    """Say whether it is one of our own types for images, which are all raster images."""
    return media_type.startswith("image/")
