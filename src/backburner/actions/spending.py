"""Allowances: effective limits, the question about a used-up allowance, and its answer.

Jobs and child tasks count toward the allowance of their root conversation.
"""

from collections.abc import Sequence
from datetime import datetime

from backburner.actions import lookup
from backburner.actions.deps import Deps
from backburner.actions.waits import inputs
from backburner.core import allowance, transitions
from backburner.core.allowance import Allowance, AllowanceScope, Amount
from backburner.core.conversation import Conversation
from backburner.core.ids import ConversationId, UserId, derive_question_id
from backburner.core.question import FIRST_REMINDER, Purpose, Question, QuestionType
from backburner.core.run import Turn
from backburner.core.transitions import RAISE_ALLOWANCE, STOP, WAIT_UNTIL_TOMORROW
from backburner.ports import Tx

_NAMES = {
    AllowanceScope.RUN: "one run",
    AllowanceScope.CONVERSATION: "this conversation",
    AllowanceScope.USER: "everything together",
    AllowanceScope.DAY: "one day",
}


def find_root(tx: Tx, conversation: Conversation) -> ConversationId:
    """Find the conversation whose allowance counts."""
    *_, root = lookup.ancestry(tx, conversation)
    return root.id


def is_already_asked(tx: Tx, user: UserId, question: Question) -> bool:
    """Check for an open question about the same allowance; the lock keeps others from asking it."""
    tx.users.lock(user)
    return question.binds_to["about"] in tx.questions.open_allowances(user)


def question(
    over: Allowance, turn: Turn, root: ConversationId, *, now: datetime, zone: str
) -> Question:
    """Build the question to ask about an allowance that is used up."""
    options = (
        (RAISE_ALLOWANCE, WAIT_UNTIL_TOMORROW, STOP)
        if over.scope is AllowanceScope.DAY
        else (RAISE_ALLOWANCE, STOP)
    )
    day_start, day_end = allowance.local_day(now, zone=zone)
    about = _question_key(over, turn, root, day_start)
    return Question(
        id=derive_question_id("allowance", about, turn.run_id, turn.epoch),
        purpose=Purpose.ALLOWANCE,
        type=QuestionType.CHOICE,
        prompt=f"What may be spent on {_NAMES[over.scope]} has been spent: {_format_limit(over)}."
        " Shall I go on?",
        options=options,
        run_id=turn.run_id,
        run_kind=turn.kind,
        binds_to={
            "about": about,
            "scope": over.scope.value,
            "root": root,
            "micros": over.micros,
            "tokens": over.tokens,
            "until": day_end.isoformat(),
        },
        asked_at=now,
        remind_at=now + FIRST_REMINDER,
    )


def apply_answer(tx: Tx, conversation: Conversation, question: Question, answer: str) -> None:
    """Change the allowance as answered, and resume the work that was paused for it.

    Stopping at the allowance of a conversation also cancels its jobs and child tasks.
    """
    user, bound = conversation.user_id, question.binds_to
    over = Allowance(AllowanceScope(bound["scope"]), bound["micros"], bound["tokens"])
    root = ConversationId(bound["root"])
    if answer == RAISE_ALLOWANCE:
        same_again = Amount(over.micros or 0, over.tokens or 0)
        tx.spending.set_allowance(user, allowance.raise_by(over, same_again), root)
    if answer != STOP:
        at = datetime.fromisoformat(bound["until"]) if answer == WAIT_UNTIL_TOMORROW else tx.now
        tx.runs.resume_waiting(user, conversation.id, at=at)
        resume_paused(tx, user, at=at)
    elif over.scope is AllowanceScope.CONVERSATION:
        _cancel_under(tx, user, root)
    elif over.scope is AllowanceScope.DAY:
        resume_paused(tx, user, at=datetime.fromisoformat(bound["until"]))


def resume_paused(tx: Tx, user: UserId, *, at: datetime) -> None:
    """Resume all work paused for an allowance; work that is still over its limit asks again."""
    for conversation_id in tx.conversations.paused_for_allowance(user):
        conversation = tx.conversations.lock(user, conversation_id)
        tx.conversations.save(transitions.resume_after_allowance(conversation, now=at))
        tx.runs.resume_waiting(user, conversation_id, at=at)


def _cancel_under(tx: Tx, user: UserId, root: ConversationId) -> None:
    for conversation_id in tx.conversations.paused_for_allowance(user):
        conversation = tx.conversations.lock(user, conversation_id)
        if conversation.id != root and find_root(tx, conversation) == root:
            tx.conversations.save(transitions.cancel(conversation, now=tx.now, by_parent=True))
            inputs.forget_unused(tx, user, conversation_id)


def effective_allowances(deps: Deps, own: Sequence[Allowance]) -> Sequence[Allowance]:
    """Combine the allowances of a user and conversation with the defaults of other scopes."""
    return list({limit.scope: limit for limit in (*deps.allowances, *own)}.values())


def _question_key(over: Allowance, turn: Turn, root: ConversationId, day: datetime) -> str:
    """Identify an allowance with its limit, since a raised limit can be used up again."""
    about = {
        AllowanceScope.RUN: turn.run_id,
        AllowanceScope.CONVERSATION: root,
        AllowanceScope.USER: turn.user_id,
        AllowanceScope.DAY: day.isoformat(),
    }
    return f"{over.scope.value} {about[over.scope]} {over.micros or 0} {over.tokens or 0}"


def _format_limit(over: Allowance) -> str:
    money = [] if over.micros is None else [f"${over.micros / 1e6:,.2f}"]
    tokens = [] if over.tokens is None else [f"{over.tokens:,} tokens"]
    return " or ".join([*money, *tokens])
