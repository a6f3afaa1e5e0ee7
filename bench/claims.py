"""What taking up work costs: a claim, however much there is of everything; a claim and its commit.

A claim is timed up to its answer, and taken back. A cycle is a claim and the commit of an outcome
with a message, a notice and a delivery, each on the disk; the bare driver runs the very same
statements beside it. `--quick` leaves out the million conversations.
"""

import sys
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from statistics import median, quantiles

from _cycle import Cycles, claim_and_forget
from _databases import BEFORE, LATER, Maker, fill, postgres_databases, sqlite_files, vacuum
from _report import Cell, report
from sqlalchemy import Engine

IS_QUICK = "--quick" in sys.argv[1:]
ROUNDS = 3 if IS_QUICK else 9
#: In each round.
CLAIMS, CYCLES = 40, 100
#: Conversations, of which a hundredth is due, and users.
BASE = (10_000, 100)
SIZES = [BASE, *((100_000, users) for users in (10, 100, 1_000, 10_000))]
if not IS_QUICK:
    SIZES.append((1_000_000, 100))
#: How much longer a claim may take in the largest, and how much of the driver's rate is left.
LONGER, LEFT = "<= 1.2", {"sqlite": ">= 0.25", "postgresql": ">= 0.5"}

Row = dict[str, Cell]


@dataclass
class Measure:
    """What is done in each round; it gives the seconds that each time took."""

    run: Callable[[], list[float]]
    tidy: Callable[[], None] = lambda: None
    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def take(self) -> None:
        start = time.process_time()
        taken = self.run()
        self.cpu.append((time.process_time() - start) / len(taken))
        self.seconds += taken
        self.tidy()

    def row(self, what: str, *, ratio: float, goal: str) -> Row:
        return {
            "what": what,
            "p50 ms": median(self.seconds) * 1e3,
            "p99 ms": quantiles(self.seconds, n=100)[-1] * 1e3,
            "CPU us": median(self.cpu) * 1e6,
            "ratio": ratio,
            "goal": goal,
        }


def main() -> None:
    rows: list[Row] = []
    for name, databases in {"sqlite": sqlite_files, "postgresql": postgres_databases}.items():
        with databases() as make:
            rows += measure_claims(name, make)
            with make() as engine:
                rows += measure_cycles(name, engine)
    report("claims", rows, rounds=ROUNDS)


def measure_claims(name: str, make: Maker) -> list[Row]:
    """Compare each to that in the base with the same share due."""
    measures: dict[tuple[tuple[int, int], str], Measure] = {}
    with ExitStack() as opened:
        for size in SIZES:
            engine = opened.enter_context(make())
            fill(engine, conversations=size[0], due=size[0] // 100, people=size[1])
            for state, now in {"1 % due": LATER, "none due": BEFORE}.items():
                measures[size, state] = Measure(partial(claim_and_forget, engine, now, CLAIMS))
        interleave(measures.values())
    return [
        measure.row(
            f"{name}: claim, {size[0]:,} conversations, {size[1]:,} users, {state}",
            ratio=median(measure.seconds) / median(measures[BASE, state].seconds),
            goal=LONGER if size[0] == 1_000_000 else "",
        )
        for (size, state), measure in measures.items()
    ]


def measure_cycles(name: str, engine: Engine) -> list[Row]:
    """Compare the rate of each to that of the driver."""
    fill(engine, conversations=10_000, due=CYCLES, people=10)
    cycles = Cycles(engine, CYCLES)

    def tidy() -> None:
        cycles.put_back()
        vacuum(engine)

    bare = Measure(cycles.through_driver, tidy)
    store, thread = Measure(cycles.through_store, tidy), Measure(cycles.through_thread, tidy)
    interleave([bare, store, thread])
    what, took = f"{name}: claim and commit through", median(bare.seconds)
    return [
        bare.row(f"{what} the bare driver", ratio=1, goal=""),
        store.row(f"{what} the store", ratio=took / median(store.seconds), goal=LEFT[name]),
        thread.row(f"{what} a thread", ratio=took / median(thread.seconds), goal=LEFT[name]),
    ]


def interleave(measures: Collection[Measure]) -> None:
    """Take turns, after a round that does not count: plans are made, and pages read."""
    for number in range(ROUNDS + 1):
        for measure in measures:
            measure.take()
            if number == 0:
                measure.seconds.clear()
                measure.cpu.clear()


if __name__ == "__main__":
    main()
