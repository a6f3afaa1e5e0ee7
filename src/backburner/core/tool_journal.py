"""What is known of tool calls that were made: what a run that starts over is told, and asked about.

A call is written down before it is made and after. One that was written down only before may or may
not have happened: what only reads is simply made again, about anything else the owner is asked.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from backburner.core.ids import CallId, QuestionId, RunId, derive_question_id
from backburner.core.question import FIRST_REMINDER, Purpose, Question, QuestionType
from backburner.core.run import RunKind
from backburner.core.transitions.answers import HAPPENED, LEAVE, REPEAT
from backburner.core.validation import canonical_json

MAX_ASKED_ARGUMENT_CHARS = 2_000
MAX_RECEIPT_CHARS = 500


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
    #: False: nobody knows whether it happened.
    done: bool
    result: str | None = None
    failed: bool = False


def calls_in_doubt(entries: Sequence[JournalEntry]) -> Sequence[JournalEntry]:
    """Find the calls that must not be made again before somebody has said whether they were."""
    return [entry for entry in entries if not entry.done and not entry.read_only]


def find_receipt(
    digest: str, entries: Sequence[JournalEntry], *, used: Collection[CallId]
) -> JournalEntry | None:
    """Find the earlier call that answers an identical one; each answers once."""
    for entry in entries:
        answers = entry.done and not entry.read_only and not entry.failed
        if answers and entry.digest == digest and entry.id not in used:
            return entry
    return None


def describe_done_calls(entries: Sequence[JournalEntry]) -> list[str]:
    """Say what an earlier attempt did that a new one must not do again."""
    return [
        f"{entry.tool} {_short(canonical_json(dict(entry.arguments)), MAX_RECEIPT_CHARS)}"
        f" gave: {_short(entry.result or '', MAX_RECEIPT_CHARS)}"
        for entry in entries
        if entry.done and not entry.read_only and not entry.failed
    ]


def doubt_question_id(entry: JournalEntry) -> QuestionId:
    return derive_question_id(entry.id, "in doubt")


def doubt_question(entry: JournalEntry, kind: RunKind, *, now: datetime) -> Question:
    """Ask the owner whether a call happened; "do it again" is a yes to just this call."""
    shown = _short(canonical_json(dict(entry.arguments)), MAX_ASKED_ARGUMENT_CHARS)
    return Question(
        id=doubt_question_id(entry),
        purpose=Purpose.IN_DOUBT,
        type=QuestionType.CHOICE,
        prompt=f"Something broke while I was calling {entry.tool}. It may or may not have"
        f" happened: {shown}",
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


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]} […]"
