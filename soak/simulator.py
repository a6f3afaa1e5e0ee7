"""The simulator over many seeds: `soak simulator [COUNT [FIRST]]`, on all cores."""

import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

from support.simulator import Violation, simulate

SEEDS = 10_000
#: Seeds that one process takes at a time.
SHARE = 50


def main(arguments: list[str]) -> int:
    count = int(arguments[0]) if arguments else SEEDS
    first = int(arguments[1]) if len(arguments) > 1 else 0
    shares = [range(seed, min(seed + SHARE, first + count)) for seed in steps(first, count)]
    began = time.monotonic()
    broken: list[str] = []
    with ProcessPoolExecutor(os.cpu_count()) as processes:
        for number, found in enumerate(processes.map(try_seeds, shares), 1):
            broken += found
            for violation in found:
                print(f"\r{violation}")
            done = min(number * SHARE, count)
            print(f"\r{done:,} seeds, {len(broken)} violations", end="", flush=True)
    print(f" in {time.monotonic() - began:,.0f} s")
    return 1 if broken else 0


def steps(first: int, count: int) -> Iterator[int]:
    yield from range(first, first + count, SHARE)


def try_seeds(seeds: range) -> list[str]:
    found = []
    for seed in seeds:
        try:
            simulate(seed)
        except Violation as violation:
            found.append(str(violation))
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
