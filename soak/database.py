"""A PostgreSQL in trouble: `soak database [SECONDS [SEED]]`, each trouble for so many seconds.

Two workers go on with a stream of tasks, messages, answers and cancels. After each trouble new work
has to be done soon. Then both are told to stop while the whole server stands still, and have to end
in time. At the end all is let settle, and nothing may be lost or done twice.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import psycopg
from support.doubles.engine import Call, End, Say
from support.faults.invariants import violations
from support.faults.outside import Outside
from support.faults.people import USERS, People, sum_up
from support.faults.postgres_proxy import Proxy, in_thread
from support.faults.soak import make_people, migrate, read_seed, report, settle
from support.programs.programs import starter
from support.programs.workers import Worker, Workers
from support.servers.postgres_server import postgres_server

SECONDS = 45.0
#: How soon new work is done after a trouble, and where old connections stay silent for ever.
SOON, LATER = 10.0, 30.0
#: Told apart from the connections of those who give them work.
WORKERS = "soak workers"
OPTIONS = ("--lease", "10s", "--heartbeat", "2s", "--drain", "20s")
#: How soon a worker ends, with the usual 20 seconds for its runs.
STOPPED = 30.0
#: What PostgreSQL says when a file cannot grow.
FULL = """
CREATE FUNCTION disk_is_full() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = '53100'; END $$
"""

Trouble = Callable[[], AbstractContextManager[None]]


class Troubles:
    def __init__(self, url: str, proxy: Proxy) -> None:
        self._url, self._proxy = url, proxy
        self._one = psycopg.connect(url, autocommit=True)

    def all(self) -> dict[str, tuple[Trouble, float]]:
        return {
            "a user locked": (lambda: self._locked("users", 1), SOON),
            "three conversations locked": (lambda: self._locked("conversations", 3), SOON),
            "a table away": (self._table_away, SOON),
            "a full disk": (self._full, SOON),
            "a backend stopped": (lambda: self._stopped(1), SOON),
            "all backends stopped": (lambda: self._stopped(100), SOON),
            "everything silent": (self._silent, LATER),
            "a pooler without its server": (self._only_sign_in, LATER),
            "old connections silent for ever": (self._half_silent, LATER),
        }

    def close(self) -> None:
        self._one.close()

    @contextmanager
    def _locked(self, table: str, count: int) -> Iterator[None]:
        held = "turn_run IS NOT NULL" if table == "conversations" else "true"
        with psycopg.connect(self._url) as holder:
            lock = f"SELECT 1 FROM {table} WHERE {held} LIMIT {count} FOR UPDATE"  # noqa: S608 (constants)
            holder.execute(lock)
            yield

    @contextmanager
    def _table_away(self) -> Iterator[None]:
        self._one.execute("ALTER TABLE questions RENAME TO elsewhere")
        try:
            yield
        finally:
            self._one.execute("ALTER TABLE elsewhere RENAME TO questions")

    @contextmanager
    def _full(self) -> Iterator[None]:
        self._one.execute(FULL)
        for table in ("runs", "messages", "spend"):
            self._one.execute(
                f"CREATE TRIGGER is_full BEFORE INSERT ON {table} EXECUTE FUNCTION disk_is_full()"
            )
        try:
            yield
        finally:
            self._one.execute("DROP FUNCTION disk_is_full CASCADE")

    @contextmanager
    def _stopped(self, count: int) -> Iterator[None]:
        query = (
            "SELECT pid FROM pg_stat_activity WHERE application_name = %s"
            " ORDER BY state_change DESC LIMIT %s"
        )
        pids = [pid for (pid,) in self._one.execute(query, (WORKERS, count))]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    @contextmanager
    def server_stopped(self) -> Iterator[None]:
        ((file,),) = self._one.execute("SELECT pg_read_file('postmaster.pid')")
        server = int(file.split()[0])
        os.kill(server, signal.SIGSTOP)
        try:
            with self._stopped(100):
                yield
        finally:
            os.kill(server, signal.SIGCONT)

    @contextmanager
    def _silent(self) -> Iterator[None]:
        self._proxy.fall_silent()
        try:
            yield
        finally:
            self._proxy.let_new_connections_through()

    @contextmanager
    def _only_sign_in(self) -> Iterator[None]:
        self._proxy.only_sign_in()
        self._proxy.cut()
        try:
            yield
        finally:
            self._proxy.let_new_connections_through()

    @contextmanager
    def _half_silent(self) -> Iterator[None]:
        self._proxy.fall_silent()
        self._proxy.let_new_connections_through()
        yield


def main(arguments: list[str]) -> int:
    seconds = float(arguments[0]) if arguments else SECONDS
    seed = read_seed(arguments)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, postgres_server() as url, starter() as start:
        migrate(url)
        proxy = Proxy(url)
        with in_thread(proxy.url()) as through, Outside(url) as outside:
            workers = Workers(start, Path(folder), f"{through}?application_name={WORKERS}")
            people = make_people(outside, seed)
            troubles = Troubles(url, proxy)
            at_work = [workers.start(*OPTIONS), workers.start(*OPTIONS)]
            broken = make_trouble(people, at_work, troubles, seconds)
            broken += end_while_stopped(outside, at_work, troubles)
            troubles.close()
            workers.start(*OPTIONS)
            broken += settle(people, workers)
            summary = sum_up(people, workers)
            workers.end()
    summary = f"troubles of {seconds:.0f} s with seed {seed}: {summary}"
    return report(summary, broken, began=began)


def make_trouble(
    people: People, at_work: list[Worker], troubles: Troubles, seconds: float
) -> list[str]:
    broken: list[str] = []
    for _ in range(20):
        people.want_something()
    for name, (trouble, limit) in troubles.all().items():
        with trouble():
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                people.want_something()
                time.sleep(people.dice.uniform(0, 0.5))
        took = wait_for_new_work(people.outside)
        print(f"{name}: new work was done after {took:.1f} s", flush=True)
        if took > limit:
            broken.append(f"After {name} new work took {took:.0f} s.")
        broken += violations(people.outside.rows)
        broken += [f"{name} ended {one.name}" for one in at_work if one.running.process.poll()]
    return broken


def end_while_stopped(outside: Outside, at_work: list[Worker], troubles: Troubles) -> list[str]:
    """Tell workers with long runs to stop while the whole server stands still."""
    steps = Call("look", {"seconds": 2 * STOPPED}), End({"complete": True, "message": "Done."})
    tasks = [outside.task(*steps, reports_to=()) for _ in range(4)]
    outside.wait_for(lambda: all(map(outside.holder, tasks)), within=120)
    with troubles.server_stopped():
        began = time.monotonic()
        for one in at_work:
            one.running.process.send_signal(signal.SIGTERM)
        try:
            codes = [one.running.end().code for one in at_work]
        except subprocess.TimeoutExpired:
            return ["A worker did not end while the server stood still."]
        took = time.monotonic() - began
    print(f"the whole server stopped: workers ended after {took:.1f} s with {codes}", flush=True)
    return [] if took < STOPPED and not any(codes) else [f"They ended with {codes}, {took:.0f} s."]


def wait_for_new_work(outside: Outside) -> float:
    """Give everybody work and a reply to wait for, and wait for all of it."""
    began = time.monotonic()
    chats = [outside.chat(user=user) for user in USERS]
    for chat in chats:
        outside.say(chat, Say("Here."))
    tasks = [
        outside.task(End({"complete": True, "message": "Done."}), user=user, reports_to=())
        for user in USERS
    ]
    outside.wait_for(lambda: all(outside.said(one) for one in [*chats, *tasks]), within=120)
    return time.monotonic() - began


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
