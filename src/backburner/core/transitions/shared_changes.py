"""Changes of a conversation that several transitions share."""

from dataclasses import replace
from datetime import datetime

from backburner.core import notice, schedule
from backburner.core.conversation import Conversation, EndedAs, PauseReason, Status
from backburner.core.errors import Conflict
from backburner.core.question import Purpose, Question
from backburner.core.run import SkippedSlots, SkipReason
from backburner.core.transitions.step import Step, system_message


def refuse_archived(conversation: Conversation) -> None:
    if conversation.status is Status.ARCHIVED:
        raise Conflict("This conversation is archived.", hint="Reopen it first.")


def is_proposal(conversation: Conversation) -> bool:
    return any(question.purpose is Purpose.PROPOSAL for question in conversation.questions)


def end_work(conversation: Conversation, ended_as: EndedAs, *, now: datetime) -> Conversation:
    """Clear the schedule; open questions stay open."""
    return replace(
        conversation,
        status=_without_work(conversation.status),
        schedule=None,
        next_run_at=None,
        settled_until=None,
        pause_reason=None,
        ended_as=ended_as,
        ended_at=now,
        resuming=False,
        again_count=0,
        again_since=None,
    )


def pause_work(conversation: Conversation, reason: PauseReason) -> Conversation:
    """Keep the schedule without a next time; open questions stay open."""
    return replace(
        conversation,
        status=_without_work(conversation.status),
        next_run_at=None,
        pause_reason=reason,
    )


def restart_schedule(conversation: Conversation, *, now: datetime) -> Conversation:
    """Compute the next time from now, lift a pause, and reset failures and crashes."""
    timed = conversation.schedule
    return replace(
        conversation,
        next_run_at=None if timed is None else schedule.first_run_at(timed, now=now),
        settled_until=None,
        pause_reason=None,
        failures=0,
        crashes=0,
    )


def advance_schedule(
    conversation: Conversation, reason: SkipReason, *, now: datetime
) -> tuple[Conversation, tuple[SkippedSlots, ...]]:
    """Move on to the next slot, and account for the slots that have passed."""
    accounted, skipped = account_for_slots(conversation, reason, now=now)
    timed = accounted.schedule
    # If the clock was set back, settled slots must not become due again.
    since = max(now, accounted.settled_until or now)
    next_run_at = None if timed is None else schedule.next_run_at(timed, after=since)
    return replace(accounted, next_run_at=next_run_at), skipped


def account_for_slots(
    conversation: Conversation, reason: SkipReason, *, now: datetime
) -> tuple[Conversation, tuple[SkippedSlots, ...]]:
    """Record the slots up to now that had no run. One-time work keeps its time instead."""
    timed, due_at = conversation.schedule, conversation.next_run_at
    if timed is None or due_at is None or not schedule.is_recurring(timed):
        return conversation, ()
    since = conversation.settled_until or due_at - schedule.TICK
    passed = schedule.gap(timed, after=since, until=now)
    if passed is None:
        return conversation, ()
    return replace(conversation, settled_until=passed.last_at), (SkippedSlots(passed, reason),)


def open_question(
    conversation: Conversation, question: Question, *, message: str | None = None
) -> Step:
    """Ask the user one more question and wait for the answer; `message` goes with the notice."""
    question = replace(question, outside=question.outside or conversation.outside_read)
    waiting = replace(
        conversation,
        status=Status.WAITING_INPUT,
        questions=(*conversation.questions, question),
    )
    notices = (notice.of_question(question, message),)
    return Step(conversation=waiting, asked=(question,), notices=notices)


def close_question(conversation: Conversation, question: Question) -> Conversation:
    """Remove an open question; after the last one, the conversation stops waiting."""
    left = tuple(other for other in conversation.questions if other.id != question.id)
    status = conversation.status
    if not left and status is Status.WAITING_INPUT:
        works = conversation.schedule is not None and conversation.pause_reason is None
        status = Status.BACKGROUND if works else Status.ACTIVE
    return replace(conversation, questions=left, status=status)


def report_stop(conversation: Conversation, text: str) -> Step:
    """Record that the work has stopped, and notify the user regardless of `notify`."""
    return Step(
        conversation=conversation,
        messages=(system_message(text),),
        notices=(notice.of_stop(text),),
    )


def _without_work(status: Status) -> Status:
    return Status.ACTIVE if status is Status.BACKGROUND else status
