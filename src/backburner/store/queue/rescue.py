"""Frees turns whose lease has run out, and settles the runs that had them.

A rescued background run is a failure whose time stays, so that it is claimed again. A reply is
given again; at its third crash it is given up, and says so.
"""

from dataclasses import replace

from sqlalchemy import Text, and_, bindparam, select, update

from backburner.core import transitions
from backburner.core.conversation import Conversation
from backburner.core.retry import MAX_CRASHES
from backburner.core.run import Failure, FailureKind, Run, RunEnding, RunKind, RunStatus, Turn
from backburner.core.tool_journal import calls_in_doubt, doubt_question, doubt_question_id
from backburner.core.transitions import Step
from backburner.ports import RescuedTurn
from backburner.store.context import Context
from backburner.store.queue.turns import Turns, turn_key
from backburner.store.records.conversations import Conversations
from backburner.store.records.inbox import Inbox
from backburner.store.records.questions import Questions
from backburner.store.records.runs import Runs
from backburner.store.records.tool_calls import ToolCalls
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


def rescue(tx: Context, *, tick: int) -> RescuedTurn | None:
    """Free one turn whose lease has run out, and settle the run that had it."""
    row = tx.connection.execute(_expired, {"tick": tick}).one_or_none()
    if row is None:
        return None
    found = Conversations(tx).read(row)
    run = Runs(tx).load(found.user_id, row.turn_run)
    turn = Turn(found.user_id, found.id, row.turn_run, row.epoch, run.kind)
    tx.connection.execute(_fence_off, turn_key(turn))
    ToolCalls(tx).mark_unknown(turn)
    step = _ask_in_doubt(tx, _settle_crash(tx, turn, found, run), run)
    Conversations(tx).save(step, cause=f"{run.id}:{run.epoch}:crash")
    tx.announce_end(turn)
    return RescuedTurn(turn, step)


def _settle_crash(tx: Context, turn: Turn, conversation: Conversation, run: Run) -> Step:
    user, crash = conversation.user_id, Failure(FailureKind.CRASHED, "Its process went away.")
    if Turns(tx).is_cancelled(turn):
        Runs(tx).end(user, run.id, RunEnding(status=RunStatus.CANCELLED))
        return Step(conversation=conversation)
    Inbox(tx).take_back(user, conversation.id, run.id)
    ending = RunEnding(status=RunStatus.FAILURE, failure=crash)
    Runs(tx).end(user, run.id, ending)
    if run.kind is RunKind.BACKGROUND:
        return transitions.crash(conversation, run, now=tx.now)
    if not _crashed_too_often(tx, conversation):
        return Step(conversation=conversation)
    items = Inbox(tx).waiting(user, conversation.id, RunKind.REPLY)
    served = [item.id for item in items]
    Inbox(tx).serve(user, served, run_id=run.id)
    return transitions.fail_reply(conversation, crash)


def _ask_in_doubt(tx: Context, step: Step, run: Run) -> Step:
    """Ask the owner about every call that the run may or may not have made, each once."""
    user = step.conversation.user_id
    for call in calls_in_doubt(ToolCalls(tx).of_run(user, run.id)):
        # Of one that was handed back and went on.
        if Questions(tx).exists(user, doubt_question_id(call)):
            continue
        asked = transitions.ask_owner(step.conversation, doubt_question(call, run.kind, now=tx.now))
        step = replace(
            step,
            conversation=asked.conversation,
            asked=(*step.asked, *asked.asked),
            messages=(*step.messages, *asked.messages),
            notices=(*step.notices, *asked.notices),
        )
    return step


def _crashed_too_often(tx: Context, conversation: Conversation) -> bool:
    """See whether the last few replies all crashed: this one is not given a further time."""
    recent = Runs(tx).history(conversation.user_id, conversation.id, limit=4 * MAX_CRASHES)
    replies = [run for run in recent if run.kind is RunKind.REPLY][:MAX_CRASHES]
    crashes = [run for run in replies if run.failure and run.failure.kind is FailureKind.CRASHED]
    return len(crashes) == MAX_CRASHES
