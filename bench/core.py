"""What the pure pieces cost, each beside the bare library call it cannot do without."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from timeit import timeit
from zoneinfo import ZoneInfo

from _report import interleave, report
from cronsim import CronSim

from backburner.core.schedule import Cron, next_run_at

CALLS = 1000
ROUNDS = 9
NOW = datetime(2026, 3, 28, 12, 0, tzinfo=UTC)
ZONE = "Europe/Berlin"


@dataclass(frozen=True)
class Pair:
    name: str
    ours: Callable[[], object]
    bare: Callable[[], object]


def cron(expression: str) -> Pair:
    schedule, local = Cron(expression, ZONE), NOW.astimezone(ZoneInfo(ZONE))
    return Pair(
        name=f"next_run_at({expression!r}) beside cronsim",
        ours=lambda: next_run_at(schedule, after=NOW),
        bare=lambda: next(CronSim(expression, local)),
    )


#: One line each; a new piece is one more line.
PAIRS = (
    cron("0 9 * * 1-5"),
    cron("*/5 * * * *"),
    cron("0 0 29 2 *"),
)


def main() -> None:
    measures = {}
    for pair in PAIRS:
        measures[f"{pair.name} ours"] = partial(timeit, pair.ours, number=CALLS)
        measures[f"{pair.name} bare"] = partial(timeit, pair.bare, number=CALLS)
    seconds = interleave(measures, rounds=ROUNDS)
    rows: list[dict[str, str | float]] = []
    for pair in PAIRS:
        ours, bare = (seconds[f"{pair.name} {which}"] / CALLS * 1e6 for which in ("ours", "bare"))
        rows.append({"what": pair.name, "us": ours, "bare us": bare, "ratio": ours / bare})
    report("core", rows, rounds=ROUNDS, calls=CALLS)


if __name__ == "__main__":
    main()
