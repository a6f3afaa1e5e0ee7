"""What measurements share: medians of interleaved rounds, shown as a table or a JSON object.

`--json` prints the object in place of the table; `--json FILE` writes it, and prints the table too.
`--against FILE` compares rows that say which way is better with those that were written before.
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

Cell = str | float
#: A row is worse if it is so many times the other.
TOLERANCE = 1.1


def option(name: str) -> str | None:
    """Give what follows an option on the command line; empty: nothing does; None: it is not there.

    What begins with a dash is the next option.
    """
    arguments = sys.argv[1:]
    if name not in arguments:
        return None
    following = arguments[arguments.index(name) + 1 :][:1]
    return following[0] if following and not following[0].startswith("-") else ""


def interleave(measures: Mapping[str, Callable[[], float]], *, rounds: int) -> dict[str, float]:
    """Take turns, so that whatever else the machine does falls on all alike; give the medians."""
    taken: dict[str, list[float]] = {name: [] for name in measures}
    for _ in range(rounds):
        for name, measure in measures.items():
            taken[name].append(measure())
    return {name: median(values) for name, values in taken.items()}


def report(title: str, rows: list[dict[str, Cell]], **facts: float) -> None:
    """Print the rows, all with the same columns, in the form the command line asks for."""
    file = option("--json")
    made = json.dumps({"bench": title, "rows": rows, **facts})
    if file == "":
        print(made)
    else:
        if file is not None:
            Path(file).write_text(made + "\n")
        _print_table(rows)
        for name, value in facts.items():
            print(f"{name}: {_text(value)}")
    earlier = option("--against")
    if earlier is not None:
        sys.exit(_compare(rows, _read_rows(earlier)))


def _print_table(rows: Sequence[Mapping[str, Cell]]) -> None:
    table = [list(rows[0]), *([_text(cell) for cell in row.values()] for row in rows)]
    widths = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
    for first, *others in table:
        padded = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
        print("  ".join([first.ljust(widths[0]), *padded]).rstrip())


def _read_rows(file: str) -> dict[str, Any]:
    try:
        return {row["what"]: row for row in json.loads(Path(file).read_text())["rows"]}
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"--against needs a file that `--json FILE` wrote; {file or 'none'}: {error!r}")


def _compare(rows: Sequence[Mapping[str, Cell]], earlier: Mapping[str, Any]) -> int:
    """Print each row beside the one before; return 1 if one is worse than is tolerated."""
    compared: list[dict[str, Cell]] = []
    for row in rows:
        if row.get("better") not in ("more", "less") or row["what"] not in earlier:
            continue
        now, before = float(row["value"]), float(earlier[str(row["what"])]["value"])
        better = "more" if row["better"] == "more" else "less"
        times = before / now if better == "more" else now / before
        verdict = "WORSE" if times > TOLERANCE else "better" if times < 1 / TOLERANCE else ""
        compared.append(
            {"what": row["what"], "before": before, "now": now, "worse by": times, "": verdict}
        )
    if not compared:
        sys.exit("--against: no row of this bench can be compared with that file.")
    print()
    _print_table(compared)
    return int(any(row[""] == "WORSE" for row in compared))


def _text(cell: Cell) -> str:
    return cell if isinstance(cell, str) else f"{cell:,.4g}" if cell < 1000 else f"{cell:,.0f}"
