"""Spending of each user, and the limits that operators set."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from backburner.actions import spending
from backburner.actions.accounts.profile import last_days
from backburner.actions.browse import Page, make_page
from backburner.actions.deps import Deps
from backburner.actions.origin import NO_CONVERSATION
from backburner.core import allowance
from backburner.core.accounts import Act, User
from backburner.core.allowance import Allowance, AllowanceScope, AllowanceState, Amount
from backburner.core.errors import BadRequest
from backburner.core.ids import UserId
from backburner.ports import PageKey, Tx

#: The allowances that operators limit.
SCOPES = (AllowanceScope.DAY, AllowanceScope.USER)
#: Each user has a day of their own.
MAX_USERS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class UserSpending:
    user: User
    zone: str
    today: Amount
    last_days: Amount
    total: Amount
    #: Of a day and in total, with what was spent under them.
    allowances: Sequence[AllowanceState]
    #: Set by the user, and the most that an operator allows.
    own: Sequence[Allowance]
    ceilings: Sequence[Allowance]


async def list_spending(deps: Deps, after: PageKey | None, *, limit: int) -> Page[UserSpending]:
    """List what each user has spent today, in the last 30 days and in total."""
    (last_id,) = after or ("",)
    limit = min(limit, MAX_USERS)

    def work(tx: Tx) -> Sequence[UserSpending]:
        users = tx.accounts.page(after=last_id, limit=limit + 1)
        return _read(deps, tx, users)

    rows = await deps.store.read(work)
    return make_page(rows, limit, lambda last: (last.user.id,))


async def set_ceilings(
    deps: Deps, actor: UserId, user: UserId, limits: Mapping[AllowanceScope, str | None]
) -> UserSpending:
    """Set the most that a user may allow themselves; None: whatever they like."""
    if any(scope not in SCOPES for scope in limits):
        raise BadRequest(
            "An operator limits what a user may spend in a day or in total.",
            hint="Set `day` or `user`.",
        )
    changed = {
        scope: allowance.parse_limit(text or "none", scope) for scope, text in limits.items()
    }

    def work(tx: Tx) -> UserSpending:
        tx.users.lock(user)
        for scope, ceiling in changed.items():
            if ceiling == Allowance(scope):
                tx.spending.reset_ceiling(user, scope)
            else:
                tx.spending.set_ceiling(user, ceiling)
            detail = f"{scope}: {allowance.format_limit(ceiling) or 'no limit'}"
            tx.audit.record(Act.ALLOWANCE_LIMITED, actor=actor, user=user, detail=detail)
        # Work that is still over its limit pauses again.
        spending.resume_paused(tx, user, at=tx.now)
        return _read(deps, tx, [tx.accounts.load(user)])[0]

    return await deps.store.transact(work)


def _read(deps: Deps, tx: Tx, users: Sequence[User]) -> Sequence[UserSpending]:
    """Read the spending of some users in two statements."""
    zones = tx.users.zones([user.id for user in users])
    days = {
        zone: [f"day:{day.isoformat()}" for day in last_days(tx.now, zone)]
        for zone in set(zones.values())
    }
    wanted = {user.id: (NO_CONVERSATION, ["user", *days[zones[user.id]]]) for user in users}
    accounts = tx.spending.states(wanted) if wanted else {}
    found = []
    for user in users:
        account, of_user = accounts[user.id], days[zones[user.id]]
        sums = {
            AllowanceScope.DAY: account.spent.get(of_user[0], Amount()),
            AllowanceScope.USER: account.spent.get("user", Amount()),
        }
        found.append(
            UserSpending(
                user=user,
                zone=zones[user.id],
                today=sums[AllowanceScope.DAY],
                last_days=sum((account.spent.get(day, Amount()) for day in of_user), Amount()),
                total=sums[AllowanceScope.USER],
                allowances=[
                    AllowanceState(limit, sums[limit.scope])
                    for limit in spending.effective_allowances(deps, account)
                    if limit.scope in SCOPES
                ],
                own=account.allowances,
                ceilings=account.ceilings,
            )
        )
    return found
