"""Cells that are measured in turns: their values of all rounds, and the rows that they make."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles

from _report import Cell as Value

#: A number, or samples of which percentiles are shown.
Measured = Mapping[str, float | list[float]]
PERCENTILES = (50, 90, 99)
#: Measures that are neither good nor bad.
NEUTRAL = ("cores",)

Reduce = Callable[[list[float]], float]


@dataclass
class Cell:
    """Something that is measured once a round."""

    name: str
    take: Callable[[], Measured]
    #: The name of the cell whose values the ratios are to.
    beside: str = ""
    #: Somebody else's work is not compared with what it was before.
    ours: bool = True
    rounds: list[Measured] = field(default_factory=list)

    def rows(self, others: Mapping[str, "Cell"]) -> Iterator[dict[str, Value]]:
        base = others.get(self.beside)
        for measure, percent in self._measures():
            values = self._values(measure)
            reduce = _percentile(percent) if percent else median
            value = reduce([one for values_of_round in values for one in values_of_round])
            each = [reduce(values_of_round) for values_of_round in values]
            ratio = _ratio(value, base, measure, reduce)
            yield {
                "what": f"{self.name}: {f'p{percent} ' if percent else ''}{measure}",
                "value": value,
                "from": min(each),
                "to": max(each),
                "ratio": ratio,
                "beside": self.beside if ratio else "",
                "better": self._direction(measure),
            }

    def _measures(self) -> Iterator[tuple[str, int]]:
        for measure, value in self.rounds[0].items():
            for percent in PERCENTILES if isinstance(value, list) else (0,):
                yield measure, percent

    def _values(self, measure: str) -> list[list[float]]:
        found = [round_[measure] for round_ in self.rounds if measure in round_]
        return [value if isinstance(value, list) else [value] for value in found]

    def _direction(self, measure: str) -> str:
        if not self.ours or measure.startswith(NEUTRAL):
            return ""
        return "more" if measure.endswith("/s") else "less"


def take_turns(cells: Sequence[Cell], *, rounds: int) -> None:
    for number in range(1, rounds + 1):
        for cell in cells:
            began = time.monotonic()
            cell.rounds.append(cell.take())
            took = time.monotonic() - began
            print(f"round {number} of {rounds}: {cell.name} ({took:.0f} s)", file=sys.stderr)


def _percentile(percent: int) -> Reduce:
    def reduce(values: list[float]) -> float:
        several = values if len(values) > 1 else values * 2
        # Nothing beyond what was seen, however few there are.
        return quantiles(several, n=100, method="inclusive")[percent - 1]

    return reduce


def _ratio(value: float, base: Cell | None, measure: str, reduce: Reduce) -> Value:
    if base is None or measure not in base.rounds[0]:
        return ""
    other = reduce([one for values in base._values(measure) for one in values])  # noqa: SLF001
    return value / other if other else ""
