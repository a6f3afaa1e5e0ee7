"""A user's own account: time zone, background switches, allowances and spend."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from backburner.actions import discovery, spending
from backburner.actions.accounts import consent
from backburner.actions.deps import Deps
from backburner.actions.discovery import DiscoveryStatus, LookedAt
from backburner.actions.origin import NO_CONVERSATION
from backburner.core import allowance
from backburner.core.accounts import Caller, ZoneSource
from backburner.core.allowance import Allowance, AllowanceScope, AllowanceState, Amount
from backburner.core.errors import BadRequest, BadSchedule
from backburner.core.ids import ConversationId, UserId
from backburner.core.passwords import check_name
from backburner.core.schedule.cron import find_zone
from backburner.ports import ConversationSpending, EventKind, Tx, UserProfile

MAX_STATEMENT_DAYS = 30
#: Conversations that have spent most, among those that changed last.
MAX_TOP = 10
_MAX_SEARCHED = 500
_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class AccountSettings:
    profile: UserProfile
    allowances: Sequence[Allowance]
    #: None: it is off.
    discovery: DiscoveryStatus | None = None
    #: The settings of the server allow it.
    may_discover: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsChanges:
    """Changes of a user's settings; None leaves one as it is."""

    name: str | None = None
    zone: str | None = None
    #: A time zone that nobody was asked for: see `note_zone`.
    found_zone: tuple[str, ZoneSource] | None = None
    paused: bool | None = None
    #: Switches discovery; with a project, it looks at that one from now on.
    discovers: bool | LookedAt | None = None
    #: By scope; None restores the default.
    limits: Mapping[AllowanceScope, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SpendStatement:
    zone: str
    #: The conversation whose allowance counts for the requested one.
    root: ConversationId | None
    total: Amount
    today: Amount
    #: Spend of the requested conversation, including its jobs.
    conversation: Amount | None
    allowances: Sequence[AllowanceState]
    #: Set by the user, and the most that an operator allows.
    own: Sequence[Allowance]
    ceilings: Sequence[Allowance]
    #: The last days with spend, each by its start.
    days: Sequence[tuple[datetime, Amount]]
    #: Those that have spent most, with all jobs that they started.
    top: Sequence[ConversationSpending]


async def load_settings(deps: Deps, user: UserId) -> AccountSettings:
    return await deps.store.read(lambda tx: _settings(deps, tx, user))


async def change_settings(deps: Deps, user: UserId, changes: SettingsChanges) -> AccountSettings:
    if changes.zone is not None:
        find_zone(changes.zone)
    name = None if changes.name is None else check_name(changes.name)
    limits = {
        scope: None if text is None else allowance.parse_limit(text, scope)
        for scope, text in changes.limits.items()
    }
    if AllowanceScope.CONVERSATION in limits:
        raise BadRequest(
            "The allowance of a conversation cannot be set here.",
            hint="Set the allowance of a run, a day or the user, or that of the conversation by"
            " its id.",
        )

    def work(tx: Tx) -> AccountSettings:
        tx.users.lock(user)
        tx.changed(user, None, EventKind.USER)
        if changes.zone is not None:
            tx.users.set_zone(user, changes.zone)
        if changes.found_zone is not None:
            _note_zone(tx, user, *changes.found_zone)
        if name is not None:
            tx.accounts.change(user, name=name)
        if changes.paused is not None:
            tx.users.pause_everything(user, paused=changes.paused)
        if (discovers := changes.discovers) is not None:
            project = discovers if isinstance(discovers, LookedAt) else None
            discovery.switch(deps, tx, user, on=discovers is not False, project=project)
        if limits:
            _set_limits(tx, user, limits)
        return _settings(deps, tx, user)

    return await deps.store.transact(work)


def _set_limits(tx: Tx, user: UserId, limits: Mapping[AllowanceScope, Allowance | None]) -> None:
    account = tx.spending.state(user, NO_CONVERSATION, [])
    for scope, limit in limits.items():
        if limit is None:
            tx.spending.reset_allowance(user, scope)
        else:
            spending.check_ceiling(account, limit)
            tx.spending.set_allowance(user, limit, NO_CONVERSATION)
    # Work that is still over its limit pauses again.
    spending.resume_paused(tx, user, at=tx.now)


async def set_conversation_allowance(
    deps: Deps, caller: Caller, conversation_id: ConversationId, limit: str | None
) -> None:
    """Set what may be spent on a conversation with its jobs; None restores the default.

    It is that of the conversation at the top, for all that hangs under it.
    """
    scope, user = AllowanceScope.CONVERSATION, caller.user
    changed = None if limit is None else allowance.parse_limit(limit, scope)

    def work(tx: Tx) -> None:
        tx.users.lock(user)
        consent.check(tx, caller, conversation_id)
        root = spending.find_root(tx, tx.conversations.load(user, conversation_id))
        if changed is None:
            tx.spending.reset_allowance(user, scope, root)
        else:
            tx.spending.set_allowance(user, changed, root)
        # Work that is still over its limit pauses again.
        spending.resume_paused(tx, user, at=tx.now)

    await deps.store.transact(work)


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
        days = {f"day:{day.isoformat()}": day for day in last_days(tx.now, zone)}
        of_root, today = f"conversation:{root}", next(iter(days))
        account = tx.spending.state(user, root, ["user", of_root, *days])
        sums = {
            AllowanceScope.USER: account.spent.get("user", Amount()),
            AllowanceScope.DAY: account.spent.get(today, Amount()),
            AllowanceScope.CONVERSATION: account.spent.get(of_root, Amount()),
        }
        return SpendStatement(
            zone=zone,
            root=None if conversation_id is None else root,
            total=sums[AllowanceScope.USER],
            today=sums[AllowanceScope.DAY],
            conversation=None if conversation_id is None else sums[AllowanceScope.CONVERSATION],
            allowances=[
                AllowanceState(limit, sums.get(limit.scope, Amount()))
                for limit in spending.effective_allowances(deps, account)
            ],
            own=account.allowances,
            ceilings=account.ceilings,
            days=[(day, account.spent[key]) for key, day in days.items() if key in account.spent],
            top=tx.spending.top(user, searched=_MAX_SEARCHED, limit=MAX_TOP),
        )

    return await deps.store.read(work)


def _settings(deps: Deps, tx: Tx, user: UserId) -> AccountSettings:
    account = tx.spending.state(user, NO_CONVERSATION, [])
    return AccountSettings(
        tx.browse.profile(user),
        spending.effective_allowances(deps, account),
        discovery.find_status(tx, user),
        deps.discovery.allowed,
    )


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


def last_days(now: datetime, zone: str) -> list[datetime]:
    """List the starts of the last days, today first."""
    starts = [allowance.local_day(now, zone=zone)[0]]
    while len(starts) < MAX_STATEMENT_DAYS:
        starts.append(allowance.local_day(starts[-1] - _TICK, zone=zone)[0])
    return starts
