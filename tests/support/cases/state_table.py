"""What may happen to a conversation in which status, written down a second time.

The first time is the code in core/transitions. Each cell says which status follows, `CONFLICT`
where the event is refused, or a function where the answer depends on more than the status.
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
class Happening:
    """An event, with what its effect depends on."""

    now: datetime
    #: A run that was claimed under the schedule as it is now.
    current: bool = True
    #: A completion that ends recurring work.
    final: bool = False
    #: A failure for which only the user can say how to go on.
    asks: bool = False
    #: A failure that trying again cannot mend.
    permanent: bool = False
    #: The question that an answer is for, and what is said.
    question: Question | None = None
    said: str = ""


Cell = Status | str | Callable[[Conversation, Happening], Status | str]


def same(conversation: Conversation, _: Happening) -> Status:
    return conversation.status


def is_proposal(conversation: Conversation) -> bool:
    return any(q.purpose is Purpose.PROPOSAL for q in conversation.questions)


def has_run_enough(conversation: Conversation) -> bool:
    return conversation.max_runs is not None and conversation.run_count + 1 >= conversation.max_runs


def after_the_last_question(conversation: Conversation) -> Status:
    works = conversation.schedule is not None and conversation.pause_reason is None
    return BACKGROUND if works else ACTIVE


def answered(conversation: Conversation, happening: Happening) -> Status:
    question = happening.question
    assert question is not None
    if question.purpose is Purpose.PROPOSAL and happening.said == "no":
        return ARCHIVED
    if len(conversation.questions) > 1:
        return WAITING
    if question.purpose is Purpose.PROPOSAL:
        return ACTIVE if conversation.schedule is None else BACKGROUND
    ends = happening.said == "stop" or (happening.said == "skip" and not conversation.is_recurring)
    if ends and question.purpose in (Purpose.FAILURE, Purpose.RECONNECT, Purpose.ALLOWANCE):
        return ACTIVE
    return after_the_last_question(conversation)


def continued(conversation: Conversation, happening: Happening) -> Status:
    if not happening.current:
        return BACKGROUND
    if has_run_enough(conversation):
        return ACTIVE
    since = conversation.again_since or happening.now
    too_often, too_long = conversation.again_count >= 20, happening.now - since > DAY
    gives_in = not conversation.is_recurring and (too_often or too_long)
    return WAITING if gives_in else BACKGROUND


def completed(conversation: Conversation, happening: Happening) -> Status:
    ends = happening.final or not conversation.is_recurring or has_run_enough(conversation)
    return ACTIVE if ends and happening.current else BACKGROUND


def failed(conversation: Conversation, happening: Happening) -> Status:
    if not happening.current:
        return BACKGROUND
    if happening.asks:
        return WAITING
    limit = 2 if conversation.on_repeated_failure is OnRepeatedFailure.PAUSE else 3
    at_limit = happening.permanent or conversation.failures + 1 >= limit
    if has_run_enough(conversation):
        return ACTIVE
    if not at_limit:
        return BACKGROUND
    stays = conversation.is_recurring and limit == 3
    return BACKGROUND if stays else ACTIVE


def crashed(conversation: Conversation, happening: Happening) -> Status:
    return ACTIVE if happening.current and conversation.crashes >= 2 else BACKGROUND


def paused_while_waiting(conversation: Conversation, _: Happening) -> Status | str:
    can = conversation.schedule is not None and conversation.pause_reason is None
    return ACTIVE if can and not is_proposal(conversation) else CONFLICT


def resumed(conversation: Conversation, _: Happening) -> Status | str:
    return BACKGROUND if conversation.pause_reason is not None else CONFLICT


def cancelled(conversation: Conversation, _: Happening) -> Status | str:
    return CONFLICT if conversation.schedule is None else ACTIVE


def run_now_while_active(conversation: Conversation, _: Happening) -> Status | str:
    has_work = conversation.schedule is not None or conversation.state.context
    return ACTIVE if has_work else CONFLICT


def event_while_waiting(conversation: Conversation, _: Happening) -> Status | str:
    return CONFLICT if conversation.schedule is None else WAITING


def followed_up(conversation: Conversation, _: Happening) -> Status | str:
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
    "cancel": {ACTIVE: cancelled, BACKGROUND: ACTIVE, WAITING: ACTIVE, ARCHIVED: CONFLICT},
    "follow_up": {
        ACTIVE: followed_up,
        BACKGROUND: CONFLICT,
        WAITING: CONFLICT,
        ARCHIVED: CONFLICT,
    },
    "archive": {ACTIVE: ARCHIVED, BACKGROUND: ARCHIVED, WAITING: ARCHIVED, ARCHIVED: CONFLICT},
    "reopen": {ACTIVE: CONFLICT, BACKGROUND: CONFLICT, WAITING: CONFLICT, ARCHIVED: ACTIVE},
    "reply": {ACTIVE: same, BACKGROUND: same, WAITING: same, ARCHIVED: same},
}


def expected(event: str, conversation: Conversation, happening: Happening) -> Status | str:
    cell = TABLE[event][conversation.status]
    return cell(conversation, happening) if callable(cell) else cell
