"""Views of the install for operators: its state, people, failures and acts."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from backburner.actions.models.profiles import ModelUse
from backburner.actions.operate.overview import FailureReport, Overview
from backburner.actions.operate.spending import UserSpending
from backburner.core.accounts import (
    ON_THE_SERVER,
    Act,
    AuditEntry,
    Caller,
    Invitation,
    Role,
    User,
)
from backburner.core.allowance import Allowance, AllowanceScope, Amount, format_limit
from backburner.core.ids import UserId
from backburner.core.retry import Outage
from backburner.ports import MAX_COUNT, TroubleKind, VaultStatus
from backburner.web.display import Display, format_count, format_duration, format_money, format_size
from backburner.web.rendering import count, fill, load_words
from backburner.web.views.account.model_setup import describe_use
from backburner.web.views.account.settings import write_limit

_DATABASES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
#: What was said of a tool, at the end of the text of an act.
_TICKS = re.compile(r" \(([a-z_]+=[^()]*)\)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownWorker:
    name: str
    host: str
    version: str
    seats: str
    started: str
    seen: str
    burner: str
    state: str


@dataclass(frozen=True, slots=True)
class ModelLine:
    """A model, what it is used for unless another is chosen, and what is wrong with it."""

    name: str
    use: str
    trouble: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownOverview:
    #: What is wrong; empty: nothing.
    problems: Sequence[str]
    is_paused: bool
    workers: Sequence[ShownWorker]
    queue: Sequence[tuple[str, str]]
    models: Sequence[ModelLine]
    server: Sequence[tuple[str, str]]
    vault: Sequence[str]
    may_back_up: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPerson:
    id: UserId
    name: str
    line: str
    is_you: bool
    is_operator: bool
    is_disabled: bool
    has_login: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownInvitation:
    id: str
    name: str
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonSpending:
    id: UserId
    name: str
    today: str
    days: str
    total: str
    day_limit: str
    user_limit: str
    #: The same as they are typed.
    typed_day: str
    typed_user: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownFailure:
    kind: str
    message: str
    of: str
    at: str
    full_time: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownAct:
    actor: str
    act: str
    #: Whom it concerns, if it is somebody else.
    user: str
    detail: str
    at: str
    full_time: str


def show_overview(
    facts: Overview,
    vault: VaultStatus | None,
    display: Display,
    models: Sequence[ModelUse] = (),
) -> ShownOverview:
    words, queue = load_words().operate.overview, facts.queue
    missing = [row for row in facts.workers if facts.is_missing(row)]
    problems = [words.no_worker] if len(missing) == len(facts.workers) else []
    if missing and not problems:
        problems.append(count(words.missing, len(missing)))
    if facts.outages:
        problems.append(count(words.trouble, len(facts.outages)))
    if facts.deliveries.failed:
        problems.append(count(words.lost, facts.deliveries.failed))
    if queue.due and not queue.is_paused:
        wait = format_duration(queue.oldest_wait)
        problems.append(count(words.waits, queue.due, time=wait))
    started = [] if facts.started_at is None else [display.moment(facts.started_at)]
    return ShownOverview(
        problems=problems,
        is_paused=queue.is_paused,
        workers=[
            ShownWorker(
                name=row.report.name,
                host=row.report.host,
                version=row.report.version,
                seats=fill(words.seats_used, used=row.report.seats_used, all=row.report.seats),
                started=display.moment(row.report.started_at),
                seen=display.short(row.seen_at),
                burner="failed"
                if row in missing
                else "paused"
                if row.report.is_draining
                else "done",
                state=words.gone
                if row in missing
                else words.drains
                if row.report.is_draining
                else words.works,
            )
            for row in facts.workers
        ],
        queue=[
            (words.running, _number(queue.running)),
            (words.due, _number(queue.due)),
            (words.queued, _number(queue.queued)),
            (words.users_waiting, _number(queue.users_waiting)),
            (words.deliveries, _number(facts.deliveries.waiting)),
            (words.failed_deliveries, _number(facts.deliveries.failed)),
        ],
        models=_show_models(facts, models, display),
        server=[
            (words.version, facts.version),
            *((words.up_since, at) for at in started),
            (
                words.database,
                f"{_DATABASES[facts.database.kind]}, {format_size(facts.database.size_bytes)}",
            ),
        ],
        vault=[] if vault is None else _show_vault(vault),
        may_back_up=facts.database.kind == "sqlite",
    )


def name_user(user: User, caller: Caller) -> str:
    words = load_words().operate.people
    return user.name or user.login or (words.you if user.id == caller.user else words.no_name)


def show_person(user: User, caller: Caller, display: Display) -> ShownPerson:
    words = load_words().operate.people
    role = words.operator if user.role is Role.OPERATOR else words.member
    since = fill(words.since, date=display.short(user.created_at))
    if user.disabled_at is not None:
        since = fill(words.disabled, date=display.short(user.disabled_at))
    return ShownPerson(
        id=user.id,
        # A chip says who you are.
        name=user.name or user.login or words.no_name,
        line=" · ".join([role, user.login or words.no_login, since]),
        is_you=user.id == caller.user,
        is_operator=user.role is Role.OPERATOR,
        is_disabled=user.disabled_at is not None,
        has_login=user.login is not None,
    )


def show_invitation(invitation: Invitation, display: Display) -> ShownInvitation:
    words = load_words().operate.people
    role = words.operator if invitation.role is Role.OPERATOR else words.member
    ends = "" if invitation.expires_at is None else display.moment(invitation.expires_at)
    return ShownInvitation(
        id=invitation.id,
        name=invitation.name or words.anybody,
        line=fill(words.invitation, role=role, date=ends),
    )


def show_spending(row: UserSpending, caller: Caller) -> PersonSpending:
    ceilings = {limit.scope: limit for limit in row.ceilings}
    day, total = (ceilings.get(scope) for scope in (AllowanceScope.DAY, AllowanceScope.USER))
    return PersonSpending(
        id=row.user.id,
        name=name_user(row.user, caller),
        today=_amount(row.today),
        days=_amount(row.last_days),
        total=_amount(row.total),
        day_limit=_limit(day),
        user_limit=_limit(total),
        typed_day="" if day is None else write_limit(day),
        typed_user="" if total is None else write_limit(total),
    )


def show_failure(report: FailureReport, display: Display) -> ShownFailure:
    words, row = load_words().operate.failures, report.row
    is_users = row.kind is not TroubleKind.MODEL
    name = row.login or row.user_id or ""
    return ShownFailure(
        kind=words[row.kind.value],
        message=report.message,
        of=fill(words.of, name=name) if is_users and name else "",
        at=display.moment(row.at),
        full_time=display.full(row.at),
    )


def show_act(entry: AuditEntry, names: Mapping[UserId, str], display: Display) -> ShownAct:
    words = load_words().operate.audit
    on_the_server = {ON_THE_SERVER: words.on_the_server}
    known = {**names, **on_the_server}
    other = entry.user if entry.user not in (None, entry.actor) else None
    return ShownAct(
        actor=known.get(entry.actor, words.deleted),
        act=words.act[entry.act.value],
        user="" if other is None else known.get(other, words.deleted),
        detail=describe_detail(entry),
        at=display.moment(entry.at),
        full_time=display.full(entry.at),
    )


def describe_detail(entry: AuditEntry) -> str:
    """Say what an act was about, without the names that programs have for it."""
    words = load_words()
    match entry.act:
        case Act.INVITATION_REVOKED:
            # An id that nothing else shows.
            return ""
        case Act.TOOL_TICKED:
            return _TICKS.sub(lambda ticks: _describe_ticks(ticks[1]), entry.detail)
        case Act.MODEL_SAVED:
            name, _, rest = entry.detail.partition(": ")
            kind, *more = rest.split(", ")
            if f"kind_{kind}" in words.model:
                kind = words.model[f"kind_{kind}"]
            return f"{name}: {', '.join([kind, *filter(None, more)])}"
        case Act.ALLOWANCE_LIMITED:
            scope, colon, limit = entry.detail.partition(": ")
            names = {"day": words.operate.spend.limit, "user": words.operate.spend.limit_user}
            return f"{names.get(scope, scope)}{colon}{limit}"
        case _:
            return entry.detail


def _describe_ticks(ticks: str) -> str:
    words = load_words().operate.audit.tick
    said = list[str]()
    for tick in ticks.split(", "):
        name, _, value = tick.partition("=")
        known = name in words and value in words[name]
        said.append(words[name][value] if known else tick)
    return f": {', '.join(said)}"


def _show_models(
    facts: Overview, models: Sequence[ModelUse], display: Display
) -> Sequence[ModelLine]:
    """Show all models; those in trouble that are not in the settings any more, too."""
    troubles = {one.profile: _describe_outage(one, display) for one in facts.outages}
    uses = {one.profile: describe_use(one) for one in models}
    return [
        ModelLine(name, uses.get(name, ""), troubles.get(name, "")) for name in {**uses, **troubles}
    ]


def _describe_outage(outage: Outage, display: Display) -> str:
    words = load_words().operate.overview
    since = fill(words.since, time=display.moment(outage.since))
    return f"{outage.message} ({since}, {fill(words.next_try, time=display.until(outage.until))})"


def _show_vault(vault: VaultStatus) -> Sequence[str]:
    words = load_words().operate.overview
    if vault.problem:
        return [vault.problem, vault.hint]
    state = words.vault_open
    if vault.locked:
        state = count(words.vault_locked, sum(vault.locked.values()))
    users = count(words.vault_users, vault.users)
    return [state, users, fill(words.vault_source, source=vault.source)]


def _number(number: int) -> str:
    return f"{format_count(number)}+" if number >= MAX_COUNT else str(number)


def _amount(amount: Amount) -> str:
    if amount.micros or not amount.tokens:
        return format_money(amount.micros)
    text: str = load_words().settings.allowances.tokens
    return fill(text, number=format_count(amount.tokens))


def _limit(ceiling: Allowance | None) -> str:
    no_limit: str = load_words().operate.spend.no_limit
    return no_limit if ceiling is None else format_limit(ceiling) or no_limit
