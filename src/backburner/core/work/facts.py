"""The facts about work that a reply is given, so that it need not guess how the work is going."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from backburner.core.conversation import (
    CONTEXT_MARK,
    Conversation,
    Kind,
    Status,
    may_contain_outside_text,
)
from backburner.core.prompt import quote_outside, truncate
from backburner.core.run import RunStatus
from backburner.core.schedule.describe import describe_times, join_times
from backburner.core.work.activity import RunActivity
from backburner.core.work.views import is_listed_as_task, job_status, task_status

#: Of the children of a conversation; the others are counted.
MAX_CHILDREN = 20
MAX_RESULT_CHARS = 300
_MAX_TITLE_CHARS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedRun:
    """The last background run of some work that ended."""

    status: RunStatus
    ended_at: datetime
    #: Its message, its result or its error.
    text: str | None
    #: Its session had read outside text.
    outside: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkFact:
    """Some work: of a conversation itself, or of one of its children."""

    conversation: Conversation
    last_run: EndedRun | None
    running: RunActivity | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkFacts:
    """The work of a conversation."""

    own: WorkFact | None = None
    #: With work to do first, then the newest.
    children: Sequence[WorkFact] = ()
    #: How many children there are besides.
    more: int = 0


NO_FACTS = WorkFacts()


def has_own_work(conversation: Conversation) -> bool:
    """Return whether a conversation has or had work of its own."""
    return conversation.schedule is not None or conversation.last_run_at is not None


def describe_facts(facts: WorkFacts, *, zone: str, is_marked: bool) -> str:
    """Describe work, with whatever agents have written about it as data.

    A session that is not marked gets no outside text from here: it learns where to read it.
    """
    lines = list[str]()
    if facts.own is not None:
        lines += _describe("This conversation", facts.own, zone, is_marked=is_marked)
    for child in facts.children:
        lines += _describe(
            _name(child.conversation, is_marked=is_marked), child, zone, is_marked=is_marked
        )
    if facts.more:
        lines.append(f"- {facts.more} more, which have ended or are older, are not shown.")
    return "\n".join(lines)


def _name(work: Conversation, *, is_marked: bool) -> str:
    kind = "Job" if work.kind is Kind.JOB else "Task"
    if CONTEXT_MARK in work.state.outside and not is_marked:
        return f"{kind} {work.id}"
    title = truncate(" ".join(work.title.split()), _MAX_TITLE_CHARS)
    return f"{kind} {title!r} ({work.id})"


def _describe(name: str, fact: WorkFact, zone: str, *, is_marked: bool) -> Iterable[str]:
    work, running, last = fact.conversation, fact.running, fact.last_run
    parts, quotes = [f"- {name}: {_status(work)}."], list[str]()
    if running is not None:
        parts.append(f"It runs now, since {_time(running.started_at, zone)}.")
        quotes.append(quote_outside("current activity", running.doing))
    if work.next_run_at is not None and work.status is Status.BACKGROUND:
        parts.append(f"Next run: {join_times([work.next_run_at], zone=zone)}.")
    if last is not None:
        parts.append(f"Last run: {last.status}, ended {_time(last.ended_at, zone)}.")
        if last.text:
            quotes.append(quote_outside("last run", truncate(last.text, MAX_RESULT_CHARS)))
    if (question := work.pending_question) is not None:
        parts.append("It waits for the user's answer to a question.")
        quotes.append(quote_outside("question", truncate(question.prompt, MAX_RESULT_CHARS)))
    if quotes and not is_marked and _has_outside_text(fact):
        parts.append("Its texts may contain outside text; task_history and list_work show them.")
        quotes = []
    yield " ".join(parts)
    yield from quotes


def _has_outside_text(fact: WorkFact) -> bool:
    """Return whether texts of some work may repeat outside text, also from before a fresh start."""
    work, last = fact.conversation, fact.last_run
    question = work.pending_question
    if may_contain_outside_text(work) or (question is not None and question.outside):
        return True
    if last is not None and last.outside:
        return True
    return last is not None and work.fresh_at is not None and last.ended_at <= work.fresh_at


def _status(work: Conversation) -> str:
    if work.kind is Kind.JOB:
        return str(job_status(work))
    is_task = work.kind is Kind.TASK or is_listed_as_task(work)
    status = (task_status(work) if is_task else None) or work.status
    return f"{status} ({work.pause_reason})" if work.pause_reason else str(status)


def _time(moment: datetime, zone: str) -> str:
    (text,) = describe_times([moment], zone=zone)
    return text
