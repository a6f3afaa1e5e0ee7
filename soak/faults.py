"""Workers that are killed at random moments: `soak faults [COUNT [SEED]]`, on a PostgreSQL.

Two work on a stream of tasks, messages, answers and cancels; one after the other is killed and
replaced. At the end all is let settle, and nothing may be lost or done twice.
"""

import random
import sys
import tempfile
import time
from pathlib import Path

from support.faults.invariants import violations, violations_at_rest
from support.faults.outside import Outside
from support.faults.people import People, sum_up
from support.programs.programs import starter
from support.programs.workers import Workers
from support.servers.postgres_server import postgres_server

from backburner.store.dialect import make_engine
from backburner.store.lifecycle.schema import bring_up_to_date

KILLS = 200


def main(arguments: list[str]) -> int:
    kills = int(arguments[0]) if arguments else KILLS
    seed = int(arguments[1]) if len(arguments) > 1 else random.SystemRandom().randrange(10**6)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, postgres_server() as url, starter() as start:
        engine = make_engine(url)
        bring_up_to_date(engine)
        engine.dispose()
        workers = Workers(start, Path(folder), url)
        with Outside(url) as outside:
            people = People(outside, random.Random(seed))  # noqa: S311 (it has to be repeatable)
            broken = kill_again_and_again(people, workers, kills)
            broken += people.settle()
            broken += violations_at_rest(outside.rows, workers.traces)
            broken += people.disappointments(workers)
            summary = sum_up(people, workers)
            workers.end()
    for violation in broken:
        print(violation)
    print(
        f"{kills} kills with seed {seed}: {summary}, {len(broken)} violations"
        f" in {time.monotonic() - began:,.0f} s"
    )
    return 1 if broken else 0


def kill_again_and_again(people: People, workers: Workers, kills: int) -> list[str]:
    broken: list[str] = []
    at_work = [workers.start(), workers.start()]
    for _ in range(kills):
        for _ in range(people.dice.randrange(2, 9)):
            people.want_something()
            time.sleep(people.dice.uniform(0, 0.25))
        at_work.pop(people.dice.randrange(2)).kill()
        at_work.append(workers.start())
        broken += violations(people.outside.rows)
    return broken


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
