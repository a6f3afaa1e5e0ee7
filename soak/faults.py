"""Workers that are killed at random moments: `soak faults [COUNT [SEED]]`, on a PostgreSQL.

Two work on a stream of tasks, messages, answers and cancels; one after the other is killed and
replaced. At the end all is let settle, and nothing may be lost or done twice.
"""

import sys
import tempfile
import time
from pathlib import Path

from support.faults.invariants import violations
from support.faults.outside import Outside
from support.faults.people import People, sum_up
from support.faults.soak import make_people, migrate, read_seed, report, settle
from support.programs.programs import starter
from support.programs.workers import Workers
from support.servers.postgres_server import postgres_server

KILLS = 200


def main(arguments: list[str]) -> int:
    kills = int(arguments[0]) if arguments else KILLS
    seed = read_seed(arguments)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, postgres_server() as url, starter() as start:
        migrate(url)
        workers = Workers(start, Path(folder), url)
        with Outside(url) as outside:
            people = make_people(outside, seed)
            broken = kill_again_and_again(people, workers, kills)
            broken += settle(people, workers)
            summary = sum_up(people, workers)
            workers.end()
    return report(f"{kills} kills with seed {seed}: {summary}", broken, began=began)


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
