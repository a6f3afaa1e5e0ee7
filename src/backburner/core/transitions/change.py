"""Changes of existing work that wait for the owner's yes: the question, and what it binds to."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from backburner.core.conversation import (
    Conversation,
    Destination,
    Notify,
    OnRepeatedFailure,
    Status,
)
from backburner.core.ids import ConnectionId, ConversationId, RunId, derive_question_id
from backburner.core.prompt import TRUNCATION_MARK
from backburner.core.question import (
    FIRST_REMINDER,
    NO,
    YES,
    Purpose,
    Question,
    QuestionType,
)
from backburner.core.run import RunKind
from backburner.core.schedule import Schedule
from backburner.core.schedule.describe import describe
from backburner.core.schedule.serialize import from_json, to_json
from backburner.core.transitions.edit import Terms
from backburner.core.validation import canonical_json, escape_hidden

MAX_OPEN_CHANGES = 3
_MAX_VALUE_CHARS = 1_500
#: Shown before the first difference of long values.
_CONTEXT_CHARS = 100


class Verb(StrEnum):
    UPDATE = "change"
    PAUSE = "pause"
    RESUME = "resume"
    RUN_NOW = "run now"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkChange:
    work_id: ConversationId
    verb: Verb
    #: For `UPDATE` only.
    terms: Terms | None = None
    schedule: Schedule | None = None
    #: Whether the model changes, and the profile that is requested; None: the default.
    has_model: bool = False
    profile: str | None = None


def change_question(
    work: Conversation,
    change: WorkChange,
    *,
    run_id: RunId | None,
    now: datetime,
    zone: str,
    existing: Mapping[str, ConnectionId] | None = None,
) -> Question:
    """Ask the owner about a change; the answer binds to the work as it is and to the change.

    It also binds to the connections that the work would get: `existing` are those of its user.
    """
    bound: dict[str, Any] = {"change": to_data(change), "before": digest(work)}
    if given := {name: (existing or {}).get(name) for name in _new_names(work, change)}:
        bound["connections"] = given
    asked = canonical_json([bound, now.isoformat()])
    return Question(
        id=derive_question_id(work.id, "change", hashlib.sha256(asked.encode()).hexdigest()),
        purpose=Purpose.CHANGE,
        type=QuestionType.CONFIRMATION,
        prompt=escape_hidden("\n".join(_describe(work, change, zone))),
        options=(YES, NO),
        run_id=run_id,
        # Its answer starts no run.
        run_kind=RunKind.REPLY,
        asked_at=now,
        remind_at=now + FIRST_REMINDER,
        binds_to=bound,
    )


def named_connections(question: Question) -> Sequence[str]:
    """Return the names of the connections that the work would have after a change."""
    terms = from_data(question.binds_to["change"]).terms
    return () if terms is None else terms.connections or ()


def lost_connections(
    question: Question, work: Conversation, existing: Mapping[str, ConnectionId]
) -> Sequence[str]:
    """Return the connections that work would get by name and that were removed since."""
    shown = question.binds_to.get("connections", {})
    names = _new_names(work, from_data(question.binds_to["change"]))
    return [name for name in names if name not in existing or existing[name] != shown.get(name)]


def changed_work(question: Question) -> ConversationId:
    """Return the work that a question about a change is about."""
    return ConversationId(question.binds_to["change"]["work_id"])


def digest(work: Conversation) -> str:
    """Identify the terms and the state of work that a change was proposed for."""
    terms = to_data(WorkChange(work_id=work.id, verb=Verb.UPDATE, terms=Terms.of(work)))
    schedule = None if work.schedule is None else to_json(work.schedule)
    is_archived = work.status is Status.ARCHIVED
    state = [work.schedule_revision, work.pause_reason, is_archived, work.requested_profile]
    return hashlib.sha256(canonical_json([terms, schedule, state]).encode()).hexdigest()


def to_data(change: WorkChange) -> dict[str, Any]:
    terms = change.terms
    return {
        "work_id": change.work_id,
        "verb": change.verb.value,
        "schedule": None if change.schedule is None else to_json(change.schedule),
        "model": {"profile": change.profile} if change.has_model else None,
        "terms": None
        if terms is None
        else {
            "title": terms.title,
            "prompt": terms.prompt,
            "description": terms.description,
            "notify": terms.notify.value,
            "max_runs": terms.max_runs,
            "run_timeout": terms.run_timeout and terms.run_timeout.total_seconds(),
            "tools": None if terms.tools is None else list(terms.tools),
            # Left out where it was never said, as in questions that were asked before it could be.
            **({} if terms.connections is None else {"connections": list(terms.connections)}),
            "reports_to": [[to.channel, to.target] for to in terms.reports_to],
            "on_repeated_failure": terms.on_repeated_failure.value,
        },
    }


def from_data(data: Mapping[str, Any]) -> WorkChange:
    terms, schedule = data["terms"], data["schedule"]
    return WorkChange(
        work_id=ConversationId(data["work_id"]),
        verb=Verb(data["verb"]),
        schedule=None if schedule is None else from_json(schedule),
        terms=None if terms is None else _terms(terms),
        has_model=data["model"] is not None,
        profile=(data["model"] or {}).get("profile"),
    )


def _new_names(work: Conversation, change: WorkChange) -> Sequence[str]:
    named = None if change.terms is None else change.terms.connections
    return [name for name in named or () if name not in (work.connections or ())]


def _terms(data: Mapping[str, Any]) -> Terms:
    timeout, tools, connections = data["run_timeout"], data["tools"], data.get("connections")
    return Terms(
        title=data["title"],
        prompt=data["prompt"],
        description=data["description"],
        notify=Notify(data["notify"]),
        max_runs=data["max_runs"],
        run_timeout=None if timeout is None else timedelta(seconds=timeout),
        tools=None if tools is None else tuple(tools),
        connections=None if connections is None else tuple(connections),
        reports_to=tuple(Destination(*place) for place in data["reports_to"]),
        on_repeated_failure=OnRepeatedFailure(data["on_repeated_failure"]),
    )


def _describe(work: Conversation, change: WorkChange, zone: str) -> Iterator[str]:
    """Say what would change, old and new, and how to answer."""
    yield f"Proposed: {change.verb.value} {work.title!r} ({work.id})."
    if change.terms is not None:
        old, new = to_data(_whole(work))["terms"], to_data(change)["terms"]
        for name in dict.fromkeys([*old, *new]):
            if old.get(name) != new.get(name):
                before, after = _show_difference(old.get(name), new.get(name))
                yield f"{name.replace('_', ' ')}: {before} -> {after}"
    if change.schedule is not None and change.schedule != work.schedule:
        before = "none" if work.schedule is None else describe(work.schedule, zone=zone)
        yield f"schedule: {before} -> {describe(change.schedule, zone=zone)}"
    if change.has_model:
        yield f"model: {work.requested_profile or 'default'} -> {change.profile or 'default'}"
    yield "Nothing changes before you answer yes."


def _whole(work: Conversation) -> WorkChange:
    return WorkChange(work_id=work.id, verb=Verb.UPDATE, terms=Terms.of(work))


def _show_difference(old: object, new: object) -> tuple[str, str]:
    """Show two values, each in one line: no text can pass for another line of the question.

    Of long ones, the part from where they begin to differ.
    """
    texts = [_one_line(old), _one_line(new)]
    start = 0
    if max(map(len, texts)) > _MAX_VALUE_CHARS:
        differing = (place for place, (a, b) in enumerate(zip(*texts, strict=False)) if a != b)
        same = next(differing, min(map(len, texts)))
        start = max(0, same - _CONTEXT_CHARS)
    shown = [_cut(text, start) for text in texts]
    quoted = [
        repr(text) if isinstance(value, str) else text
        for text, value in zip(shown, (old, new), strict=True)
    ]
    return quoted[0], quoted[1]


def _one_line(value: object) -> str:
    return " ".join(str(value).split()) if isinstance(value, str) else canonical_json(value)


def _cut(text: str, start: int) -> str:
    before = f"{TRUNCATION_MARK.strip()} " if start else ""
    rest = text[start : start + _MAX_VALUE_CHARS]
    after = TRUNCATION_MARK if len(text) > start + _MAX_VALUE_CHARS else ""
    return f"{before}{rest}{after}"
