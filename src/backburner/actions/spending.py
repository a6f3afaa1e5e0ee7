"""Allowances: which apply, the question asked when one is used up, and what its answer does.

Jobs and child tasks count toward the allowance of their root conversation.
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

from backburner.actions.deps import Deps
from backburner.core import allowance, transitions
from backburner.core.allowance import Allowance, AllowanceScope, Amount
from backburner.core.conversation import Conversation
from backburner.core.errors import NotFound
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
    """Go up to the conversation whose allowance counts."""
    top = conversation
    # One whose parent is gone counts for itself.
    with suppress(NotFound):
        while top.parent_id is not None:
            top = tx.conversations.load(top.user_id, top.parent_id)
    return top.id


def is_asked(tx: Tx, user: UserId, asked: Question) -> bool:
    """See whether the same is being asked already; from here on nobody else can ask it."""
    tx.users.lock(user)
    return asked.binds_to["about"] in tx.questions.open_allowances(user)


def question(
    over: Allowance, turn: Turn, root: ConversationId, *, now: datetime, zone: str
) -> Question:
    """Ask what is to be done about an allowance that is used up."""
    options = (
        (RAISE_ALLOWANCE, WAIT_UNTIL_TOMORROW, STOP)
        if over.scope is AllowanceScope.DAY
        else (RAISE_ALLOWANCE, STOP)
    )
    begins, ends = allowance.local_day(now, zone=zone)
    about = _about(over, turn, root, begins)
    return Question(
        id=derive_question_id("allowance", about, turn.run_id, turn.epoch),
        purpose=Purpose.ALLOWANCE,
        type=QuestionType.CHOICE,
        prompt=f"What may be spent on {_NAMES[over.scope]} has been spent: {_in_words(over)}."
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
            "until": ends.isoformat(),
        },
        asked_at=now,
        remind_at=now + FIRST_REMINDER,
    )


def answered(tx: Tx, conversation: Conversation, asked: Question, said: str) -> None:
    """Change the allowance as the answer says, and let everything go on that stood still for it.

    Who does not raise what one conversation may spend stops all that it handed out as well.
    """
    user, bound = conversation.user_id, asked.binds_to
    over = Allowance(AllowanceScope(bound["scope"]), bound["micros"], bound["tokens"])
    root = ConversationId(bound["root"])
    if said == RAISE_ALLOWANCE:
        as_much_again = Amount(over.micros or 0, over.tokens or 0)
        tx.spending.set_allowance(user, allowance.raise_by(over, as_much_again), root)
    if said != STOP:
        at = datetime.fromisoformat(bound["until"]) if said == WAIT_UNTIL_TOMORROW else tx.now
        tx.runs.resume_waiting(user, conversation.id, at=at)
        free(tx, user, at=at)
    elif over.scope is AllowanceScope.CONVERSATION:
        _stop_all_under(tx, user, root)
    elif over.scope is AllowanceScope.DAY:
        free(tx, user, at=datetime.fromisoformat(bound["until"]))


def free(tx: Tx, user: UserId, *, at: datetime) -> None:
    """Let all go on from then that stands still for an allowance; what is still over asks again."""
    for parked in tx.conversations.paused_for_allowance(user):
        tx.conversations.save(
            transitions.resume_after_allowance(tx.conversations.lock(user, parked), now=at)
        )
        tx.runs.resume_waiting(user, parked, at=at)


def _stop_all_under(tx: Tx, user: UserId, root: ConversationId) -> None:
    for parked in tx.conversations.paused_for_allowance(user):
        found = tx.conversations.lock(user, parked)
        if found.id != root and find_root(tx, found) == root:
            tx.conversations.save(transitions.cancel(found, now=tx.now, by_parent=True))


def known(deps: Deps, said: Sequence[Allowance]) -> Sequence[Allowance]:
    """Take what was said about this user and conversation, else what is so for everybody."""
    known = {one.scope: one for one in deps.allowances} | {one.scope: one for one in said}
    return list(known.values())


def _about(over: Allowance, turn: Turn, root: ConversationId, day: datetime) -> str:
    """Name what a question is about: with the limit, which may be raised and used up again."""
    about = {
        AllowanceScope.RUN: turn.run_id,
        AllowanceScope.CONVERSATION: root,
        AllowanceScope.USER: turn.user_id,
        AllowanceScope.DAY: day.isoformat(),
    }
    return f"{over.scope.value} {about[over.scope]} {over.micros or 0} {over.tokens or 0}"


def _in_words(over: Allowance) -> str:
    money = [] if over.micros is None else [f"${over.micros / 1e6:,.2f}"]
    tokens = [] if over.tokens is None else [f"{over.tokens:,} tokens"]
    return " or ".join([*money, *tokens])
