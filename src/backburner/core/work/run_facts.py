"""The start and end of a run, and the next step after it: in words for its user."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from statistics import median
from typing import Any, assert_never

from backburner.core.ids import ConversationId, MessageId, QuestionId, RunId
from backburner.core.question import Purpose
from backburner.core.run import FailureKind, Item, ItemKind, Run, RunKind, RunStatus
from backburner.core.schedule.describe import describe_times
from backburner.core.work.activity import RunActivity
from backburner.core.work.timeline import AskedQuestion, awaited_answer

#: Of a text that is quoted.
MAX_QUOTED_CHARS = 200
_ADVICE: Mapping[FailureKind, str] = {
    FailureKind.TIMEOUT: "Give it more time, or split the work into smaller parts.",
    FailureKind.INCOMPLETE: "Describe the work more exactly, or try another model.",
    FailureKind.CRASHED: "Nothing: it is tried again. If it happens often, read the server's log.",
    FailureKind.UNAVAILABLE: "Nothing: later runs go on when the model answers again.",
    FailureKind.ACCESS_DENIED: "Check the key and the credit of the model's account.",
    FailureKind.MODEL: "Read what the model's server says; change the work, or its model.",
    FailureKind.TOOL: "Look at the call that failed, and at the connection that it was made on.",
    FailureKind.SIGNED_OUT: "Sign in to the connection again.",
    FailureKind.ENGINE: "Run it again. If it fails again, read the server's log.",
}


class CauseKind(StrEnum):
    SCHEDULE = "schedule"  #: A time of its schedule.
    START = "start"  #: Work that was to begin at once.
    RUN_NOW = "run_now"  #: The user asked for a run.
    MESSAGE = "message"
    ANSWER = "answer"
    EVENT = "event"  #: Something outside, or the end of the work that it comes after.
    JOB_RESULT = "job_result"
    RETRY = "retry"  #: The run before it failed.
    FOLLOW_UP = "follow_up"  #: The run before it was not done.


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCause:
    kind: CauseKind
    #: A message, an answer, or the name of a job; shortened.
    text: str = ""
    #: What was asked, of an answer.
    question: str = ""
    slot_at: datetime | None = None
    message_id: MessageId | None = None
    question_id: QuestionId | None = None
    #: Of a job.
    conversation_id: ConversationId | None = None
    #: The run before it.
    run_id: RunId | None = None


class OutcomeKind(StrEnum):
    RUNNING = "running"
    WAITING = "waiting"
    DONE = "done"
    ASKED = "asked"  #: It ended with a question.
    FAILED = "failed"
    STOPPED = "stopped"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class RunOutcome:
    ending: OutcomeKind
    #: One sentence.
    text: str
    #: Of a failure.
    what_to_do: str | None = None


@dataclass(frozen=True, slots=True)
class RunMeasure:
    """The figures of one run."""

    run: Run
    worked: timedelta
    micros: int
    tokens: int


@dataclass(frozen=True, slots=True)
class RunMedians:
    """Of runs that ended, well or with a failure."""

    worked: timedelta
    micros: int
    tokens: int


def find_causes(run: Run, items: Sequence[Item], before: Run | None) -> Sequence[RunCause]:
    """Find what started a run, the most important first; `before` is the run of its kind before."""
    causes = list[RunCause]()
    slot_at = run.skipped.gap.last_at if run.skipped else run.slot_at
    if slot_at is not None:
        causes.append(RunCause(kind=CauseKind.SCHEDULE, slot_at=slot_at))
    causes += [_cause_of(item) for item in items]
    if causes:
        return causes
    if before is not None and before.status is RunStatus.FAILURE:
        return [RunCause(kind=CauseKind.RETRY, run_id=before.id)]
    if before is not None and run.kind is RunKind.BACKGROUND:
        return [RunCause(kind=CauseKind.FOLLOW_UP, run_id=before.id)]
    return [RunCause(kind=CauseKind.START)] if run.kind is RunKind.BACKGROUND else []


def describe_cause(cause: RunCause, *, zone: str) -> str:
    match cause.kind:
        case CauseKind.SCHEDULE:
            times = () if cause.slot_at is None else describe_times([cause.slot_at], zone=zone)
            return f"The schedule: {', '.join(times)}"
        case CauseKind.START:
            return "It was to begin at once"
        case CauseKind.RUN_NOW:
            return "You asked for a run now"
        case CauseKind.MESSAGE:
            return f"Your message: {cause.text}"
        case CauseKind.ANSWER:
            return f"Your answer: {cause.text}"
        case CauseKind.EVENT:
            return cause.text
        case CauseKind.JOB_RESULT:
            return f"The result of the job {cause.text}"
        case CauseKind.RETRY:
            return "Another try, after the run before it failed"
        case CauseKind.FOLLOW_UP:
            return "The run before it was not done"
        case _:
            assert_never(cause.kind)


def describe_outcome(
    run: Run,
    asked: Sequence[AskedQuestion],
    running: RunActivity | None,
    *,
    jobs: tuple[int, int] | None = None,
) -> RunOutcome:
    """Say in a word and a sentence how a run ended, or what it is doing.

    `jobs` are those that it waits for: how many are done, and how many there are.
    """
    open_purposes = [one.purpose for one in asked if one.closed_at is None]
    match run.status:
        case RunStatus.RUNNING:
            doing = "thinking" if running is None else running.doing
            return RunOutcome(OutcomeKind.RUNNING, f"It is at work: {doing}.")
        case RunStatus.QUEUED:
            return RunOutcome(OutcomeKind.WAITING, describe_wait(run, open_purposes, jobs))
        case RunStatus.SUCCESS if last := next((one for one in reversed(asked)), None):
            return RunOutcome(OutcomeKind.ASKED, f"It asked: {shorten(last.prompt)}")
        case RunStatus.SUCCESS if run.kind is RunKind.REPLY:
            return RunOutcome(OutcomeKind.DONE, "It answered.")
        case RunStatus.SUCCESS:
            return RunOutcome(
                OutcomeKind.DONE, shorten(run.result or "") or "Done; nothing to report."
            )
        case RunStatus.FAILURE:
            is_spent = Purpose.ALLOWANCE in open_purposes
            return RunOutcome(
                OutcomeKind.FAILED,
                "It failed." if run.failure is None else run.failure.sentence,
                "Answer the question about the allowance." if is_spent else _advise(run),
            )
        case RunStatus.CANCELLED:
            return RunOutcome(OutcomeKind.STOPPED, "It was stopped.")
        case RunStatus.SKIPPED:
            why = "" if run.skipped is None else f": {run.skipped.in_words}"
            return RunOutcome(OutcomeKind.SKIPPED, f"It did not run{why}.")
        case _:
            assert_never(run.status)


def describe_wait(run: Run, asked: Iterable[Purpose], jobs: tuple[int, int] | None) -> str:
    """Say what a run that was handed back waits for: for an answer, for some of its jobs, ..."""
    for purpose in asked:
        return f"It waits for {awaited_answer(purpose)}."
    if jobs is not None:
        settled, count = jobs
        return f"It waits for its jobs: {settled} of {count} done."
    if run.failure is not None:
        return f"It waits: {run.failure.sentence}"
    return "It waits for you." if run.waits_for_user else "It waits for its turn."


def find_tries(run: Run, earlier: Iterable[Run]) -> Sequence[Run]:
    """Find the failed runs for the same work before a run, oldest first.

    `earlier` begins with the newest.
    """
    tries = list[Run]()
    for other in earlier:
        if other.kind is not run.kind or other.status is RunStatus.SKIPPED:
            continue
        if other.status is not RunStatus.FAILURE:
            break
        tries.insert(0, other)
    return tries


def find_next_try(run: Run, later: Iterable[Run]) -> Run | None:
    """Find the run that tried the same work again; `later` begins with the oldest."""
    same = (one for one in later if one.kind is run.kind and one.status is not RunStatus.SKIPPED)
    return next(same, None) if run.status is RunStatus.FAILURE else None


def find_before(run: Run, earlier: Iterable[Run]) -> Run | None:
    """Find the run of the same kind before a run; `earlier` begins with the newest."""
    same = (one for one in earlier if one.kind is run.kind and one.status is not RunStatus.SKIPPED)
    return next(same, None)


def take_medians(measures: Iterable[RunMeasure]) -> RunMedians | None:
    """Take the medians of runs that ended, well or with a failure; None: there are none."""
    ended = [one for one in measures if one.run.status in (RunStatus.SUCCESS, RunStatus.FAILURE)]
    if not ended:
        return None
    return RunMedians(
        timedelta(seconds=median(one.worked.total_seconds() for one in ended)),
        int(median(one.micros for one in ended)),
        int(median(one.tokens for one in ended)),
    )


def shorten(text: str) -> str:
    """Shorten a text to one line that can be quoted."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_QUOTED_CHARS else f"{line[: MAX_QUOTED_CHARS - 1]}…"


def _advise(run: Run) -> str | None:
    return None if run.failure is None else _ADVICE[run.failure.kind]


def _cause_of(item: Item) -> RunCause:
    content = item.content
    match item.kind:
        case ItemKind.MESSAGE:
            return RunCause(
                kind=CauseKind.MESSAGE,
                text=_text(content, "text"),
                message_id=content.get("message_id"),
            )
        case ItemKind.ANSWER:
            return RunCause(
                kind=CauseKind.ANSWER,
                text=_text(content, "answer"),
                question=_text(content, "prompt"),
                question_id=content.get("question_id"),
            )
        case ItemKind.JOB_RESULT:
            return RunCause(
                kind=CauseKind.JOB_RESULT,
                text=_text(content, "title"),
                conversation_id=content.get("conversation_id"),
            )
        case ItemKind.RUN_NOW:
            return RunCause(kind=CauseKind.RUN_NOW)
        case ItemKind.EVENT:
            is_after = content.get("source") == "after"
            text = "The work that it comes after has ended" if is_after else "An event"
            return RunCause(kind=CauseKind.EVENT, text=text)
        case _:
            assert_never(item.kind)


def _text(content: Mapping[str, Any], name: str) -> str:
    return shorten(str(content.get(name, "")))
