"""Views of allowances, grants, memories and credentials in the settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from backburner.actions.accounts.profile import SpendStatement
from backburner.core.accounts import Caller, Credential, is_direct
from backburner.core.allowance import (
    MILLION,
    Allowance,
    AllowanceScope,
    Amount,
    format_limit,
)
from backburner.core.ids import ConversationId
from backburner.core.memory import Memory
from backburner.ports import GrantRow
from backburner.web.display import Display, format_count, format_money
from backburner.web.rendering import fill, load_words

MAX_EXCERPT = 280
#: In the order of the page.
_SCOPES = (AllowanceScope.DAY, AllowanceScope.RUN, AllowanceScope.USER)
_ALL = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowanceLine:
    scope: str
    title: str
    #: What was spent against it, whose it is, and what is allowed at most.
    lines: Sequence[str]
    #: As it is typed; empty: no limit.
    value: str
    #: Of the allowance, of 100; None: it is not counted here.
    part: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpentIn:
    id: ConversationId
    title: str
    spent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownGrant:
    id: str
    what: str
    words: str
    conversation_id: ConversationId
    conversation_title: str
    given: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMemory:
    key: str
    text: str
    is_long: bool
    conversation_id: ConversationId | None
    is_outside: bool
    changed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCredential:
    id: str
    name: str
    lines: Sequence[str]
    is_this: bool
    #: The token of the command line is made anew by each start of the server.
    is_local: bool


def show_allowances(statement: SpendStatement) -> Sequence[AllowanceLine]:
    states = {state.allowance.scope: state for state in statement.allowances}
    own = {limit.scope for limit in statement.own}
    ceilings = {limit.scope: limit for limit in statement.ceilings}
    spent = {AllowanceScope.DAY: statement.today, AllowanceScope.USER: statement.total}
    words, shown = load_words().settings.allowances, list[AllowanceLine]()
    for scope in _SCOPES:
        limit = states[scope].allowance if scope in states else Allowance(scope)
        form = {AllowanceScope.DAY: words.spent_today, AllowanceScope.USER: words.spent_ever}
        amount = spent.get(scope)
        first = words.spent_run if amount is None else fill(form[scope], spent=_amount(amount))
        lines = [first, words.own if scope in own else words.default]
        if (ceiling := ceilings.get(scope)) is not None:
            lines.append(fill(words.ceiling, limit=format_limit(ceiling) or words.unlimited))
        shown.append(
            AllowanceLine(
                scope=scope.value,
                title=words[scope.value],
                lines=lines,
                value=write_limit(limit),
                part=None if amount is None else _part(amount, limit),
            )
        )
    return shown


def write_limit(limit: Allowance) -> str:
    """Write a limit as it is typed."""
    money = [] if limit.micros is None else [f"${limit.micros / MILLION:.2f}"]
    tokens = [] if limit.tokens is None else [f"{limit.tokens} tokens"]
    return ", ".join([*money, *tokens]) or "none"


def show_spent_in(statement: SpendStatement) -> Sequence[SpentIn]:
    """Show the conversations that have spent most."""
    untitled = load_words().common.untitled
    return [
        SpentIn(id=one.id, title=one.title or untitled, spent=_amount(one.spent))
        for one in statement.top
        if one.spent != Amount()
    ]


def show_grants(
    rows: Sequence[GrantRow], titles: Mapping[ConversationId, str], display: Display
) -> Sequence[ShownGrant]:
    """Show the lasting grants; the others are for one call that was answered."""
    words = load_words()
    shown = list[ShownGrant]()
    for row in rows:
        grant = row.grant
        if grant.call is not None:
            continue
        known = words.tools.known
        own = grant.tool in known and grant.connection is None
        what = known[grant.tool].now if own else f"{words.tools.uses} {grant.server}: {grant.tool}"
        given = fill(words.settings.permissions.given, date=display.short(row.given_at))
        if grant.expires_at is not None:
            until = words.settings.permissions.until
            given = f"{given}, {fill(until, time=display.moment(grant.expires_at))}"
        shown.append(
            ShownGrant(
                id=grant.id,
                what=what,
                words=" ".join(grant.words),
                conversation_id=row.conversation_id,
                conversation_title=titles.get(row.conversation_id) or words.common.untitled,
                given=given,
            )
        )
    return shown


def show_memory(memory: Memory, display: Display) -> ShownMemory:
    changed = fill(load_words().settings.memories.changed, date=display.short(memory.updated_at))
    return ShownMemory(
        key=memory.key,
        text=memory.text[:MAX_EXCERPT],
        is_long=len(memory.text) > MAX_EXCERPT,
        conversation_id=memory.conversation_id,
        is_outside=memory.outside,
        changed=changed,
    )


def show_token(token: Credential, caller: Caller, display: Display) -> ShownCredential:
    words = load_words().settings.tokens
    is_local = is_direct(token.kind, token.name)
    order = list(words.scope)
    names = sorted((scope.value for scope in token.scopes), key=order.index)
    said = [words.scope[name] for name in names]
    scopes = ", ".join([*said[:1], *(one[:1].lower() + one[1:] for one in said[1:])])
    ends = words.never_ends
    if token.expires_at is not None:
        ends = fill(words.ends, date=display.moment(token.expires_at))
    used = words.unused
    if token.used_at is not None:
        used = fill(words.used, date=display.short(token.used_at))
    return ShownCredential(
        id=token.id,
        name=words.local if is_local else token.name,
        lines=[scopes, used] if is_local else [scopes, ends, used],
        is_this=token.id == caller.credential,
        is_local=is_local,
    )


def show_browser(session: Credential, caller: Caller, display: Display) -> ShownCredential:
    words = load_words().settings.browsers
    seen = display.short(session.used_at or session.created_at)
    return ShownCredential(
        id=session.id,
        name=session.device or words.unknown,
        lines=[
            fill(words.seen, date=seen),
            fill(words.since, date=display.short(session.created_at)),
        ],
        is_this=session.id == caller.credential,
        is_local=False,
    )


def _amount(amount: Amount) -> str:
    """Write money; tokens, if they have no price."""
    if amount.micros or not amount.tokens:
        return format_money(amount.micros)
    text: str = load_words().settings.allowances.tokens
    return fill(text, number=format_count(amount.tokens))


def _part(spent: Amount, limit: Allowance) -> int | None:
    parts = [
        min(round(_ALL * used / most), _ALL) if most else _ALL
        for used, most in ((spent.micros, limit.micros), (spent.tokens, limit.tokens))
        if most is not None
    ]
    return max(parts, default=None)
