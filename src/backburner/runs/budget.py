"""The budget of a run: every model call is recorded, and a reservation is kept for each run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from backburner.actions.deps import Deps
from backburner.actions.spending import effective_allowances
from backburner.core import allowance
from backburner.core.allowance import Allowance, AllowanceScope, AllowanceState, Amount, Usage
from backburner.core.ids import ConversationId, RunId
from backburner.core.run import Turn
from backburner.ports import SpendingState, Tx


@dataclass(frozen=True, slots=True)
class BudgetVerdict:
    #: An allowance that is used up.
    over: Allowance | None
    #: All that is left is reserved by other runs.
    is_reserved: bool


@dataclass(frozen=True, slots=True)
class Budget:
    """The allowances that one run is paid from."""

    deps: Deps
    turn: Turn
    root: ConversationId
    #: The profile in an outage that this run is a probe of.
    probes: str | None = None

    def open(self, tx: Tx, zone: str) -> BudgetVerdict:
        """Check whether anything is left to spend, and whether other runs have reserved it."""
        (verdict,) = open_all(tx, [self], [zone])
        return verdict

    def judge(self, account: SpendingState, keys: Mapping[AllowanceScope, str]) -> BudgetVerdict:
        states = self._states(account, keys)
        over = allowance.find_exhausted(replace(state, reserved=Amount()) for state in states)
        return BudgetVerdict(over, is_reserved=allowance.find_exhausted(states) is not None)

    async def pay(self, model: str, usage: Usage) -> Allowance | None:
        """Record the cost of a model call; return the allowance that is now used up, if any."""
        tried = list[datetime]()

        def work(tx: Tx) -> Allowance | None:
            person = tx.users.lock(self.turn.user_id)
            # An earlier try may have been committed, and only its response lost.
            if not any(tx.spending.was_recorded(self.turn, at) for at in tried):
                tried.append(tx.now)
                self._spend(tx, model, usage, person.zone)
                if self.probes is not None:
                    # The outage is over when a run has ended well; meanwhile others may try.
                    tx.outages.note_answer(self.probes)
            return self.open(tx, person.zone).over

        return await self.deps.store.transact(work)

    def _spend(self, tx: Tx, model: str, usage: Usage, zone: str) -> None:
        cost = allowance.call_cost(usage, self.deps.price_of(model))
        keys = _keys(self.turn, self.root, tx.now, zone)
        tx.spending.add(self.turn, self.root, model, cost, counts_to=keys.values(), usage=usage)

    def _states(
        self, account: SpendingState, keys: Mapping[AllowanceScope, str]
    ) -> Sequence[AllowanceState]:
        return [
            AllowanceState(
                limit,
                account.spent.get(keys[limit.scope], Amount()),
                self._reserved(account.running, limit),
            )
            for limit in effective_allowances(self.deps, account)
        ]

    def _reserved(
        self, running: Sequence[tuple[RunId, ConversationId]], limit: Allowance
    ) -> Amount:
        """Sum the reservations of other runs under the same allowance."""
        total = Amount()
        for run, root in running:
            shares = limit.scope in (AllowanceScope.USER, AllowanceScope.DAY) or (
                limit.scope is AllowanceScope.CONVERSATION and root == self.root
            )
            if shares and run != self.turn.run_id:
                total += self.deps.limits.reservation
        return total


def open_all(tx: Tx, budgets: Sequence[Budget], zones: Sequence[str]) -> Sequence[BudgetVerdict]:
    """Open the budgets of runs of different users."""
    keys = [
        _keys(budget.turn, budget.root, tx.now, zone)
        for budget, zone in zip(budgets, zones, strict=True)
    ]
    accounts = tx.spending.states(
        {
            budget.turn.user_id: (budget.root, list(of_run.values()))
            for budget, of_run in zip(budgets, keys, strict=True)
        }
    )
    return [
        budget.judge(accounts[budget.turn.user_id], of_run)
        for budget, of_run in zip(budgets, keys, strict=True)
    ]


def _keys(turn: Turn, root: ConversationId, now: datetime, zone: str) -> dict[AllowanceScope, str]:
    begins, _ = allowance.local_day(now, zone=zone)
    return {
        AllowanceScope.RUN: f"run:{turn.run_id}",
        AllowanceScope.CONVERSATION: f"conversation:{root}",
        AllowanceScope.USER: "user",
        AllowanceScope.DAY: f"day:{begins.isoformat()}",
    }
