"""The table of docs/reference/state-machine.md, independent of the code in core/transitions.

Each cell is the status that follows, `CONFLICT` if the event is refused, or a function if it
depends on more than the status.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from backburner.core.conversation import Conversation, EndedAs, Kind, OnRepeatedFailure, Status
from backburner.core.question import Purpose, Question

CONFLICT: Final = "conflict"
ACTIVE, BACKGROUND = Status.ACTIVE, Status.BACKGROUND
WAITING, ARCHIVED = Status.WAITING_INPUT, Status.ARCHIVED
DAY = timedelta(days=1)


@dataclass(frozen=True)
class EventCase:
    """The parameters of an event."""

    now: datetime
    #: The run was claimed under the present revision of the schedule.
    current: bool = True
    #: A completion that ends recurring work.
    final: bool = False
    #: A failure that only the user can resolve.
    asks: bool = False
    #: A failure that is not retried.
    permanent: bool = False
    #: The question that is answered, and the answer; or the one that is asked again.
    question: Question | None = None
    answer: str = ""


Cell = Status | str | Callable[[Conversation, EventCase], Status | str]


def same(conversation: Conversation, _: EventCase) -> Status:
    return conversation.status


def is_proposal(conversation: Conversation) -> bool:
    return any(q.purpose is Purpose.PROPOSAL for q in conversation.questions)


def has_run_enough(conversation: Conversation) -> bool:
    return conversation.max_runs is not None and conversation.run_count + 1 >= conversation.max_runs


def after_the_last_question(conversation: Conversation) -> Status:
    works = conversation.schedule is not None and conversation.pause_reason is None
    return BACKGROUND if works else ACTIVE


def answered(conversation: Conversation, event: EventCase) -> Status:
    question = event.question
    assert question is not None
    if question.purpose is Purpose.PROPOSAL and event.answer == "no":
        return ARCHIVED
    if len(conversation.questions) > 1:
        return WAITING
    if question.purpose is Purpose.PROPOSAL:
        return ACTIVE if conversation.schedule is None else BACKGROUND
    ends = event.answer == "stop" or (event.answer == "skip" and not conversation.is_recurring)
    if ends and question.purpose in (Purpose.FAILURE, Purpose.RECONNECT, Purpose.ALLOWANCE):
        return ACTIVE
    return after_the_last_question(conversation)


def continued(conversation: Conversation, event: EventCase) -> Status:
    if not event.current:
        return BACKGROUND
    if has_run_enough(conversation):
        return ACTIVE
    since = conversation.again_since or event.now
    too_often, too_long = conversation.again_count >= 20, event.now - since > DAY
    gives_in = not conversation.is_recurring and (too_often or too_long)
    return WAITING if gives_in else BACKGROUND


def completed(conversation: Conversation, event: EventCase) -> Status:
    ends = event.final or not conversation.is_recurring or has_run_enough(conversation)
    return ACTIVE if ends and event.current else BACKGROUND


def failed(conversation: Conversation, event: EventCase) -> Status:
    if not event.current:
        return BACKGROUND
    if event.asks:
        return WAITING
    limit = 2 if conversation.on_repeated_failure is OnRepeatedFailure.PAUSE else 3
    at_limit = event.permanent or conversation.failures + 1 >= limit
    if has_run_enough(conversation):
        return ACTIVE
    if not at_limit:
        return BACKGROUND
    stays = conversation.is_recurring and limit == 3
    return BACKGROUND if stays else ACTIVE


def crashed(conversation: Conversation, event: EventCase) -> Status:
    return ACTIVE if event.current and conversation.crashes >= 2 else BACKGROUND


def paused_while_waiting(conversation: Conversation, _: EventCase) -> Status | str:
    can = conversation.schedule is not None and conversation.pause_reason is None
    return ACTIVE if can and not is_proposal(conversation) else CONFLICT


def resumed(conversation: Conversation, _: EventCase) -> Status | str:
    return BACKGROUND if conversation.pause_reason is not None else CONFLICT


def cancelled(conversation: Conversation, _: EventCase) -> Status | str:
    return CONFLICT if conversation.schedule is None else ACTIVE


def cancelled_while_waiting(conversation: Conversation, _: EventCase) -> Status:
    return ARCHIVED if is_proposal(conversation) else ACTIVE


def reopened(_: Conversation, event: EventCase) -> Status:
    return ACTIVE if event.question is None else WAITING


def run_now_while_active(conversation: Conversation, _: EventCase) -> Status | str:
    has_work = conversation.schedule is not None or conversation.state.context
    return ACTIVE if has_work else CONFLICT


def event_while_waiting(conversation: Conversation, _: EventCase) -> Status | str:
    return CONFLICT if conversation.schedule is None else WAITING


def followed_up(conversation: Conversation, _: EventCase) -> Status | str:
    completed_job = (conversation.kind, conversation.ended_as) == (Kind.JOB, EndedAs.COMPLETED)
    return BACKGROUND if completed_job else CONFLICT


TABLE: dict[str, dict[Status, Cell]] = {
    "message": {ACTIVE: same, BACKGROUND: same, WAITING: WAITING, ARCHIVED: CONFLICT},
    "set_schedule": {
        ACTIVE: BACKGROUND,
        BACKGROUND: BACKGROUND,
        WAITING: WAITING,
        ARCHIVED: CONFLICT,
    },
    "slot": {ACTIVE: same, BACKGROUND: same, WAITING: same, ARCHIVED: same},
    "event": {
        ACTIVE: CONFLICT,
        BACKGROUND: same,
        WAITING: event_while_waiting,
        ARCHIVED: CONFLICT,
    },
    "run_now": {
        ACTIVE: run_now_while_active,
        BACKGROUND: same,
        WAITING: CONFLICT,
        ARCHIVED: CONFLICT,
    },
    "needs_input": {ACTIVE: WAITING, BACKGROUND: WAITING, WAITING: WAITING, ARCHIVED: same},
    "continue": {ACTIVE: same, BACKGROUND: continued, WAITING: same, ARCHIVED: same},
    "complete": {ACTIVE: same, BACKGROUND: completed, WAITING: same, ARCHIVED: same},
    "fail": {ACTIVE: same, BACKGROUND: failed, WAITING: same, ARCHIVED: same},
    "crash": {ACTIVE: same, BACKGROUND: crashed, WAITING: same, ARCHIVED: same},
    "answer": {
        ACTIVE: CONFLICT,
        BACKGROUND: CONFLICT,
        WAITING: answered,
        ARCHIVED: CONFLICT,
    },
    "pause": {
        ACTIVE: CONFLICT,
        BACKGROUND: ACTIVE,
        WAITING: paused_while_waiting,
        ARCHIVED: CONFLICT,
    },
    "resume": {
        ACTIVE: resumed,
        BACKGROUND: CONFLICT,
        WAITING: CONFLICT,
        ARCHIVED: CONFLICT,
    },
    "cancel": {
        ACTIVE: cancelled,
        BACKGROUND: ACTIVE,
        WAITING: cancelled_while_waiting,
        ARCHIVED: CONFLICT,
    },
    "follow_up": {
        ACTIVE: followed_up,
        BACKGROUND: CONFLICT,
        WAITING: CONFLICT,
        ARCHIVED: CONFLICT,
    },
    "archive": {ACTIVE: ARCHIVED, BACKGROUND: ARCHIVED, WAITING: ARCHIVED, ARCHIVED: CONFLICT},
    "reopen": {ACTIVE: CONFLICT, BACKGROUND: CONFLICT, WAITING: CONFLICT, ARCHIVED: reopened},
    "reply": {ACTIVE: same, BACKGROUND: same, WAITING: same, ARCHIVED: same},
}


def expected(name: str, conversation: Conversation, event: EventCase) -> Status | str:
    cell = TABLE[name][conversation.status]
    return cell(conversation, event) if callable(cell) else cell
