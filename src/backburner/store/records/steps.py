"""Stores a step of the core: all changes that follow from one event."""

from collections.abc import Callable

from backburner.core.conversation import Kind
from backburner.core.ids import RunId
from backburner.core.run import RunKind
from backburner.core.transitions import Step, Stops
from backburner.core.work import jobs
from backburner.store.context import Context
from backburner.store.records.grants import Grants
from backburner.store.records.inbox import Inbox
from backburner.store.records.messages import Messages
from backburner.store.records.notices import Notices
from backburner.store.records.questions import Questions
from backburner.store.records.runs import Runs
from backburner.store.records.waits import Waits

_STOPPED = {Stops.WORK: RunKind.BACKGROUND, Stops.REPLIES: RunKind.REPLY, Stops.EVERYTHING: None}


def write(
    tx: Context,
    step: Step,
    *,
    cause: str | None,
    run_id: RunId | None = None,
    first: Callable[[], None] = lambda: None,
) -> None:
    """Store everything of a step; `first` writes the row of its conversation, unless that is done.

    With `run_id` it is the step of that run, which held the turn and is not running any more.
    """
    conversation = step.conversation
    user, conversation_id = conversation.user_id, conversation.id
    first()
    _write_stops(tx, step, has_ended=run_id is not None)
    for question_id, answer in step.answered:
        Questions(tx).close(user, question_id, answer)
    for question_id in step.withdrawn:
        Questions(tx).close(user, question_id, None)
    Questions(tx).put(user, conversation_id, step.asked)
    Messages(tx).append(user, conversation_id, step.messages, run_id=run_id)
    if step.ends_all_grants:
        Grants(tx).end_all(user, conversation_id)
    elif step.stops in (Stops.WORK, Stops.EVERYTHING):
        Grants(tx).end_unused(user, conversation_id)
    elif step.ends_grants:
        Grants(tx).end_unused(user, conversation_id, step.ends_grants)
    Grants(tx).give(user, conversation_id, step.grants)
    Inbox(tx).put(user, conversation_id, step.inbox)
    Runs(tx).skip(user, conversation_id, step.skipped, revision=conversation.schedule_revision)
    Notices(tx).put(conversation, step.notices, cause=cause, run_id=run_id)
    if any(item.is_from_user for item in step.inbox):
        Waits(tx).resume(user, conversation_id)
    if conversation.kind is Kind.JOB and jobs.is_settled(conversation):
        Waits(tx).settle(user, conversation_id)


def _write_stops(tx: Context, step: Step, *, has_ended: bool) -> None:
    user, conversation_id = step.conversation.user_id, step.conversation.id
    if step.stops is not Stops.NOTHING:
        kind = _STOPPED[step.stops]
        if not has_ended:
            # A conversation has one running run at most.
            Runs(tx).request_stop(user, conversation_id, kind=kind)
        Runs(tx).drop_queued(user, conversation_id, kind=kind)
        Inbox(tx).settle(user, conversation_id, kind=kind)
    elif step.drops_queued:
        Runs(tx).drop_queued(user, conversation_id, kind=RunKind.BACKGROUND)
