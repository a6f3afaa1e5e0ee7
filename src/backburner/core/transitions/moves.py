"""Moves that several transitions are made of."""

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
    """Clear the work; what asks something goes on waiting for the answer."""
    return replace(
        conversation,
        status=_at_rest(conversation.status),
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
    """Keep the schedule without any time being due; an open question stays open."""
    return replace(
        conversation,
        status=_at_rest(conversation.status),
        next_run_at=None,
        pause_reason=reason,
    )


def restart_schedule(conversation: Conversation, *, now: datetime) -> Conversation:
    """Let the schedule count from now, with its troubles forgotten."""
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
    """Go on to the next slot, and account for those that passed meanwhile."""
    accounted, skipped = account_for_slots(conversation, reason, now=now)
    timed = accounted.schedule
    # Where the clock was set back, slots that are settled do not come again.
    since = max(now, accounted.settled_until or now)
    following = None if timed is None else schedule.next_run_at(timed, after=since)
    return replace(accounted, next_run_at=following), skipped


def account_for_slots(
    conversation: Conversation, reason: SkipReason, *, now: datetime
) -> tuple[Conversation, tuple[SkippedSlots, ...]]:
    """Note the slots up to now that no run stood for. One-time work keeps its time instead."""
    timed, due_at = conversation.schedule, conversation.next_run_at
    if timed is None or due_at is None or not schedule.is_recurring(timed):
        return conversation, ()
    since = conversation.settled_until or due_at - schedule.TICK
    passed = schedule.gap(timed, after=since, until=now)
    if passed is None:
        return conversation, ()
    return replace(conversation, settled_until=passed.last_at), (SkippedSlots(passed, reason),)


def open_question(conversation: Conversation, question: Question) -> Step:
    """Park the conversation behind one more open question."""
    told = notice.of_question(conversation, question)
    waiting = replace(
        conversation,
        status=Status.WAITING_INPUT,
        questions=(*conversation.questions, question),
    )
    return Step(conversation=waiting, asked=(question,), notices=(told,))


def close_question(conversation: Conversation, question: Question) -> Conversation:
    """Take an open question away; with the last one, waiting is over."""
    left = tuple(other for other in conversation.questions if other.id != question.id)
    status = conversation.status
    if not left and status is Status.WAITING_INPUT:
        works = conversation.schedule is not None and conversation.pause_reason is None
        status = Status.BACKGROUND if works else Status.ACTIVE
    return replace(conversation, questions=left, status=status)


def report_stop(conversation: Conversation, text: str) -> Step:
    """Write down that the work stands still, and tell the user, whatever they wanted to hear."""
    return Step(
        conversation=conversation,
        messages=(system_message(text),),
        notices=(notice.of_stop(text),),
    )


def _at_rest(status: Status) -> Status:
    return Status.ACTIVE if status is Status.BACKGROUND else status
