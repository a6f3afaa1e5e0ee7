"""Shared by soaks: arguments, a migrated database, the rules at the end, and the report."""

import random
import time
from collections.abc import Sequence

from backburner.store.dialect import make_engine
from backburner.store.lifecycle.schema import bring_up_to_date
from support.faults.invariants import violations_at_rest
from support.faults.outside import Outside
from support.faults.people import People
from support.programs.workers import Workers


def read_seed(arguments: Sequence[str]) -> int:
    """Return the seed, which follows the amount; without one, a new seed."""
    return int(arguments[1]) if len(arguments) > 1 else random.SystemRandom().randrange(10**6)


def migrate(url: str) -> None:
    engine = make_engine(url)
    bring_up_to_date(engine)
    engine.dispose()


def make_people(outside: Outside, seed: int) -> People:
    return People(outside, random.Random(seed))  # noqa: S311 (it has to be repeatable)


def settle(people: People, workers: Workers) -> list[str]:
    """Let all work settle, and find what was lost or done twice."""
    return [
        *people.settle(),
        *violations_at_rest(people.outside.rows, workers.traces),
        *people.disappointments(workers),
    ]


def report(summary: str, broken: Sequence[str], *, began: float) -> int:
    """Print the violations and the summary; return the exit code."""
    took = time.monotonic() - began
    summary = f"{summary}, {len(broken)} violations in {took:,.0f} s"
    print(*broken, summary, sep="\n", flush=True)  # noqa: T201 (the output of a program)
    return 1 if broken else 0
