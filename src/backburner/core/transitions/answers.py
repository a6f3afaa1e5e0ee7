"""What answers to questions do, each purpose in its own way; the first answer wins."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from backburner.core import schedule, tool_policy
from backburner.core.conversation import Conversation, EndedAs, Status
from backburner.core.errors import Conflict
from backburner.core.ids import QuestionId
from backburner.core.question import NO, YES, Purpose, Question, accept_answer
from backburner.core.run import ItemKind, NewItem, RunKind, SkipReason
from backburner.core.schedule import Interval
from backburner.core.transitions.moves import (
    account_for_slots,
    advance_schedule,
    close_question,
    end_work,
)
from backburner.core.transitions.step import FollowerEvent, Report, Step, Stops, system_message

#: How one can answer when the work cannot go on as it is.
TRY_AGAIN, SKIP, STOP = "try again", "skip", "stop"
#: And when what may be spent is spent.
RAISE_ALLOWANCE, WAIT_UNTIL_TOMORROW = "raise", "wait until tomorrow"
#: And when nobody knows whether a call was made.
HAPPENED, REPEAT, LEAVE = "it happened", "do it again", "leave it"


def answer(
    conversation: Conversation, question_id: QuestionId, text: str, *, now: datetime
) -> Step:
    """Answer an open question and set in motion what follows from it."""
    question = _find(conversation, question_id)
    said = accept_answer(question, text)
    if question.purpose is Purpose.APPROVAL:
        step = _tell_agent(conversation, question, said, now=now)
        step = replace(step, grants=tool_policy.grants_given(question, said, now=now))
    elif question.purpose is Purpose.IN_DOUBT and said == REPEAT:
        step = _tell_agent(conversation, question, said, now=now)
        step = replace(step, grants=tool_policy.grants_given(question, YES, now=now))
    else:
        step = _EFFECTS[question.purpose](conversation, question, said, now=now)
    return replace(step, answered=((question.id, said),))


def expire(conversation: Conversation, question_id: QuestionId, *, now: datetime) -> Step:
    """Let a question that nobody answered in time count as answered with its default."""
    question = _find(conversation, question_id)
    if question.expires_at is None or question.default is None or question.expires_at > now:
        raise Conflict("This question has not expired.")
    step = answer(conversation, question_id, question.default, now=now)
    note = system_message(f"Nobody answered in time, so it counts as: {question.default}")
    return replace(step, messages=(note, *step.messages))


def _find(conversation: Conversation, question_id: QuestionId) -> Question:
    for question in conversation.questions:
        if question.id == question_id:
            return question
    raise Conflict("This question has been answered or withdrawn.", hint="There is nothing to do.")


def _tell_agent(
    conversation: Conversation, question: Question, said: str, *, now: datetime
) -> Step:
    """Start a run of the kind that asked, which is told the answer."""
    works = conversation.schedule is not None and conversation.pause_reason is None
    item = NewItem(
        kind=ItemKind.ANSWER,
        run_kind=question.run_kind,
        at_once=question.run_kind is RunKind.BACKGROUND and not works,
        content={
            "question_id": question.id,
            "purpose": question.purpose.value,
            "prompt": question.prompt,
            "answer": said,
            "binds_to": dict(question.binds_to),
        },
    )
    step = _go_on(conversation, question, now=now)
    heard = replace(step.conversation, again_count=0, again_since=None)
    return replace(step, conversation=heard, inbox=(item,))


def _go_on(conversation: Conversation, question: Question, *, now: datetime) -> Step:
    """Close a question; if it was the last, find the time at which the work goes on."""
    closed = close_question(conversation, question)
    if closed.status is not Status.BACKGROUND:
        return Step(conversation=closed)
    going, skipped = account_for_slots(closed, SkipReason.WAITING, now=now)
    if question.run_kind is RunKind.BACKGROUND:
        return Step(conversation=replace(going, next_run_at=now), skipped=skipped)
    if going.schedule is not None and (going.next_run_at is None or going.next_run_at <= now):
        going = replace(going, next_run_at=schedule.first_run_at(going.schedule, now=now))
    return Step(conversation=going, skipped=skipped)


def _decide_failure(
    conversation: Conversation, question: Question, said: str, *, now: datetime
) -> Step:
    if said == TRY_AGAIN:
        return _tell_agent(replace(conversation, failures=0), question, said, now=now)
    if said == SKIP and conversation.is_recurring:
        closed = close_question(replace(conversation, failures=0), question)
        moved, skipped = advance_schedule(closed, SkipReason.WAITING, now=now)
        if moved.pause_reason is not None:
            moved = replace(moved, next_run_at=None)
        return Step(conversation=moved, skipped=skipped)
    return _stop(conversation, question, said, now=now)


def _decide_proposal(
    conversation: Conversation, question: Question, said: str, *, now: datetime
) -> Step:
    closed = close_question(replace(conversation, pause_reason=None), question)
    if said == NO:
        dismissed = end_work(closed, EndedAs.DISMISSED, now=now)
        return Step(
            conversation=replace(dismissed, status=Status.ARCHIVED, questions=()),
            withdrawn=tuple(other.id for other in closed.questions),
            stops=Stops.EVERYTHING,
            signal=FollowerEvent.GONE,
        )
    approved = conversation.schedule
    if isinstance(approved, Interval):
        approved = replace(approved, anchor=now)
    begun = replace(closed, schedule=approved)
    if approved is not None:
        begun = replace(begun, next_run_at=schedule.first_run_at(approved, now=now))
    return Step(conversation=begun, messages=(system_message("Approved. The work begins."),))


def _decide_allowance(
    conversation: Conversation, question: Question, said: str, *, now: datetime
) -> Step:
    """Raising and waiting change the allowance, which is not the conversation's own affair."""
    if said == STOP:
        return _stop(conversation, question, said, now=now)
    return _go_on(conversation, question, now=now)


def _stop(conversation: Conversation, question: Question, said: str, *, now: datetime) -> Step:
    """End the work, as the answer asks; other questions stay open."""
    del said
    closed = close_question(conversation, question)
    if closed.schedule is None:
        return Step(conversation=closed)
    return Step(
        conversation=end_work(closed, EndedAs.CANCELLED, now=now),
        stops=Stops.WORK,
        report=Report("It was stopped.", failed=True),
        signal=FollowerEvent.ENDED,
    )


_EFFECTS: dict[Purpose, Callable[..., Step]] = {
    Purpose.QUESTION: _tell_agent,
    Purpose.IN_DOUBT: _tell_agent,
    Purpose.FAILURE: _decide_failure,
    Purpose.RECONNECT: _decide_failure,
    Purpose.PROPOSAL: _decide_proposal,
    Purpose.ALLOWANCE: _decide_allowance,
}
