"""What runs may spend: counted call by call, a slice set aside for each, asked about at its end.

Whatever a conversation hands out to others counts to the one at the top.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from backburner.actions.deps import Deps
from backburner.core import allowance, transitions
from backburner.core.allowance import Allowance, AllowanceScope, AllowanceState, Amount, Usage
from backburner.core.conversation import Conversation
from backburner.core.errors import NotFound
from backburner.core.ids import ConversationId, RunId, UserId, derive_question_id
from backburner.core.question import FIRST_REMINDER, Purpose, Question, QuestionType
from backburner.core.run import Turn
from backburner.core.transitions import RAISE, STOP, TOMORROW
from backburner.ports import Tx

_NAMES = {
    AllowanceScope.RUN: "one run",
    AllowanceScope.CONVERSATION: "this conversation",
    AllowanceScope.USER: "everything together",
    AllowanceScope.DAY: "one day",
}


@dataclass(frozen=True, slots=True)
class BudgetVerdict:
    #: The allowance under which all is spent.
    over: Allowance | None
    #: The rest is what other runs may be about to spend.
    waits: bool


@dataclass(frozen=True, slots=True)
class Budget:
    """What a run pays from."""

    deps: Deps
    turn: Turn
    root: ConversationId

    def open(self, tx: Tx, zone: str) -> BudgetVerdict:
        """See whether there is anything to spend, apart from what other runs are about to."""
        standings = self._standings(tx, zone)
        over = allowance.used_up(replace(one, reserved=Amount()) for one in standings)
        return BudgetVerdict(over, waits=allowance.used_up(standings) is not None)

    async def pay(self, model: str, usage: Usage) -> Allowance | None:
        """Write down what a call cost; if now all is spent, say under which allowance."""
        tried = list[datetime]()

        def work(tx: Tx) -> Allowance | None:
            person = tx.users.lock(self.turn.user_id)
            # An earlier try may have gone through, and only its answer been lost.
            if not any(tx.spending.was_recorded(self.turn, at) for at in tried):
                tried.append(tx.now)
                self._spend(tx, model, usage, person.zone)
            return self.open(tx, person.zone).over

        return await self.deps.store.transact(work)

    def _spend(self, tx: Tx, model: str, usage: Usage, zone: str) -> None:
        cost = allowance.cost(model, usage, self.deps.prices)
        keys = _keys(self.turn, self.root, tx.now, zone)
        tx.spending.add(self.turn, self.root, model, cost, counts_to=keys.values())

    def _standings(self, tx: Tx, zone: str) -> Sequence[AllowanceState]:
        keys = _keys(self.turn, self.root, tx.now, zone)
        account = tx.spending.state(self.turn.user_id, self.root, keys.values())
        return [
            AllowanceState(
                known,
                account.spent.get(keys[known.scope], Amount()),
                self._set_aside(account.underway, known),
            )
            for known in known(self.deps, account.allowances)
        ]

    def _set_aside(
        self, underway: Sequence[tuple[RunId, ConversationId]], known: Allowance
    ) -> Amount:
        """Add up what others may be about to spend of the same allowance: a slice for each run."""
        total = Amount()
        for run, root in underway:
            shares = known.scope in (AllowanceScope.USER, AllowanceScope.DAY) or (
                known.scope is AllowanceScope.CONVERSATION and root == self.root
            )
            if shares and run != self.turn.run_id:
                total += self.deps.limits.slice
        return total


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
    options = (RAISE, TOMORROW, STOP) if over.scope is AllowanceScope.DAY else (RAISE, STOP)
    begins, ends = allowance.day_of(now, zone=zone)
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
    if said == RAISE:
        as_much_again = Amount(over.micros or 0, over.tokens or 0)
        tx.spending.set_allowance(user, allowance.raise_by(over, as_much_again), root)
    if said != STOP:
        at = datetime.fromisoformat(bound["until"]) if said == TOMORROW else tx.now
        tx.runs.resume_waiting(user, conversation.id, at=at)
        free(tx, user, at=at)
    elif over.scope is AllowanceScope.CONVERSATION:
        _stop_all_under(tx, user, root)
    elif over.scope is AllowanceScope.DAY:
        free(tx, user, at=datetime.fromisoformat(bound["until"]))


def free(tx: Tx, user: UserId, *, at: datetime) -> None:
    """Let all go on from then that stands still for an allowance; what is still over asks again."""
    for parked in tx.conversations.parked(user):
        tx.conversations.save(transitions.unpark(tx.conversations.lock(user, parked), now=at))
        tx.runs.resume_waiting(user, parked, at=at)


def _stop_all_under(tx: Tx, user: UserId, root: ConversationId) -> None:
    for parked in tx.conversations.parked(user):
        found = tx.conversations.lock(user, parked)
        if found.id != root and find_root(tx, found) == root:
            tx.conversations.save(transitions.cancel(found, now=tx.now, by_parent=True))


def known(deps: Deps, said: Sequence[Allowance]) -> Sequence[Allowance]:
    """Take what was said about this user and conversation, else what is so for everybody."""
    known = {one.scope: one for one in deps.allowances} | {one.scope: one for one in said}
    return list(known.values())


def _keys(turn: Turn, root: ConversationId, now: datetime, zone: str) -> dict[AllowanceScope, str]:
    begins, _ = allowance.day_of(now, zone=zone)
    return {
        AllowanceScope.RUN: f"run:{turn.run_id}",
        AllowanceScope.CONVERSATION: f"conversation:{root}",
        AllowanceScope.USER: "user",
        AllowanceScope.DAY: f"day:{begins.isoformat()}",
    }


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
