"""Writes a step of the core down: everything that follows from one event, in one transaction."""

from datetime import datetime

from sqlalchemy import Connection

from backburner.core.conversation import Kind
from backburner.core.ids import RunId
from backburner.core.run import RunKind
from backburner.core.transitions import Step, Stops
from backburner.core.work import jobs
from backburner.store.records import (
    conversations,
    grants,
    inbox,
    messages,
    notices,
    questions,
    runs,
    waits,
)

_STOPPED = {
    Stops.WORK: RunKind.BACKGROUND,
    Stops.REPLIES: RunKind.REPLY,
    Stops.EVERYTHING: None,
}


def save(connection: Connection, step: Step, *, cause: str | None, now: datetime) -> None:
    """Save what follows for a conversation that is there.

    `cause` names the event, for one that must never be told of twice.
    """
    conversations.save(connection, step.conversation, now=now)
    write_down(connection, step, cause=cause, run_id=None, now=now)


def add(connection: Connection, step: Step, *, cause: str | None, now: datetime) -> None:
    """Save a conversation that has just come to be."""
    conversations.add(connection, step.conversation)
    write_down(connection, step, cause=cause, run_id=None, now=now)


def write_down(
    connection: Connection, step: Step, *, cause: str | None, run_id: RunId | None, now: datetime
) -> None:
    """Write everything of a step but the row of its conversation."""
    conversation = step.conversation
    user, which = conversation.user_id, conversation.id
    if step.stops is not Stops.NOTHING:
        kind = _STOPPED[step.stops]
        runs.ask_to_stop(connection, user, which, kind=kind, now=now)
        runs.drop_queued(connection, user, which, kind=kind, now=now)
        inbox.settle(connection, user, which, kind=kind, now=now)
    elif step.drops_queued:
        runs.drop_queued(connection, user, which, kind=RunKind.BACKGROUND, now=now)
    for question, said in step.answered:
        questions.close(connection, user, question, said, now=now)
    for question in step.withdrawn:
        questions.close(connection, user, question, None, now=now)
    questions.put(connection, user, which, step.asked)
    messages.append(connection, user, which, step.messages, run_id=run_id, now=now)
    grants.give(connection, user, which, step.grants, now=now)
    inbox.put(connection, user, which, step.inbox, now=now)
    runs.skip(
        connection,
        user,
        which,
        step.skipped,
        revision=conversation.schedule_revision,
        now=now,
    )
    if any(item.is_from_user for item in step.inbox):
        waits.let_go_on(connection, user, which, now=now)
    if conversation.kind is Kind.JOB and jobs.is_settled(conversation):
        waits.settle(connection, user, which, now=now)
    notices.put(connection, conversation, step.notices, cause=cause, run_id=run_id, now=now)
