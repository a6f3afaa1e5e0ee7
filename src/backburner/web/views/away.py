"""Events while the user was away: two sentences, lanes on a line of time, and the outcome.

A lane is 1000 units wide.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from backburner.actions.away import AwayLane, AwaySummary, LaneState
from backburner.core.content.excerpt import make_excerpt
from backburner.core.run import RunStatus
from backburner.core.work.run_facts import shorten
from backburner.ports import RunBar
from backburner.web.display import Display, format_duration, format_money
from backburner.web.rendering import Words, count, load_words

WIDTH = 1000
MIN_WIDTH = 6
#: Dots at the ends of a lane stay whole.
DOT_MARGIN = 12
#: Enough to see what went on; the others are counted.
MAX_LANES = 12
MAX_TICKS = 8
#: A shorter time is drawn only if there is news in it.
MIN_PERIOD = timedelta(minutes=10)
_LAST_TICK = 940
_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
_TICKS = (
    *(timedelta(minutes=minutes) for minutes in (1, 2, 5, 10, 15, 30)),
    *(_HOUR * hours for hours in (1, 2, 3, 6, 12)),
    *(_DAY * days for days in (1, 2, 5, 10)),
)
#: Names of quiet conversations in the last line.
MAX_NAMED = 3


@dataclass(frozen=True, slots=True)
class AwayBar:
    x: float
    width: float
    tone: str


@dataclass(frozen=True, slots=True)
class AwayTick:
    x: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownLane:
    id: str
    title: str
    bars: Sequence[AwayBar]
    #: Where it asked.
    dots: Sequence[float]
    #: What the drawing says.
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AwayEntry:
    """A conversation with what came of it."""

    id: str
    href: str
    title: str
    text: str
    time: str
    full_time: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownAway:
    since: datetime
    until: datetime
    #: Two sentences.
    lead: str
    lanes: Sequence[ShownLane]
    more_lanes: int
    ticks: Sequence[AwayTick]
    grid: str
    facts: Sequence[tuple[str, str, str]]
    broke: Sequence[AwayEntry]
    done: Sequence[AwayEntry]
    #: One line about those that had nothing to report.
    quiet: str
    has_happened: bool


@dataclass(frozen=True, slots=True)
class AwayOffer:
    text: str
    since: datetime


def show_away(summary: AwaySummary, display: Display) -> ShownAway:
    line = _Line(summary.since, summary.until)
    lanes = [lane for lane in summary.lanes if lane.bars or lane.asked]
    ticks = list(line.list_ticks(display))
    has_happened = bool(summary.lanes) or summary.totals.skipped > 0
    totals = summary.totals
    is_news = bool(totals.succeeded + totals.failed + totals.cancelled) or any(
        lane.asked for lane in lanes
    )
    # A line of seconds in which nothing begins or ends says nothing.
    has_line = is_news or summary.until - summary.since >= MIN_PERIOD
    return ShownAway(
        since=summary.since,
        until=summary.until,
        lead=describe_away(summary, display),
        lanes=[line.show(lane) for lane in lanes[:MAX_LANES]] if has_line else [],
        more_lanes=len(lanes[MAX_LANES:]) if has_line else 0,
        ticks=ticks,
        grid="".join(f"M{tick.x:g} 0V20" for tick in ticks),
        facts=list(_list_facts(summary)) if has_happened and has_line else [],
        broke=list(_list_broken(summary, display)),
        done=list(_list_done(summary, display)),
        quiet=_describe_quiet(summary),
        has_happened=has_happened,
    )


def describe_away(summary: AwaySummary, display: Display) -> str:
    """Say in two sentences since when, how much went on, and what is left for the user."""
    words = load_words().away
    since = words.since.format(time=display.moment(summary.since))
    states = _count_states(summary)
    worked = sum(bool(lane.bars) for lane in summary.lanes)
    asks, broke = states[LaneState.NEEDS_YOU], states[LaneState.BROKE]
    if not worked and not asks and not broke:
        return f"{since} {words.nothing}"
    first = count(words.worked, worked, name=_spell(worked))
    parts = []
    if asks:
        parts.append(count(words.asks, asks, name=_spell(asks)))
    if broke:
        parts.append(count(words.broke, broke, name=_spell(broke)))
    if not parts:
        second = words.all_well if worked else ""
    else:
        text: str = words.both.format(first=parts[0], second=parts[1]) if parts[1:] else parts[0]
        second = f"{text[:1].upper()}{text[1:]}."
    return " ".join(part for part in (since, f"{first[:1].upper()}{first[1:]}", second) if part)


def offer_away(summary: AwaySummary, display: Display) -> AwayOffer | None:
    """Offer the page in a line, if there is anything to see."""
    words, states = load_words().away, _count_states(summary)
    runs = summary.totals.succeeded + summary.totals.failed
    asks = sum(question.asked_at >= summary.since for question in summary.questions)
    parts = [
        count(words.runs, runs) if runs else "",
        count(words.offer_asks, asks) if asks else "",
        count(words.offer_broke, states[LaneState.BROKE]) if states[LaneState.BROKE] else "",
    ]
    text = ", ".join(part for part in parts if part)
    if not text:
        return None
    since = display.moment(summary.since)
    return AwayOffer(words.offer.format(time=since, what=text), summary.since)


@dataclass(frozen=True, slots=True)
class _Line:
    begin: datetime
    end: datetime

    def place(self, at: datetime) -> float:
        length = (self.end - self.begin) or timedelta(seconds=1)
        return min(max(WIDTH * ((at - self.begin) / length), 0.0), WIDTH)

    def show(self, lane: AwayLane) -> ShownLane:
        words = load_words().away
        failed = sum(bar.status is RunStatus.FAILURE for bar in lane.bars)
        parts = [
            lane.title or load_words().common.untitled,
            count(words.runs, len(lane.bars)),
            count(words.failed, failed) if failed else "",
            count(words.asked, len(lane.asked)) if lane.asked else "",
        ]
        return ShownLane(
            id=lane.conversation_id,
            title=lane.title,
            bars=[self._bar(bar) for bar in lane.bars if bar.status is not RunStatus.SKIPPED],
            dots=[
                round(min(max(self.place(one.asked_at), DOT_MARGIN), WIDTH - DOT_MARGIN), 1)
                for one in lane.asked
            ],
            label=", ".join(part for part in parts if part),
        )

    def _bar(self, bar: RunBar) -> AwayBar:
        x = min(self.place(bar.started_at), WIDTH - MIN_WIDTH)
        width = max(self.place(bar.ended_at or self.end) - x, MIN_WIDTH)
        tones = {RunStatus.FAILURE: "failed", RunStatus.RUNNING: "call"}
        return AwayBar(round(x, 1), round(width, 1), tones.get(bar.status, "thinking"))

    def list_ticks(self, display: Display) -> Iterator[AwayTick]:
        """Mark round times of the user's day."""
        length = self.end - self.begin
        step = next((one for one in _TICKS if one * MAX_TICKS >= length), _TICKS[-1])
        local = display.local(self.begin)
        midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
        at = midnight + step * -(-(local - midnight) // step)
        while (moment := at.astimezone(self.begin.tzinfo)) < self.end:
            x = round(self.place(moment), 1)
            if x <= _LAST_TICK:
                yield AwayTick(x, _label(at, step))
            at += step


def _label(at: datetime, step: timedelta) -> str:
    if step >= _DAY:
        return f"{at.day}\N{NO-BREAK SPACE}{at:%b}"
    return f"{at.hour}" if step >= _HOUR else f"{at.hour}:{at:%M}"


def _count_states(summary: AwaySummary) -> Mapping[LaneState, int]:
    return {state: sum(lane.state is state for lane in summary.lanes) for state in LaneState}


def _list_facts(summary: AwaySummary) -> Iterator[tuple[str, str, str]]:
    words, totals = load_words().away.facts, summary.totals
    yield words.runs, str(totals.succeeded + totals.failed + totals.cancelled), ""
    yield words.went_well, str(totals.succeeded), ""
    spent = summary.spent
    if spent.amount.micros or spent.is_all_priced:
        yield words.spent, format_money(spent.amount.micros), ""
    else:
        yield words.tokens, f"{spent.amount.tokens:,}", ""
    if summary.worked:
        yield words.worked, format_duration(summary.worked), ""
    asked = sum(len(lane.asked) for lane in summary.lanes)
    if asked:
        yield words.asked, str(asked), words.times if asked > 1 else words.time


def _list_broken(summary: AwaySummary, display: Display) -> Iterator[AwayEntry]:
    failures = {row.conversation: row.failure for row in summary.conversations}
    for lane in summary.lanes:
        if lane.state is not LaneState.BROKE:
            continue
        failed = [bar for bar in lane.bars if bar.status is RunStatus.FAILURE]
        last = failed[-1] if failed else None
        at = summary.until if last is None else last.ended_at or last.started_at
        href = f"/c/{lane.conversation_id}" if last is None else f"/r/{last.run_id}"
        text = failures.get(lane.conversation_id) or load_words().run.endings.failed
        yield _entry(lane, href, shorten(text), at, display)


def _list_done(summary: AwaySummary, display: Display) -> Iterator[AwayEntry]:
    reports = {report.conversation: report for report in summary.reports}
    for lane in summary.lanes:
        report = reports.get(lane.conversation_id)
        if lane.state is LaneState.DONE and report is not None:
            text, href = make_excerpt(report.text), f"/c/{lane.conversation_id}"
            yield _entry(lane, href, text, report.created_at, display)


def _entry(lane: AwayLane, href: str, text: str, at: datetime, display: Display) -> AwayEntry:
    return AwayEntry(
        id=lane.conversation_id,
        href=href,
        title=lane.title,
        text=text,
        time=display.short(at),
        full_time=display.full(at),
    )


def _describe_quiet(summary: AwaySummary) -> str:
    words = load_words().away
    counts = {row.conversation: row.counts.succeeded for row in summary.conversations}
    quiet = [lane for lane in summary.lanes if lane.state is LaneState.QUIET]
    runs = sum(counts.get(lane.conversation_id, 0) for lane in quiet)
    if not runs:
        return ""
    titles = [lane.title or load_words().common.untitled for lane in quiet]
    return count(words.quiet, runs, names=_join(titles, words))


def _join(names: Sequence[str], words: Words) -> str:
    more = len(names) - MAX_NAMED
    if more > 0:
        last = count(words.others, more)
        return str(words.both.format(first=", ".join(names[:MAX_NAMED]), second=last))
    if len(names) == 1:
        return names[0]
    return str(words.both.format(first=", ".join(names[:-1]), second=names[-1]))


def _spell(number: int) -> str:
    names: Sequence[str] = load_words().away.numbers
    return names[number] if number < len(names) else str(number)
