"""One connection: its sign-in, its last day, what it may do, and what it did."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from backburner.actions.connections.overview import ConnectionOverview
from backburner.core.connections.call import CallCounts, CallsOfDay, ConnectionCall
from backburner.core.connections.connection import AuthKind, Connection, ConnectionState
from backburner.core.connections.scopes import name_scopes, select_named
from backburner.core.ids import ConversationId
from backburner.core.validation import escape_hidden
from backburner.web.display import Display, format_duration
from backburner.web.rendering import capitalize_first, count, load_words
from backburner.web.views.charts import Chart, ChartBar, ChartTexts
from backburner.web.views.connect.connection_tools import ConnectionToolList, show_tools
from backburner.web.views.connect.connections import (
    ConnectionRow,
    describe_last_use,
    describe_server,
    describe_sign_in,
    show_row,
)

#: What an owner chooses from, in seconds.
TIMEOUTS = (5, 15, 30, 60, 120, 300, 900, 1800)
_LOW = 14


@dataclass(frozen=True, slots=True)
class ShownScope:
    name: str
    #: given, wanted or refused.
    state: str


@dataclass(frozen=True, slots=True)
class TimeoutOption:
    seconds: float
    label: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class Trouble:
    text: str
    when: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionDetail:
    row: ConnectionRow
    connection: Connection
    server: str
    sign_in: str
    #: When it was last used.
    use: str
    #: Why it cannot be used, and what the button that changes it says.
    needs: str
    button: str
    waiting: Sequence[tuple[ConversationId, str]]
    #: Its health in half-hours.
    chart: Chart
    day: str
    answers: str
    scopes: Sequence[ShownScope]
    may: str
    expires: str
    trouble: Trouble | None
    tools: ConnectionToolList
    timeouts: Sequence[TimeoutOption]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCall:
    id: str
    tool: str
    conversation_id: ConversationId
    #: None: it was deleted.
    conversation: str | None
    outcome: str
    tone: str
    when: str
    full_time: str
    took: str


def show_detail(
    found: ConnectionOverview, titles: Mapping[ConversationId, str], display: Display
) -> ConnectionDetail:
    connection, words = found.connection, load_words().connections
    expires = connection.expires_at
    is_ready = connection.state is ConnectionState.READY
    day, bars = describe_day(found.day, display), [_draw(slot, display) for slot in found.day.slots]
    return ConnectionDetail(
        row=show_row(found, display),
        connection=connection,
        server=describe_server(connection),
        sign_in=describe_sign_in(connection),
        use=_describe_use(found, display),
        needs=_describe_need(connection),
        button=_name_sign_in(connection),
        waiting=[(one, titles.get(one, "")) for one in found.waiting],
        chart=Chart(texts=ChartTexts(sentence=day), bars=bars, places=len(bars)),
        day=day,
        answers=_describe_answers(found.day),
        scopes=list(_list_scopes(connection)),
        may=_describe_rights(connection),
        expires=words.expires.format(time=display.moment(expires)) if expires and is_ready else "",
        trouble=_describe_trouble(connection, display),
        tools=show_tools(found.tools),
        timeouts=_list_timeouts(connection.call_timeout),
    )


def describe_day(day: CallsOfDay, display: Display) -> str:
    """Say in a sentence how the calls of the last day went."""
    words = load_words().connections.day
    if not day.calls:
        return str(words.none)
    calls = count(words.calls, day.calls)
    troubles = [
        words.last.format(what=count(words[name], number), time=_last(day, name, display))
        for name, number in (("failed", day.failed), ("slow", day.slow), ("unknown", day.unknown))
        if number
    ]
    return " ".join([f"{calls}.", *troubles]) if troubles else words.all_well.format(calls=calls)


def show_calls(
    calls: Iterable[ConnectionCall], titles: Mapping[ConversationId, str], display: Display
) -> Sequence[ShownCall]:
    words = load_words()
    tones = {"done": "ok", "failed": "bad", "unknown": "ember"}
    return [
        ShownCall(
            id=call.id,
            tool=call.tool,
            conversation_id=call.conversation_id,
            conversation=titles[call.conversation_id] or words.common.untitled
            if call.conversation_id in titles
            else None,
            outcome=words.connections.calls[call.outcome.value],
            tone=tones[call.outcome.value],
            when=display.short(call.started_at),
            full_time=display.full(call.started_at),
            took=_format_took(call.ended_at - call.started_at),
        )
        for call in calls
    ]


def _describe_need(connection: Connection) -> str:
    words, host = load_words().connections, describe_server(connection)
    if connection.state is ConnectionState.SIGNING_IN:
        return str(words.not_yet)
    if connection.state is ConnectionState.SIGNED_OUT:
        text = words.wants if connection.wanted_scopes else words.ended
        return str(text.format(host=host))
    return str(words.is_off) if connection.disabled else ""


def _name_sign_in(connection: Connection) -> str:
    words = load_words().connections
    if connection.state is ConnectionState.READY or not connection.url:
        return ""
    if connection.auth is AuthKind.HEADER:
        return str(words.new_key)
    if connection.state is ConnectionState.SIGNED_OUT:
        return str(words.sign_in_again)
    return str(words.sign_in_at.format(host=describe_server(connection)))


def _draw(slot: CallCounts, display: Display) -> ChartBar:
    words = load_words().connections.day
    troubles = slot.failed or slot.unknown
    tone = "none" if not slot.calls else "bad" if troubles else "slow" if slot.slow else "ok"
    parts = [count(words.slot, slot.calls)]
    parts += [
        count(words[name], number).lower()
        for name, number in (("failed", slot.failed), ("slow", slot.slow))
        if number
    ]
    return ChartBar(
        label=display.moment(slot.at),
        value=", ".join(parts),
        part=_LOW if not slot.calls else 100,
        tone=tone,
    )


def _last(day: CallsOfDay, name: str, display: Display) -> str:
    found = [slot.at for slot in day.slots if getattr(slot, name)]
    return display.moment(found[-1])


def _describe_use(found: ConnectionOverview, display: Display) -> str:
    if found.connection.last_used_at is None and found.day.calls:
        # It has been tried.
        return ""
    return f"{capitalize_first(describe_last_use(found.connection, display))}."


def _describe_answers(day: CallsOfDay) -> str:
    average = day.average
    if average is None:
        return ""
    return str(load_words().connections.answers.format(time=_format_took(average)))


def _format_took(duration: timedelta) -> str:
    if duration < timedelta(seconds=1):
        return f"{max(round(duration / timedelta(milliseconds=1)), 1)}\u00a0ms"
    return format_duration(duration)


def _list_scopes(connection: Connection) -> Iterable[ShownScope]:
    for scope in connection.scopes:
        yield ShownScope(scope, "given")
    for scope in select_named(connection.wanted_scopes):
        yield ShownScope(scope, "wanted")
    for scope in select_named(connection.refused_scopes):
        yield ShownScope(scope, "refused")


def _describe_rights(connection: Connection) -> str:
    """Say what it may do where no scopes do."""
    words = load_words().connections
    if connection.auth is AuthKind.HEADER:
        return str(words.by_key.format(headers=name_scopes(connection.headers)))
    if connection.program:
        return str(words.by_program)
    if connection.auth is not AuthKind.OAUTH:
        return str(words.needs_nothing)
    is_known = connection.state is not ConnectionState.SIGNING_IN
    return str(words.no_scopes if is_known else words.scopes_later)


def _describe_trouble(connection: Connection, display: Display) -> Trouble | None:
    is_ready = connection.state is ConnectionState.READY
    # Of a connection that is signed out, it says that once more.
    if not (is_ready and connection.last_error and connection.last_error_at):
        return None
    when = load_words().connections.last_error.format(time=display.moment(connection.last_error_at))
    return Trouble(escape_hidden(connection.last_error), when)


def _list_timeouts(chosen: timedelta) -> Sequence[TimeoutOption]:
    now = chosen.total_seconds()
    return [
        TimeoutOption(seconds, _name_timeout(seconds), is_chosen=seconds == now)
        for seconds in sorted({*map(float, TIMEOUTS), now})
    ]


def _name_timeout(seconds: float) -> str:
    return format_duration(timedelta(seconds=seconds)).replace(
        ".0\N{NO-BREAK SPACE}", "\N{NO-BREAK SPACE}"
    )
