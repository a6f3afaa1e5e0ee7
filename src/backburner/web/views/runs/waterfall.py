"""The waterfall of a run: its steps in rows on a line of time, in which waits are shortened.

The lane of each row is 1000 units wide. Many steps fold, except the last ones.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Literal

from backburner.actions.work.run_pages import RunPage
from backburner.core.ids import CallId
from backburner.core.run import RunStatus
from backburner.core.work.run_facts import OutcomeKind
from backburner.core.work.timeline import PaidCall, StepKind, TimelineStep
from backburner.ports import ShownCall
from backburner.web.display import format_duration, format_money
from backburner.web.rendering import Words, count, load_words
from backburner.web.views.tool_line import show_call

WIDTH = 1000
#: Of bars, so that a tenth of a second can be seen.
MIN_WIDTH = 6
#: Of waits, as a part of the work: hours of waiting would leave no room for seconds of work.
WAIT_PART = 0.15
MAX_TICKS = 5
#: The label of a tick needs some room.
_LAST_TICK = 960
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_TICKS = (
    *(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 20, 30),
    *(minutes * _MINUTE for minutes in (1, 2, 5, 10, 15, 20, 30)),
    *(hours * _HOUR for hours in (1, 2, 3, 6, 12)),
    *(days * _DAY for days in (1, 2, 5, 10)),
)
_SHORTEST = timedelta(seconds=0.1)
#: Steps that fold together, and the last ones, which do not.
FOLD, SHOWN_LAST = 50, 25


@dataclass(frozen=True, slots=True)
class LaneBar:
    x: float
    width: float
    #: thinking, call, failed or waiting
    tone: str


@dataclass(frozen=True, slots=True)
class Tick:
    x: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownStep:
    id: str
    icon: str
    text: str
    #: What it was about, as code.
    name: str
    tone: str
    is_running: bool
    #: It is not known whether the call took effect.
    is_unsure: bool
    bar: LaneBar
    took: str
    tokens: str
    #: What a screen reader says of it.
    label: str
    #: The call whose arguments and result it opens.
    call_id: str = ""
    #: What it opens without one: names and values.
    facts: Sequence[tuple[str, str]] = ()
    kind: Literal["step"] = "step"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldedSteps:
    """Steps in a row that are loaded when it is opened."""

    number: int
    text: str
    failed: int
    bars: Sequence[LaneBar]
    label: str
    kind: Literal["fold"] = "fold"


@dataclass(frozen=True, slots=True, kw_only=True)
class Waterfall:
    rows: Sequence[ShownStep | FoldedSteps]
    ticks: Sequence[Tick]
    #: Lines at the ticks, as the path of an SVG.
    grid: str
    steps: int
    is_cut: bool
    #: The kinds of bars there are, for the legend.
    tones: Sequence[str]


@dataclass(frozen=True, slots=True)
class _Piece:
    """A piece of the line of time, in seconds: as it was, and as it is drawn."""

    begin: float
    length: float
    drawn: float
    is_wait: bool


class Scale:
    """Places moments on the lane, in units."""

    def __init__(self, waits: Sequence[tuple[float, float]], total: float) -> None:
        """`waits` begin and end in seconds from the start, in order."""
        work = max(total - sum(end - begin for begin, end in waits), 0.0)
        longest = work * WAIT_PART or total or 1.0
        pieces, at = list[_Piece](), 0.0
        for begin, end in waits:
            pieces.append(_Piece(at, begin - at, begin - at, is_wait=False))
            pieces.append(_Piece(begin, end - begin, min(end - begin, longest), is_wait=True))
            at = end
        pieces.append(_Piece(at, max(total - at, 0.0), max(total - at, 0.0), is_wait=False))
        self._pieces = [piece for piece in pieces if piece.length > 0]
        drawn = [piece.drawn for piece in self._pieces]
        self._begins = [0.0, *accumulate(drawn)]
        self._unit = WIDTH / (sum(drawn) or 1.0)
        self.work = work

    def place(self, seconds: float) -> float:
        for piece, begin in zip(self._pieces, self._begins, strict=False):
            if seconds <= piece.begin + piece.length:
                part = max(seconds - piece.begin, 0.0) / piece.length
                return (begin + part * piece.drawn) * self._unit
        return float(WIDTH) if self._pieces else 0.0

    def bar(self, begin: float, end: float, tone: str) -> LaneBar:
        x = min(self.place(begin), WIDTH - MIN_WIDTH)
        width = max(self.place(end) - x, MIN_WIDTH)
        return LaneBar(round(x, 1), round(min(width, WIDTH - x), 1), tone)

    def list_ticks(self) -> Sequence[Tick]:
        """Mark round times of work; they stand still during waits."""
        step = next((one for one in _TICKS if one * MAX_TICKS >= self.work), _TICKS[-1])
        marks = [number * step for number in range(int(self.work / step) + 1)] or [0.0]
        places = [(mark, self._place_work(mark)) for mark in marks]
        return [
            Tick(round(x, 1), _label_tick(mark, step, is_first=number == 0))
            for number, (mark, x) in enumerate(places)
            if x <= _LAST_TICK
        ]

    def _place_work(self, seconds: float) -> float:
        left = seconds
        for piece, begin in zip(self._pieces, self._begins, strict=False):
            if piece.is_wait:
                continue
            if left <= piece.length:
                return (begin + left) * self._unit
            left -= piece.length
        return 0.0 if not seconds else float(WIDTH)


def show_waterfall(page: RunPage, now: datetime) -> Waterfall:
    steps = show_steps(page, now)
    scale = _scale(page, now)
    ticks = scale.list_ticks()
    known = {step.tone for step in steps}
    return Waterfall(
        rows=fold(steps),
        ticks=ticks,
        grid="".join(f"M{tick.x:g} 0V33" for tick in ticks),
        steps=len(steps),
        is_cut=page.timeline.is_cut,
        tones=[tone for tone in ("thinking", "call", "failed", "waiting") if tone in known],
    )


def show_fold(page: RunPage, number: int, now: datetime) -> Sequence[ShownStep]:
    """Show the steps of a fold."""
    return show_steps(page, now)[number * FOLD : (number + 1) * FOLD]


def show_steps(page: RunPage, now: datetime) -> Sequence[ShownStep]:
    scale = _scale(page, now)
    servers = {call.id: call.server for call in page.calls}
    steps = page.timeline.steps
    last = len(steps) - 1
    writes = page.outcome.ending is OutcomeKind.DONE and not page.timeline.is_cut
    return [
        _Row(step, number, page, now, scale).show(servers, is_last=writes and number == last)
        for number, step in enumerate(steps)
    ]


def fold(steps: Sequence[ShownStep]) -> Sequence[ShownStep | FoldedSteps]:
    """Fold the first steps of many; a fold stays the same while more steps come."""
    folds = max(len(steps) - SHOWN_LAST, 0) // FOLD
    rows = list[ShownStep | FoldedSteps]()
    for number in range(folds):
        rows.append(_fold(number, steps[number * FOLD : (number + 1) * FOLD]))
    return [*rows, *steps[folds * FOLD :]]


def _fold(number: int, steps: Sequence[ShownStep]) -> FoldedSteps:
    words = load_words().run
    failed = sum(step.tone == "failed" for step in steps)
    first = number * FOLD + 1
    text = words.folded.format(first=first, last=first + len(steps) - 1)
    label = f"{text}, {count(words.failed_calls, failed)}" if failed else text
    bars = [step.bar for step in steps]
    return FoldedSteps(number=number, text=text, failed=failed, bars=bars, label=label)


def _scale(page: RunPage, now: datetime) -> Scale:
    steps, begun = page.timeline.steps, page.run.started_at
    so_far = max((now - begun).total_seconds(), 0.0)
    ends = [_end(step, so_far) for step in steps]
    waits = [
        (step.offset.total_seconds(), _end(step, so_far))
        for step in steps
        if step.kind is StepKind.WAITING
    ]
    return Scale(waits, max(ends, default=0.0))


def _end(step: TimelineStep, so_far: float) -> float:
    begin = step.offset.total_seconds()
    return max(so_far, begin) if step.duration is None else begin + step.duration.total_seconds()


@dataclass(frozen=True, slots=True)
class _Row:
    step: TimelineStep
    number: int
    page: RunPage
    now: datetime
    scale: Scale

    def show(self, servers: Mapping[CallId, str], *, is_last: bool) -> ShownStep:
        step, words = self.step, load_words().run
        shown = self._begin_row(words, is_last=is_last)
        if step.kind is StepKind.CALL and step.call is not None:
            line = show_call(ShownCall(servers.get(step.call.id, ""), step.call), self.now)
            tone = "failed" if line.state == "failed" else "call"
            shown = replace(
                shown,
                id=step.call.id,
                icon=line.icon,
                text=line.text,
                name=line.name,
                tone=tone,
                is_unsure=line.state == "waiting",
                call_id=step.call.id,
            )
        bar = self.scale.bar(self._begin, self._last, shown.tone)
        return replace(shown, bar=bar, label=self._label(shown, words))

    @property
    def _begin(self) -> float:
        return self.step.offset.total_seconds()

    @property
    def _last(self) -> float:
        return _end(self.step, max((self.now - self.page.run.started_at).total_seconds(), 0.0))

    def _begin_row(self, words: Words, *, is_last: bool) -> ShownStep:
        step = self.step
        is_running = step.duration is None and self.page.run.status is RunStatus.RUNNING
        is_wait = step.kind is StepKind.WAITING
        thinks = words.thinking if is_running else words.wrote if is_last else words.thought
        age = self._last - self._begin if is_running and step.kind is StepKind.CALL else None
        paid = step.model_call
        took = "" if step.duration is None else _describe_duration(step.duration)
        if age is not None:
            took = format_duration(timedelta(seconds=age))
        return ShownStep(
            id=f"s{self.number}",
            icon="clock" if is_wait else "pencil" if is_last else "think",
            text=step.in_words if is_wait else thinks,
            name=paid.model if paid is not None and len(self.page.models) > 1 else "",
            tone="waiting" if is_wait else "thinking",
            is_running=is_running,
            is_unsure=False,
            bar=LaneBar(0, 0, ""),
            took=took,
            tokens="" if paid is None else f"{paid.spent.tokens:,}",
            label="",
            facts=[] if paid is None else list(_describe_paid(paid, words)),
        )

    def _label(self, shown: ShownStep, words: Words) -> str:
        begin, end = round(self._begin, 1), round(self._last, 1)
        form = words.since if self.step.duration is None else words.from_to
        parts = (
            words.step.format(number=self.number + 1),
            f"{shown.text} {shown.name}".strip(),
            words.failed if shown.tone == "failed" else "",
            words.unsure if shown.is_unsure else "",
            form.format(begin=f"{begin:g}", end=f"{end:g}"),
        )
        return ", ".join(part for part in parts if part)


def _describe_paid(paid: PaidCall, words: Words) -> Iterator[tuple[str, str]]:
    yield words.model, paid.model
    if paid.output is None:
        yield words.tokens, f"{paid.spent.tokens:,}"
    else:
        cached = "" if not paid.cached else words.of_cache.format(number=f"{paid.cached:,}")
        yield words.tokens_in, f"{paid.spent.tokens - paid.output:,}{cached}"
        yield words.tokens_out, f"{paid.output:,}"
    if paid.spent.micros:
        yield words.cost, format_money(paid.spent.micros)


def _describe_duration(duration: timedelta) -> str:
    is_short = duration < _SHORTEST
    return f"<{format_duration(_SHORTEST)}" if is_short else format_duration(duration)


def _label_tick(seconds: float, step: float, *, is_first: bool) -> str:
    """Write the number alone, and at the first the unit as well."""
    unit, name = 1, "s"
    for size, short in ((_MINUTE, "min"), (_HOUR, "h"), (_DAY, "d")):
        if step >= size:
            unit, name = size, short
    number = f"{seconds / unit:g}"
    return f"{number}\N{NO-BREAK SPACE}{name}" if is_first else number
