"""Allowances: effective limits, the question about a used-up allowance, and its answer.

Jobs and child tasks count toward the allowance of their root conversation.
"""

from collections.abc import Sequence
from datetime import datetime

from backburner.actions import lookup
from backburner.actions.deps import Deps
from backburner.actions.origin import NO_CONVERSATION
from backburner.actions.waits import inputs
from backburner.core import allowance, transitions
from backburner.core.allowance import Allowance, AllowanceScope, Amount
from backburner.core.conversation import Conversation
from backburner.core.errors import NotAllowed
from backburner.core.ids import ConversationId, UserId, derive_question_id
from backburner.core.question import FIRST_REMINDER, Purpose, Question, QuestionType
from backburner.core.run import Turn
from backburner.core.transitions import RAISE_ALLOWANCE, STOP, TRY_AGAIN, WAIT_UNTIL_TOMORROW
from backburner.ports import SpendingState, Tx

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
    over: Allowance,
    turn: Turn,
    root: ConversationId,
    *,
    now: datetime,
    zone: str,
    may_raise: bool = True,
) -> Question:
    """Build the question to ask about an allowance that is used up.

    Unless the user `may_raise` it, it is the most that an operator allows.
    """
    first = RAISE_ALLOWANCE if may_raise else TRY_AGAIN
    options = (
        (first, WAIT_UNTIL_TOMORROW, STOP) if over.scope is AllowanceScope.DAY else (first, STOP)
    )
    note = "" if may_raise else " Only an operator can raise it."
    day_start, day_end = allowance.local_day(now, zone=zone)
    about = _question_key(over, turn, root, day_start)
    return Question(
        id=derive_question_id("allowance", about, turn.run_id, turn.epoch),
        purpose=Purpose.ALLOWANCE,
        type=QuestionType.CHOICE,
        prompt=f"What may be spent on {_NAMES[over.scope]} has been spent: "
        f"{allowance.format_limit(over)}.{note} Shall I go on?",
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


def apply_answer(
    deps: Deps, tx: Tx, conversation: Conversation, question: Question, answer: str
) -> None:
    """Change the allowance as answered, and resume the work that was paused for it.

    Stopping at the allowance of a conversation also cancels its jobs and child tasks.
    """
    user, bound = conversation.user_id, question.binds_to
    over = Allowance(AllowanceScope(bound["scope"]), bound["micros"], bound["tokens"])
    root = ConversationId(bound["root"])
    if answer == RAISE_ALLOWANCE and not _was_changed(deps, tx, user, root, over):
        tx.spending.set_allowance(user, _double(over), root)
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


def effective_allowances(deps: Deps, account: SpendingState) -> Sequence[Allowance]:
    """Combine the allowances of a user and conversation with the defaults of other scopes.

    None is above the most that an operator allows.
    """
    ceilings = {ceiling.scope: ceiling for ceiling in account.ceilings}
    limits = {limit.scope: limit for limit in (*deps.allowances, *account.allowances)}
    unlimited = {scope: Allowance(scope) for scope in ceilings}
    return [
        allowance.cap(limit, ceilings.get(limit.scope))
        for limit in {**unlimited, **limits}.values()
    ]


def may_raise(tx: Tx, user: UserId, over: Allowance) -> bool:
    """Check whether the user could raise an allowance that is used up."""
    ceilings = tx.spending.state(user, NO_CONVERSATION, []).ceilings
    ceiling = next((one for one in ceilings if one.scope is over.scope), None)
    return allowance.cap(_double(over), ceiling) != over


def check_ceiling(account: SpendingState, limit: Allowance) -> None:
    """Refuse a limit above the most that an operator allows."""
    ceiling = next((one for one in account.ceilings if one.scope is limit.scope), None)
    if ceiling is not None and allowance.cap(limit, ceiling) != limit:
        raise NotAllowed(
            f"Your operator allows {allowance.format_limit(ceiling)} for {_NAMES[limit.scope]}.",
            hint="Set no more than that, or ask an operator.",
        )


def _question_key(over: Allowance, turn: Turn, root: ConversationId, day: datetime) -> str:
    """Identify an allowance with its limit, since a raised limit can be used up again."""
    about = {
        AllowanceScope.RUN: turn.run_id,
        AllowanceScope.CONVERSATION: root,
        AllowanceScope.USER: turn.user_id,
        AllowanceScope.DAY: day.isoformat(),
    }
    return f"{over.scope.value} {about[over.scope]} {over.micros or 0} {over.tokens or 0}"


def _double(over: Allowance) -> Allowance:
    return allowance.raise_by(over, Amount(over.micros or 0, over.tokens or 0))


def _was_changed(deps: Deps, tx: Tx, user: UserId, root: ConversationId, over: Allowance) -> bool:
    """See whether an allowance is another one than when it was asked about."""
    account = tx.spending.state(user, root, [])
    limits = {limit.scope: limit for limit in effective_allowances(deps, account)}
    return limits.get(over.scope, over) != over
