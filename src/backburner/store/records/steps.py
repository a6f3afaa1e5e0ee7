"""Writes a step of the core down: everything that follows from one event, in one transaction."""

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

_STOPPED = {
    Stops.WORK: RunKind.BACKGROUND,
    Stops.REPLIES: RunKind.REPLY,
    Stops.EVERYTHING: None,
}


def write(tx: Context, step: Step, *, cause: str | None, run_id: RunId | None = None) -> None:
    """Write everything of a step but the row of its conversation."""
    conversation = step.conversation
    user, which = conversation.user_id, conversation.id
    if step.stops is not Stops.NOTHING:
        kind = _STOPPED[step.stops]
        Runs(tx).request_stop(user, which, kind=kind)
        Runs(tx).drop_queued(user, which, kind=kind)
        Inbox(tx).settle(user, which, kind=kind)
    elif step.drops_queued:
        Runs(tx).drop_queued(user, which, kind=RunKind.BACKGROUND)
    for question, said in step.answered:
        Questions(tx).close(user, question, said)
    for question in step.withdrawn:
        Questions(tx).close(user, question, None)
    Questions(tx).put(user, which, step.asked)
    Messages(tx).append(user, which, step.messages, run_id=run_id)
    Grants(tx).give(user, which, step.grants)
    Inbox(tx).put(user, which, step.inbox)
    Runs(tx).skip(user, which, step.skipped, revision=conversation.schedule_revision)
    if any(item.is_from_user for item in step.inbox):
        Waits(tx).resume(user, which)
    if conversation.kind is Kind.JOB and jobs.is_settled(conversation):
        Waits(tx).settle(user, which)
    Notices(tx).put(conversation, step.notices, cause=cause, run_id=run_id)
