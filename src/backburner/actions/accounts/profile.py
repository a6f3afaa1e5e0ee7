"""One's own account: zone, the switches for background work, what may be spent, what was."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from backburner.actions import discovery, spending
from backburner.actions.deps import Deps
from backburner.core import allowance
from backburner.core.allowance import Allowance, AllowanceScope, AllowanceState, Amount
from backburner.core.errors import BadRequest
from backburner.core.ids import ConversationId, UserId
from backburner.core.schedule.cron import find_zone
from backburner.ports import Tx, UserProfile

#: Days that are looked back on.
MAX_STATEMENT_DAYS = 30
_NOWHERE = ConversationId("")
_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class AccountSettings:
    me: UserProfile
    allowances: Sequence[Allowance]


@dataclass(frozen=True, slots=True)
class SpendStatement:
    zone: str
    total: Amount
    today: Amount
    #: Of a conversation with all it handed out, where one was asked for.
    conversation: Amount | None
    standings: Sequence[AllowanceState]
    #: The last days on which something was spent, each by its beginning.
    days: Sequence[tuple[datetime, Amount]]


async def load_settings(deps: Deps, user: UserId) -> AccountSettings:
    return await deps.store.transact(lambda tx: _settings(deps, tx, user))


async def change_settings(
    deps: Deps,
    user: UserId,
    *,
    zone: str | None = None,
    paused: bool | None = None,
    discovers: bool | None = None,
    limits: Mapping[AllowanceScope, str | None] | None = None,
) -> AccountSettings:
    """Change what was said; what was not said stays. A limit of None is that of everybody."""
    if zone is not None:
        find_zone(zone)
    said = {
        scope: None if text is None else allowance.parse_limit(text, scope)
        for scope, text in (limits or {}).items()
    }
    if AllowanceScope.CONVERSATION in said:
        raise BadRequest(
            "The allowance of a conversation is set where it asks for more.",
            hint="Set that of a run, of a day, or of everything together.",
        )

    def work(tx: Tx) -> AccountSettings:
        tx.users.lock(user)
        if zone is not None:
            tx.users.set_zone(user, zone)
        if paused is not None:
            tx.users.pause_everything(user, paused=paused)
        if discovers is not None:
            discovery.switch_in(deps, tx, user, on=discovers)
        for scope, limit in said.items():
            if limit is None:
                tx.spending.reset_allowance(user, scope)
            else:
                tx.spending.set_allowance(user, limit, _NOWHERE)
        return _settings(deps, tx, user)

    return await deps.store.transact(work)


async def spend_statement(
    deps: Deps, user: UserId, conversation_id: ConversationId | None = None
) -> SpendStatement:
    """Say what was spent, and how it stands with what may be."""

    def work(tx: Tx) -> SpendStatement:
        zone = tx.users.load(user).zone
        root = (
            _NOWHERE
            if conversation_id is None
            else spending.find_root(tx, tx.conversations.load(user, conversation_id))
        )
        days = {f"day:{day.isoformat()}": day for day in _last_days(tx.now, zone)}
        of_root, today = f"conversation:{root}", next(iter(days))
        account = tx.spending.state(user, root, ["user", of_root, *days])
        sums = {
            AllowanceScope.USER: account.spent.get("user", Amount()),
            AllowanceScope.DAY: account.spent.get(today, Amount()),
            AllowanceScope.CONVERSATION: account.spent.get(of_root, Amount()),
        }
        return SpendStatement(
            zone=zone,
            total=sums[AllowanceScope.USER],
            today=sums[AllowanceScope.DAY],
            conversation=None if conversation_id is None else sums[AllowanceScope.CONVERSATION],
            standings=[
                AllowanceState(one, sums.get(one.scope, Amount()))
                for one in spending.known(deps, account.allowances)
            ],
            days=[(day, account.spent[key]) for key, day in days.items() if key in account.spent],
        )

    return await deps.store.transact(work)


def _settings(deps: Deps, tx: Tx, user: UserId) -> AccountSettings:
    said = tx.spending.state(user, _NOWHERE, []).allowances
    return AccountSettings(tx.browse.profile(user), spending.known(deps, said))


def _last_days(now: datetime, zone: str) -> list[datetime]:
    """List the beginnings of the last days, today's first."""
    begins = [allowance.local_day(now, zone=zone)[0]]
    while len(begins) < MAX_STATEMENT_DAYS:
        begins.append(allowance.local_day(begins[-1] - _TICK, zone=zone)[0])
    return begins
