"""The effects of answers to questions, by purpose; the first answer wins."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from backburner.core import schedule, tool_policy
from backburner.core.conversation import CONTEXT_MARK, Conversation, EndedAs, Status
from backburner.core.errors import Conflict
from backburner.core.ids import QuestionId
from backburner.core.question import (
    NO,
    REPEAT,
    SKIP,
    YES,
    Purpose,
    Question,
    accept_answer,
    answer_note,
    default_note,
    withdrawal_note,
)
from backburner.core.run import ItemKind, NewItem, RunKind, SkipReason
from backburner.core.schedule import Interval
from backburner.core.transitions.shared_changes import (
    account_for_slots,
    advance_schedule,
    close_question,
    end_work,
)
from backburner.core.transitions.step import (
    FollowerEvent,
    NewMessage,
    Report,
    Step,
    Stops,
    system_message,
)

#: Answers when the work cannot continue.
TRY_AGAIN, STOP = "try again", "stop"
#: Of what a question about a failure binds to: the names of the connections that failed.
FAILED_CONNECTIONS = "connections"
#: Answers when an allowance is used up.
RAISE_ALLOWANCE, WAIT_UNTIL_TOMORROW = "raise", "wait until tomorrow"
#: Answers when it is unknown whether a tool call happened.
HAPPENED, LEAVE = "it happened", "leave it"


def answer(
    conversation: Conversation,
    question_id: QuestionId,
    text: str,
    *,
    now: datetime,
    kept: str | None = None,
) -> Step:
    """Answer an open question and apply its effects. `kept`: all that may be kept of the answer."""
    question = _find(conversation, question_id)
    accepted = accept_answer(question, text) if kept is None else kept
    note = answer_note(question.prompt, accepted)
    return _apply(conversation, question, accepted, note, now=now, own=True)


def _apply(
    conversation: Conversation,
    question: Question,
    accepted: str,
    note: str,
    *,
    now: datetime,
    own: bool = False,
) -> Step:
    if question.purpose is Purpose.APPROVAL and tool_policy.GRANTS_TO_TASK in question.binds_to:
        # The caller gives the grants to the task; there is nothing to tell the test run itself.
        step = _continue_work(conversation, question, now=now)
    elif question.purpose is Purpose.APPROVAL:
        step = _resume_with_answer(conversation, question, accepted, now=now)
        step = replace(step, grants=tool_policy.grants_given(question, accepted, now=now))
    elif question.purpose is Purpose.INPUT:
        # The words of the server are not for the agent, nor is the answer.
        asked = replace(question, prompt=f"{_name_call(question)} asked the user.", outside=False)
        step = _resume_with_answer(conversation, asked, accepted, now=now)
        step = replace(step, grants=tool_policy.grants_given(question, YES, now=now))
    elif question.purpose is Purpose.IN_DOUBT and accepted == REPEAT:
        step = _resume_with_answer(conversation, question, accepted, now=now)
        step = replace(step, grants=tool_policy.grants_given(question, YES, now=now))
    else:
        step = _EFFECTS[question.purpose](conversation, question, accepted, now=now)
    messages = (*record(question, note, own=own), *step.messages)
    return replace(step, answered=((question.id, accepted),), messages=messages)


def _name_call(question: Question) -> str:
    (call,) = question.binds_to["calls"]
    return f"{call['server']}/{call['tool']}"


def record(question: Question, note: str, *, own: bool = False) -> tuple[NewMessage, ...]:
    """Keep the end of a question in the transcript; a proposal becomes the work itself."""
    if question.purpose is Purpose.PROPOSAL:
        return ()
    # The agent wrote the question, perhaps after it read outside text.
    message = replace(system_message(note, own=own), outside=question.outside)
    return (replace(message, closes=question.id),)


def expire(conversation: Conversation, question_id: QuestionId, *, now: datetime) -> Step:
    """Answer an expired question with its default."""
    question = _find(conversation, question_id)
    if question.expires_at is None or question.default is None or question.expires_at > now:
        raise Conflict("This question has not expired.")
    accepted = accept_answer(question, question.default)
    note = default_note(question.prompt, accepted)
    step = _apply(conversation, question, accepted, note, now=now)
    # The agent is not told that the user has answered.
    items = (replace(item, content={**item.content, "expired": True}) for item in step.inbox)
    return replace(step, inbox=tuple(items))


def withdraw(conversation: Conversation, question_id: QuestionId, *, now: datetime) -> Step:
    """Withdraw a question that has no point any more, and go on with the work."""
    question = _find(conversation, question_id)
    step = _continue_work(conversation, question, now=now)
    note = withdrawal_note(question.prompt)
    return replace(step, withdrawn=(question.id,), messages=record(question, note))


def _find(conversation: Conversation, question_id: QuestionId) -> Question:
    for question in conversation.questions:
        if question.id == question_id:
            return question
    raise Conflict(
        "This question has already been answered or withdrawn.", hint="There is nothing to do."
    )


def _resume_with_answer(
    conversation: Conversation, question: Question, accepted: str, *, now: datetime
) -> Step:
    """Start a run of the kind that asked, with the answer in the inbox."""
    works = conversation.schedule is not None and conversation.pause_reason is None
    item = NewItem(
        kind=ItemKind.ANSWER,
        run_kind=question.run_kind,
        at_once=question.run_kind is RunKind.BACKGROUND and not works,
        content={
            "question_id": question.id,
            "purpose": question.purpose.value,
            "prompt": question.prompt,
            "answer": accepted,
            "binds_to": dict(question.binds_to),
            "outside": question.outside,
        },
    )
    step = _continue_work(conversation, question, now=now)
    resumed = replace(step.conversation, again_count=0, again_since=None)
    return replace(step, conversation=resumed, inbox=(item,))


def _continue_work(conversation: Conversation, question: Question, *, now: datetime) -> Step:
    """Close a question; if it was the last one, compute when the work continues."""
    closed = close_question(conversation, question)
    if closed.status is not Status.BACKGROUND:
        return Step(conversation=closed)
    resumed, skipped = account_for_slots(closed, SkipReason.WAITING, now=now)
    if question.run_kind is RunKind.BACKGROUND:
        return Step(conversation=replace(resumed, next_run_at=now), skipped=skipped)
    if resumed.schedule is not None and (resumed.next_run_at is None or resumed.next_run_at <= now):
        resumed = replace(resumed, next_run_at=schedule.first_run_at(resumed.schedule, now=now))
    return Step(conversation=resumed, skipped=skipped)


def _decide_failure(
    conversation: Conversation, question: Question, accepted: str, *, now: datetime
) -> Step:
    if accepted == TRY_AGAIN:
        return _resume_with_answer(replace(conversation, failures=0), question, accepted, now=now)
    if accepted == SKIP and conversation.is_recurring:
        closed = close_question(replace(conversation, failures=0), question)
        moved, skipped = advance_schedule(closed, SkipReason.WAITING, now=now)
        if moved.pause_reason is not None:
            moved = replace(moved, next_run_at=None)
        return Step(conversation=moved, skipped=skipped)
    if accepted == SKIP and FAILED_CONNECTIONS in question.binds_to:
        return _resume_with_answer(replace(conversation, failures=0), question, accepted, now=now)
    return _stop(conversation, question, now=now)


def _decide_reconnection(
    conversation: Conversation, question: Question, accepted: str, *, now: datetime
) -> Step:
    # The run that waits was handed back: the caller resumes it.
    if accepted != STOP:
        return _continue_work(conversation, question, now=now)
    if question.run_kind is RunKind.REPLY:
        return Step(conversation=close_question(conversation, question), stops=Stops.REPLIES)
    return _stop(conversation, question, now=now)


def _decide_proposal(
    conversation: Conversation, question: Question, accepted: str, *, now: datetime
) -> Step:
    closed = close_question(replace(conversation, pause_reason=None), question)
    if accepted == NO:
        dismissed = end_work(closed, EndedAs.DISMISSED, now=now)
        return Step(
            conversation=replace(dismissed, status=Status.ARCHIVED, questions=()),
            withdrawn=tuple(other.id for other in closed.questions),
            stops=Stops.EVERYTHING,
            signal=FollowerEvent.GONE,
        )
    # Who approves it makes it their own words.
    marks = closed.state.outside - {CONTEXT_MARK}
    closed = replace(closed, state=replace(closed.state, outside=marks))
    if closed.session is None:
        closed = replace(closed, outside_read=False)
    approved = conversation.schedule
    if isinstance(approved, Interval):
        approved = replace(approved, anchor=now)
    started = replace(closed, schedule=approved, set_up_by=None)
    if approved is not None:
        started = replace(started, next_run_at=schedule.first_run_at(approved, now=now))
    return Step(
        conversation=started, messages=(system_message("Approved. The work starts.", own=True),)
    )


def _decide_change(
    conversation: Conversation, question: Question, accepted: str, *, now: datetime
) -> Step:
    # The work that changes may be another conversation: the caller changes it.
    del accepted
    return _continue_work(conversation, question, now=now)


def _decide_allowance(
    conversation: Conversation, question: Question, accepted: str, *, now: datetime
) -> Step:
    # The allowance itself is not part of the conversation: the caller changes it.
    if accepted == STOP:
        return _stop(conversation, question, now=now)
    return _continue_work(conversation, question, now=now)


def _stop(conversation: Conversation, question: Question, *, now: datetime) -> Step:
    """End the work; other questions stay open."""
    closed = close_question(conversation, question)
    if closed.schedule is None:
        return Step(conversation=closed)
    return Step(
        conversation=end_work(closed, EndedAs.CANCELLED, now=now),
        stops=Stops.WORK,
        report=Report("It was stopped.", failed=True, cancelled=True),
        signal=FollowerEvent.ENDED,
    )


_EFFECTS: dict[Purpose, Callable[..., Step]] = {
    Purpose.QUESTION: _resume_with_answer,
    Purpose.IN_DOUBT: _resume_with_answer,
    Purpose.FAILURE: _decide_failure,
    Purpose.RECONNECT: _decide_reconnection,
    Purpose.PROPOSAL: _decide_proposal,
    Purpose.CHANGE: _decide_change,
    Purpose.ALLOWANCE: _decide_allowance,
}
