"""Workers behind PgBouncer, in transaction and in session mode: `soak pooler [COUNT [SEED]]`.

Two work on a stream of tasks, messages, answers and cancels. At the end nothing may be lost or
done twice.
"""

import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from support.faults.invariants import violations
from support.faults.outside import Outside
from support.faults.people import sum_up
from support.faults.soak import make_people, read_seed, report, settle
from support.programs.programs import starter
from support.programs.workers import Workers
from support.servers.pgbouncer import pgbouncer
from support.servers.postgres_server import postgres_server

from backburner.app.clock import Clock
from backburner.store.dialect import is_pooled
from backburner.store.lifecycle.opening import open_database

WISHES = 300
#: Of the pooler to the server: fewer than workers have in transaction mode, all they want in the
#: other.
CONNECTIONS = {"transaction": 3, "session": 60}


def main(arguments: list[str]) -> int:
    count = int(arguments[0]) if arguments else WISHES
    seed = read_seed(arguments)
    return max([try_mode(mode, count, seed) for mode in CONNECTIONS])


def try_mode(mode: str, count: int, seed: int) -> int:
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        postgres_server() as server,
        pgbouncer(server, mode, connections=CONNECTIONS[mode]) as url,
        starter() as start,
    ):
        broken = find_mode(url, mode)
        workers = Workers(start, Path(folder), url)
        direct = ("--database-direct-url", server) if mode == "transaction" else ()
        for _ in range(2):
            workers.start(*direct)
        with Outside(server) as outside:
            people = make_people(outside, seed)
            for _ in range(count):
                people.want_something()
                time.sleep(people.dice.uniform(0, 0.1))
            broken += find_mode(url, mode)
            broken += violations(outside.rows)
            broken += settle(people, workers)
            summary = sum_up(people, workers)
        workers.end()
    summary = f"{mode} mode, {count} wishes with seed {seed}: {summary}"
    return report(summary, broken, began=began)


def find_mode(url: str, mode: str) -> list[str]:
    """See whether the mode of the pooler is told, also while others use it."""
    with closing(open_database(url, Clock().read)) as database:
        is_told = is_pooled(database.engine) == (mode == "transaction")
    return [] if is_told else [f"{mode} mode was not told."]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
