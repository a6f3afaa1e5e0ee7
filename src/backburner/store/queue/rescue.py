"""Frees turns whose lease has run out, and settles the runs that had them.

A rescued background run is a failure whose time stays, so that it is claimed again. A reply is
given again; at its third crash it is given up, and says so.
"""

from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection, Text, and_, bindparam, select, update

from backburner.core import transitions
from backburner.core.conversation import Conversation
from backburner.core.retry import MAX_CRASHES
from backburner.core.run import Failure, FailureKind, Run, RunEnding, RunKind, RunStatus, Turn
from backburner.core.tool_journal import calls_in_doubt, doubt_question, doubt_question_id
from backburner.core.transitions import Step
from backburner.ports import RescuedTurn
from backburner.store import steps
from backburner.store.queue import turns
from backburner.store.records import conversations as rows_of_conversations
from backburner.store.records import inbox, questions, runs, tool_calls
from backburner.store.tables import conversations

_owner = bindparam("owner", type_=Text())
_this = and_(conversations.c.user_id == _owner, conversations.c.id == bindparam("which"))
_expired = (
    select(conversations)
    .where(conversations.c.turn_run.is_not(None), conversations.c.turn_until < bindparam("tick"))
    .order_by(conversations.c.turn_until)
    .limit(1)
    .with_for_update(skip_locked=True, key_share=True)
)
_fence_off = (
    update(conversations)
    .where(_this, conversations.c.epoch == bindparam("held"))
    .values(turn_run=None, turn_until=None, epoch=conversations.c.epoch + 1)
)


def rescue(connection: Connection, *, now: datetime, tick: int) -> RescuedTurn | None:
    """Free one turn whose lease has run out, and settle the run that had it."""
    row = connection.execute(_expired, {"tick": tick}).one_or_none()
    if row is None:
        return None
    found = rows_of_conversations.read(connection, row)
    run = runs.load(connection, found.user_id, row.turn_run)
    turn = Turn(found.user_id, found.id, row.turn_run, row.epoch, run.kind)
    connection.execute(_fence_off, turns.turn_key(turn))
    tool_calls.give_up(connection, turn, now=now)
    step = _ask_in_doubt(connection, _settle_crash(connection, found, run, now=now), run, now=now)
    steps.save(connection, step, cause=f"{run.id}:{run.epoch}:crash", now=now)
    return RescuedTurn(turn, step)


def _settle_crash(
    connection: Connection, conversation: Conversation, run: Run, *, now: datetime
) -> Step:
    user, crash = conversation.user_id, Failure(FailureKind.CRASHED, "Its process went away.")
    if turns.is_cancelled(connection, user, run.id):
        runs.end(connection, user, run.id, RunEnding(status=RunStatus.CANCELLED), now=now)
        return Step(conversation=conversation)
    inbox.take_back(connection, user, conversation.id, run.id)
    ending = RunEnding(status=RunStatus.FAILURE, failure=crash)
    runs.end(connection, user, run.id, ending, now=now)
    if run.kind is RunKind.BACKGROUND:
        return transitions.crash(conversation, run, now=now)
    if not _crashed_too_often(connection, conversation):
        return Step(conversation=conversation)
    items = inbox.waiting(connection, user, conversation.id, RunKind.REPLY)
    served = [item.id for item in items]
    inbox.serve(connection, user, served, run_id=run.id, now=now)
    return transitions.fail_reply(conversation, crash)


def _ask_in_doubt(connection: Connection, step: Step, run: Run, *, now: datetime) -> Step:
    """Ask the owner about every call that the run may or may not have made, each once."""
    user = step.conversation.user_id
    for call in calls_in_doubt(tool_calls.of_run(connection, user, run.id)):
        # Of one that was handed back and went on.
        if questions.was_asked(connection, user, doubt_question_id(call)):
            continue
        asked = transitions.ask_owner(step.conversation, doubt_question(call, run.kind, now=now))
        step = replace(
            step,
            conversation=asked.conversation,
            asked=(*step.asked, *asked.asked),
            messages=(*step.messages, *asked.messages),
            notices=(*step.notices, *asked.notices),
        )
    return step


def _crashed_too_often(connection: Connection, conversation: Conversation) -> bool:
    """See whether the last few replies all crashed: this one is not given a further time."""
    recent = runs.history(connection, conversation.user_id, conversation.id, limit=4 * MAX_CRASHES)
    replies = [run for run in recent if run.kind is RunKind.REPLY][:MAX_CRASHES]
    crashes = [run for run in replies if run.failure and run.failure.kind is FailureKind.CRASHED]
    return len(crashes) == MAX_CRASHES
