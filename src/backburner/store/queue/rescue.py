"""Rescue: ends the runs whose lease has expired, and frees their turns.

A rescued background run counts as a failure and keeps its due time, so that it is claimed again.
A reply is attempted again until `core.retry` gives it up.
"""

from dataclasses import replace

from sqlalchemy import Text, and_, bindparam, select, update

from backburner.core import transitions
from backburner.core.conversation import Conversation
from backburner.core.retry import MAX_CRASHES, gives_up_replying
from backburner.core.run import Failure, FailureKind, Run, RunEnding, RunKind, RunStatus, Turn
from backburner.core.tool_journal import ask_about, tell_about
from backburner.core.transitions import Step
from backburner.ports import RescuedTurn
from backburner.store.context import Context
from backburner.store.queue.turns import Turns, turn_key
from backburner.store.records.calls.tool_calls import ToolCalls
from backburner.store.records.conversations import Conversations
from backburner.store.records.inbox import Inbox, renew_request
from backburner.store.records.runs import Runs
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
_release = (
    update(conversations)
    .where(_this, conversations.c.epoch == bindparam("held"))
    .values(turn_run=None, turn_until=None, epoch=conversations.c.epoch + 1)
)


def rescue(tx: Context, *, tick: int) -> RescuedTurn | None:
    """Free one turn whose lease has expired, and end its run."""
    row = tx.connection.execute(_expired, {"tick": tick}).one_or_none()
    if row is None:
        return None
    conversation = Conversations(tx).read(row)
    run = Runs(tx).load(conversation.user_id, row.turn_run)
    turn = Turn(conversation.user_id, conversation.id, row.turn_run, row.epoch, run.kind)
    tx.connection.execute(_release, turn_key(turn))
    calls = ToolCalls(tx).take_in_doubt(turn)
    if Turns(tx).is_cancelled(turn):
        Runs(tx).end(conversation.user_id, run.id, RunEnding(status=RunStatus.CANCELLED))
        # An answer would start the work again that somebody has cancelled.
        step = tell_about(Step(conversation=conversation), calls)
    else:
        step = _end_crashed(tx, conversation, run)
        step = ask_about(step, calls, run.kind, now=tx.now)
    step = replace(step, conversation=renew_request(tx, step.conversation, run.kind))
    Conversations(tx).save(step, cause=f"{run.id}:{run.epoch}:crash")
    tx.announce_end(turn)
    return RescuedTurn(turn, step)


def _end_crashed(tx: Context, conversation: Conversation, run: Run) -> Step:
    user, crash = conversation.user_id, Failure(FailureKind.CRASHED, "Its process went away.")
    Inbox(tx).take_back(user, conversation.id, run.id)
    ending = RunEnding(status=RunStatus.FAILURE, failure=crash)
    Runs(tx).end(user, run.id, ending)
    if run.kind is RunKind.BACKGROUND:
        return transitions.crash(conversation, run, now=tx.now)
    recent = Runs(tx).history(user, conversation.id, limit=4 * MAX_CRASHES)
    if not gives_up_replying(recent):
        return Step(conversation=conversation)
    items = Inbox(tx).waiting(user, conversation.id, RunKind.REPLY)
    served = [item.id for item in items]
    Inbox(tx).serve(user, served, run_id=run.id)
    return transitions.fail_reply(conversation, crash)
