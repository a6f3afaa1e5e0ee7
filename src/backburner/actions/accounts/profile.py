"""A user's own account: time zone, background switches, allowances and spend."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from backburner.actions import discovery, spending
from backburner.actions.deps import Deps
from backburner.actions.discovery import LookedAt
from backburner.actions.origin import NO_CONVERSATION
from backburner.core import allowance
from backburner.core.accounts import ZoneSource
from backburner.core.allowance import Allowance, AllowanceScope, AllowanceState, Amount
from backburner.core.errors import BadRequest, BadSchedule
from backburner.core.ids import ConversationId, UserId
from backburner.core.schedule.cron import find_zone
from backburner.ports import Tx, UserProfile

MAX_STATEMENT_DAYS = 30
_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class AccountSettings:
    profile: UserProfile
    allowances: Sequence[Allowance]


@dataclass(frozen=True, slots=True)
class SpendStatement:
    zone: str
    total: Amount
    today: Amount
    #: Spend of the requested conversation, including its jobs.
    conversation: Amount | None
    allowances: Sequence[AllowanceState]
    #: The last days with spend, each by its start.
    days: Sequence[tuple[datetime, Amount]]


async def load_settings(deps: Deps, user: UserId) -> AccountSettings:
    return await deps.store.read(lambda tx: _settings(deps, tx, user))


async def change_settings(
    deps: Deps,
    user: UserId,
    *,
    zone: str | None = None,
    found_zone: tuple[str, ZoneSource] | None = None,
    paused: bool | None = None,
    discovers: bool | LookedAt | None = None,
    limits: Mapping[AllowanceScope, str | None] | None = None,
) -> AccountSettings:
    """Change the given settings. A limit of None restores the default.

    `discovers` switches discovery; with a project, it looks at that one from now on.

    `found_zone` is a time zone that nobody was asked for: see `note_zone`.
    """
    if zone is not None:
        find_zone(zone)
    changed = {
        scope: None if text is None else allowance.parse_limit(text, scope)
        for scope, text in (limits or {}).items()
    }
    if AllowanceScope.CONVERSATION in changed:
        raise BadRequest(
            "The allowance of a conversation cannot be set here.",
            hint="Set the allowance of a run, a day or the user.",
        )

    def work(tx: Tx) -> AccountSettings:
        tx.users.lock(user)
        if zone is not None:
            tx.users.set_zone(user, zone)
        if found_zone is not None:
            _note_zone(tx, user, *found_zone)
        if paused is not None:
            tx.users.pause_everything(user, paused=paused)
        if discovers is not None:
            project = discovers if isinstance(discovers, LookedAt) else None
            discovery.switch(deps, tx, user, on=discovers is not False, project=project)
        for scope, limit in changed.items():
            if limit is None:
                tx.spending.reset_allowance(user, scope)
            else:
                tx.spending.set_allowance(user, limit, NO_CONVERSATION)
        return _settings(deps, tx, user)

    return await deps.store.transact(work)


async def note_zone(deps: Deps, user: UserId, zone: str, source: ZoneSource) -> None:
    """Use the time zone of a terminal or browser, unless the user has set one."""
    await deps.store.transact(lambda tx: _note_zone(tx, user, zone, source))


async def spend_statement(
    deps: Deps, user: UserId, conversation_id: ConversationId | None = None
) -> SpendStatement:
    """Report spend by day and in total, and the state of each allowance."""

    def work(tx: Tx) -> SpendStatement:
        zone = tx.users.load(user).zone
        root = (
            NO_CONVERSATION
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
            allowances=[
                AllowanceState(limit, sums.get(limit.scope, Amount()))
                for limit in spending.effective_allowances(deps, account.allowances)
            ],
            days=[(day, account.spent[key]) for key, day in days.items() if key in account.spent],
        )

    return await deps.store.read(work)


def _settings(deps: Deps, tx: Tx, user: UserId) -> AccountSettings:
    allowances = tx.spending.state(user, NO_CONVERSATION, []).allowances
    return AccountSettings(tx.browse.profile(user), spending.effective_allowances(deps, allowances))


def _note_zone(tx: Tx, user: UserId, zone: str, source: ZoneSource) -> None:
    try:
        find_zone(zone)
    except BadSchedule:
        # A newer browser may know zones that this machine does not.
        return
    before = tx.users.lock(user)
    if source.may_replace(before.zone_source) and (zone, source) != (
        before.zone,
        before.zone_source,
    ):
        tx.users.set_zone(user, zone, source)


def _last_days(now: datetime, zone: str) -> list[datetime]:
    """List the starts of the last days, today first."""
    starts = [allowance.local_day(now, zone=zone)[0]]
    while len(starts) < MAX_STATEMENT_DAYS:
        starts.append(allowance.local_day(starts[-1] - _TICK, zone=zone)[0])
    return starts
