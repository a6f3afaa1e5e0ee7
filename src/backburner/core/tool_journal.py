"""The journal of tool calls: receipts for a repeated run, and questions about calls in doubt.

A call is recorded before it is made and again with its result. A call without a result may or may
not have taken effect: a read-only call is made again, and about any other the owner is asked; but a
command that could change nothing outside its folder is left to the agent, which can look there.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from backburner.core.commands import Cage
from backburner.core.content.file import FileReference
from backburner.core.conversation import Conversation
from backburner.core.ids import CallId, QuestionId, RunId, derive_question_id
from backburner.core.prompt import quote_outside
from backburner.core.question import FIRST_REMINDER, REPEAT, Purpose, Question, QuestionType
from backburner.core.run import RunKind
from backburner.core.tool_policy import HAND_OVER_TOOL, OWN_SERVER, show_tool
from backburner.core.transitions import Step, ask_owner
from backburner.core.transitions.answers import HAPPENED, LEAVE
from backburner.core.transitions.step import system_message
from backburner.core.validation import canonical_json, escape_hidden

MAX_ASKED_ARGUMENT_CHARS = 2_000
MAX_RECEIPT_CHARS = 500
#: Gives its own conversation work, or makes a task.
SCHEDULE_TOOL = "schedule_work"
#: The result of a call whose work was stopped with the message that asked for it.
UNDONE = "Undone: the message that asked for it was replaced."


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    id: CallId
    run_id: RunId
    server: str
    tool: str
    definition: str
    arguments: Mapping[str, Any]
    digest: str
    read_only: bool
    #: It may be made again even if it may have been made.
    repeatable: bool = False
    #: False if it is unknown whether the call took effect.
    done: bool
    result: str | None = None
    failed: bool = False
    #: What kept it from reaching anything outside its folder.
    cage: Cage | None = None
    #: What its result names.
    files: tuple[FileReference, ...] = ()


def calls_in_doubt(entries: Sequence[JournalEntry]) -> Sequence[JournalEntry]:
    """Find the calls that must not be repeated before the owner has said whether they happened."""
    return [entry for entry in entries if _may_be_done(entry) and entry.cage is None]


def find_receipt(
    digest: str, entries: Sequence[JournalEntry], *, used: Collection[CallId]
) -> JournalEntry | None:
    """Find the result of an identical earlier call; each receipt is used once."""
    for entry in entries:
        if _is_receipt(entry) and entry.digest == digest and entry.id not in used:
            return entry
    return None


def find_untold(
    entries: Iterable[JournalEntry], untold: Collection[CallId]
) -> Sequence[JournalEntry]:
    """Find the calls that an agent would make again, because its session may not have them."""
    return [
        entry
        for entry in entries
        if entry.id in untold and _is_receipt(entry) and not entry.repeatable and entry.cage is None
    ]


def describe_done_calls(entries: Sequence[JournalEntry]) -> list[str]:
    """List the calls of an earlier attempt that a new one must not repeat, with their results."""
    return [
        f"{_describe(entry)} returned:"
        f" {quote_outside(entry.tool, _truncate(entry.result or '', MAX_RECEIPT_CHARS))}"
        for entry in entries
        if _is_receipt(entry)
    ]


def describe_interrupted_calls(entries: Sequence[JournalEntry]) -> list[str]:
    """List the calls that may have changed files of their folder, and nothing else."""
    return [_describe(entry) for entry in entries if _may_be_done(entry) and entry.cage is not None]


def find_undone(
    entries: Iterable[JournalEntry], stopped: Sequence[Conversation]
) -> Sequence[JournalEntry]:
    """Find the calls that set up work which was stopped: a repeated run may make them again."""
    return [
        entry
        for entry in entries
        if entry.server == OWN_SERVER
        and _is_receipt(entry)
        and any(_set_up(entry, work) for work in stopped)
    ]


def find_hand_overs(entries: Sequence[JournalEntry]) -> Sequence[JournalEntry]:
    """Find the calls that handed over files to the user."""
    return [
        entry
        for entry in entries
        if entry.tool == HAND_OVER_TOOL and entry.server == OWN_SERVER and entry.files
    ]


def doubt_question_id(entry: JournalEntry) -> QuestionId:
    return derive_question_id(entry.id, "in doubt")


def doubt_question(entry: JournalEntry, kind: RunKind, *, now: datetime) -> Question:
    """Ask the owner whether a call happened; the answer "do it again" approves this call only."""
    shown = escape_hidden(canonical_json(dict(entry.arguments)))
    arguments = _truncate(shown, MAX_ASKED_ARGUMENT_CHARS)
    return Question(
        id=doubt_question_id(entry),
        purpose=Purpose.IN_DOUBT,
        type=QuestionType.CHOICE,
        prompt=f"I was interrupted while calling {_name(entry)}, and the call may or may not have"
        f" happened: {arguments}",
        options=(HAPPENED, REPEAT, LEAVE),
        run_id=entry.run_id,
        run_kind=kind,
        binds_to={
            "call_id": entry.id,
            "calls": [
                {
                    "server": entry.server,
                    "tool": entry.tool,
                    "definition": entry.definition,
                    "arguments": dict(entry.arguments),
                    "digest": entry.digest,
                    "words": None,
                    "whole": False,
                }
            ],
        },
        asked_at=now,
        remind_at=now + FIRST_REMINDER,
    )


def ask_about(step: Step, entries: Sequence[JournalEntry], kind: RunKind, *, now: datetime) -> Step:
    """Add a question to the owner for each call in doubt."""
    for entry in entries:
        step = step.then(ask_owner(step.conversation, doubt_question(entry, kind, now=now)))
    return step


def tell_about(
    step: Step, entries: Sequence[JournalEntry], *, made: Sequence[JournalEntry] = ()
) -> Step:
    """Tell about the calls in doubt of a run that was cancelled: nothing is to follow from them.

    And about those that were `made`, if the agent of this or of another stopped run does not know.
    """
    texts = []
    if made:
        calls = "; ".join(map(_describe, made))
        texts.append(f"Before it was stopped, it had made these calls: {calls}.")
    if entries:
        tools = ", ".join(map(_name, entries))
        texts.append(
            f"It was stopped during a call of {tools}, which may or may not have happened."
        )
    return replace(step, messages=(*step.messages, *map(system_message, texts)))


def _name(entry: JournalEntry) -> str:
    # Several connections may have a tool of this name.
    return entry.tool if entry.server == OWN_SERVER else show_tool(entry.server, entry.tool)


def _describe(entry: JournalEntry) -> str:
    return f"{entry.tool} {_truncate(canonical_json(dict(entry.arguments)), MAX_RECEIPT_CHARS)}"


def _set_up(entry: JournalEntry, work: Conversation) -> bool:
    """Whether a call made this work: its result has the id of a child, else it has the prompt."""
    if work.id in (entry.result or ""):
        return True
    prompt = work.state.context.get("prompt")
    is_made = entry.tool == SCHEDULE_TOOL and prompt is not None
    return is_made and entry.arguments.get("what") == prompt


def _may_be_done(entry: JournalEntry) -> bool:
    return not entry.done and not (entry.read_only or entry.repeatable)


def _is_receipt(entry: JournalEntry) -> bool:
    return entry.done and not entry.read_only and not entry.failed


def _truncate(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]} […]"
