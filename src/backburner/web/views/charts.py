"""Charts: bars on a scale with a round top, a headline number, and a sentence that says it all."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from statistics import median

from backburner.web.display import format_count, format_duration, format_money
from backburner.web.rendering import load_words

#: Bars that stand for something are at least as high, of 100.
MIN_PART = 2
#: More bars would be thinner than can be seen; several points share one.
MAX_BARS = 60
#: A limit further above the highest bar would press all bars to the ground; it is said in words.
_MAX_OVER = 3
_ROUND = (1, 1.5, 2, 3, 4, 5, 6, 8, 10)
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_CLOCK = (10, 15, 20, 30, 40, 60)
#: Round durations, in seconds; longer ones are round numbers of days.
_DURATIONS = (
    *(0.1, 0.2, 0.5, 1, 1.5, 2, 3, 4, 5, 6, 8, *_CLOCK),
    *(_MINUTE * minutes for minutes in (2, 3, 4, 5, 6, 8, *_CLOCK)),
    *(_HOUR * hours for hours in (2, 3, 4, 6, 8, 12, 18, 24)),
)


#: $5.00, 1.0 s and $0.080 are $5, 1 s and $0.08.
_ENDING_ZEROS = re.compile(r"\.0+(?!\d)|(?<=\.\d\d)0(?!\d)")


class Tone(StrEnum):
    USUAL = ""
    NOW = "now"  #: The last one.
    BAD = "bad"  #: It failed, or is over the limit.


class Unit(StrEnum):
    SECONDS = "seconds"
    MICROS = "micros"  #: Of a dollar.
    TOKENS = "tokens"

    def write(self, number: float) -> str:
        match self:
            case Unit.SECONDS:
                return format_duration(timedelta(seconds=number))
            case Unit.MICROS:
                return format_money(round(number))
            case Unit.TOKENS:
                return format_count(round(number))

    def mark(self, number: float) -> str:
        """Write a number of the scale, which has little room."""
        if self is not Unit.MICROS or number < 1_000_000_000:
            return _ENDING_ZEROS.sub("", self.write(number))
        return f"${format_count(round(number / 1_000_000))}"

    def top(self, highest: float) -> float:
        """Return the next round number, at which the scale ends."""
        if self is Unit.SECONDS and highest <= _DURATIONS[-1]:
            return next((one for one in _DURATIONS if one >= highest), highest)
        if self is Unit.SECONDS:
            return _DAY * _round_up(highest / _DAY)
        least = 1_000 if self is Unit.MICROS else 1
        return max(_round_up(highest), least)


@dataclass(frozen=True, slots=True)
class Measured:
    """The value and the words of a bar."""

    label: str
    number: float
    #: The number as people read it.
    text: str
    tone: Tone = Tone.USUAL


@dataclass(frozen=True, slots=True)
class ChartBar:
    label: str
    value: str
    #: Its height, of 100.
    part: float
    tone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartTexts:
    #: What the bars say.
    sentence: str
    title: str = ""
    #: Beside the title: of how many, or up to what limit.
    aside: str = ""
    headline: str = ""
    #: What the headline is.
    about: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    texts: ChartTexts
    bars: Sequence[ChartBar]
    #: How many bars there is room for.
    places: int
    #: How high the limit is, of 100; None: there is none, or it is far above.
    limit: float | None = None
    #: Where the scale ends; empty: there is none.
    top: str = ""
    #: What is special about the bars.
    note: str = ""


def draw(
    measured: Sequence[Measured],
    unit: Unit,
    texts: ChartTexts,
    *,
    limit: float | None = None,
    places: int = 0,
) -> Chart:
    each = -(-len(measured) // MAX_BARS) or 1
    drawn = [_merge(measured[at : at + each]) for at in range(0, len(measured), each)]
    highest = max((one.number for one in drawn), default=0.0)
    near = limit if limit and limit <= highest * _MAX_OVER else None
    top = near if near is not None and near >= highest else unit.top(highest)
    return Chart(
        texts=texts,
        bars=[ChartBar(one.label, one.text, _part(one.number, top), one.tone) for one in drawn],
        places=max(places if each == 1 else 0, len(drawn)),
        limit=None if near is None else _part(near, top),
        top=unit.mark(top) if highest > 0 else "",
        note=load_words().charts.merged.format(number=each) if each > 1 else "",
    )


def middle(numbers: Sequence[float]) -> float:
    return median(numbers) if numbers else 0.0


def _merge(some: Sequence[Measured]) -> Measured:
    """Make one bar of several points: the highest, and bad if one of them is."""
    if len(some) == 1:
        return some[0]
    highest = max(some, key=lambda one: one.number)
    tones = {one.tone for one in some}
    tone = next((one for one in (Tone.BAD, Tone.NOW) if one in tones), Tone.USUAL)
    label = load_words().charts.range.format(first=some[0].label, last=some[-1].label)
    return Measured(label, highest.number, highest.text, tone)


def _round_up(number: float) -> float:
    power = 1.0
    while number > 10 * power:
        power *= 10
    while 0 < number <= power / 10:
        power /= 10
    return next((one * power for one in _ROUND if one * power >= number), 10 * power)


def _part(number: float, top: float) -> float:
    if number <= 0 or top <= 0:
        return 0
    return min(max(round(100 * number / top, 1), MIN_PART), 100)
