"""What measurements share: medians of interleaved rounds, shown as a table or a JSON object."""

import json
import sys
from collections.abc import Callable, Mapping
from statistics import median

Cell = str | float


def interleave(measures: Mapping[str, Callable[[], float]], *, rounds: int) -> dict[str, float]:
    """Take turns, so that whatever else the machine does falls on all alike; give the medians."""
    taken: dict[str, list[float]] = {name: [] for name in measures}
    for _ in range(rounds):
        for name, measure in measures.items():
            taken[name].append(measure())
    return {name: median(values) for name, values in taken.items()}


def report(title: str, rows: list[dict[str, Cell]], **facts: float) -> None:
    """Print the rows, all with the same columns, in the form the command line asks for."""
    if "--json" in sys.argv[1:]:
        print(json.dumps({"bench": title, "rows": rows, **facts}))
        return
    table = [list(rows[0]), *([_text(cell) for cell in row.values()] for row in rows)]
    widths = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
    for first, *others in table:
        padded = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
        print("  ".join([first.ljust(widths[0]), *padded]))
    for name, value in facts.items():
        print(f"{name}: {_text(value)}")


def _text(cell: Cell) -> str:
    return cell if isinstance(cell, str) else f"{cell:,.4g}" if cell < 1000 else f"{cell:,.0f}"
