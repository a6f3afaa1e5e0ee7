"""A database that goes away while runs are under way, or whose answers are lost."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.doubles.engine import Call, End, Spend
from support.faults.outside import Outside
from support.faults.postgres_proxy import Proxy, in_thread
from support.programs.programs import PATIENCE, Start
from support.programs.workers import Workers, assert_sound
from support.servers.postgres_server import stopped_postgres

from backburner.core.conversation import Conversation
from backburner.store.dialect import make_engine
from backburner.store.lifecycle.schema import bring_up_to_date

NAMES = ("first", "second", "third", "fourth")
SPENT = 7
#: How soon after its return the database is made use of again, in seconds.
SOON = 10.0


def migrate(url: str) -> None:
    engine = make_engine(url)
    bring_up_to_date(engine)
    engine.dispose()


def give_work(outside: Outside, *, seconds: float, **brief: Any) -> list[Conversation]:
    return [
        outside.task(
            Spend(SPENT),
            Call("send", {"text": name}),
            Call("look", {"text": name, "seconds": seconds}),
            End({"complete": True, "message": f"{name} is done."}),
            **brief,
        )
        for name in NAMES
    ]


def assert_all_done(outside: Outside, workers: Workers, tasks: list[Conversation]) -> None:
    assert_sound(outside, workers)
    assert workers.sent() == sorted(NAMES)
    assert [outside.said(task) for task in tasks] == [[f"{name} is done."] for name in NAMES]
    expected = [f"{name} is done." for name in NAMES if outside.load(tasks[0]).reports_to]
    assert workers.delivered() == sorted(expected)


@pytest.mark.parametrize("gone_for", ["a moment", "longer than a lease"])
def test_a_server_that_was_restarted_is_made_use_of_at_once_and_nothing_is_lost_or_done_twice(
    start: Start, tmp_path: Path, gone_for: str
) -> None:
    with stopped_postgres() as start_server:
        with start_server() as url:
            migrate(url)
            workers = Workers(start, tmp_path, url)
            with Outside(url) as outside:
                tasks = give_work(outside, seconds=1.5)
                # Two have a seat, and two wait for one.
                worker = workers.start("--concurrency", "3")
                outside.wait_for(lambda: len(workers.traces.read("look")) == 2)
        if gone_for == "longer than a lease":
            for _ in range(2):
                worker.running.wait_for_error("run.fenced")
        with start_server() as url, Outside(url) as outside:
            outside.wait_for(lambda: outside.rows("SELECT 1 FROM runs OFFSET 2"), within=SOON)
            assert_all_done(outside, workers, tasks)
            workers.end()


@pytest.fixture
def proxy(migrated_postgres_url: str) -> Proxy:
    return Proxy(migrated_postgres_url)


@pytest.fixture
def workers(proxy: Proxy, start: Start, tmp_path: Path) -> Iterator[Workers]:
    """Give what starts them behind the proxy."""
    with in_thread(proxy.url()) as url:
        workers = Workers(start, tmp_path, url)
        yield workers
        workers.end()


def test_connections_that_are_cut_again_and_again_are_replaced_and_nothing_is_done_twice(
    outside: Outside, proxy: Proxy, workers: Workers
) -> None:
    # Nothing is sent: a part that is being taken when the line is cut waits for a minute.
    tasks = give_work(outside, seconds=0.3, reports_to=())
    workers.start("--concurrency", "2")

    for name in NAMES:
        outside.wait_for(lambda: name in [trace["text"] for trace in workers.traces.read("look")])  # noqa: B023 (waited for here)
        proxy.cut()

    assert_all_done(outside, workers, tasks)


@pytest.mark.parametrize(
    "said",
    ["INSERT INTO outcomes", "INSERT INTO tool_calls", "UPDATE tool_calls", "INSERT INTO spend"],
)
def test_the_answer_to_a_commit_of_a_run_can_be_lost_and_nobody_notices(
    outside: Outside, proxy: Proxy, workers: Workers, said: str
) -> None:
    lost = proxy.lose_answer_to_commit(said.encode())
    tasks = give_work(outside, seconds=0)
    workers.start()

    assert lost.wait(PATIENCE)

    assert_all_done(outside, workers, tasks)
    assert outside.rows("SELECT sum(tokens) FROM spend") == [(SPENT * len(NAMES),)]
    assert outside.rows("SELECT count(*) FROM tool_calls") == [(2 * len(NAMES),)]
    assert outside.rows("SELECT status, count(*) FROM runs GROUP BY status") == [("success", 4)]


def test_a_claim_whose_answer_is_lost_is_given_again_after_its_lease(
    outside: Outside, proxy: Proxy, workers: Workers
) -> None:
    lost = proxy.lose_answer_to_commit(b"INSERT INTO runs")
    tasks = give_work(outside, seconds=0)
    workers.start()

    assert lost.wait(PATIENCE)

    assert_all_done(outside, workers, tasks)
    # A worker that is starved may lose another one as well.
    failed = outside.rows("SELECT failure_kind FROM runs WHERE status <> 'success'")
    assert set(failed) == {("crashed",)}


def test_connections_that_fall_silent_for_ever_are_replaced_and_work_goes_on(
    outside: Outside, proxy: Proxy, workers: Workers
) -> None:
    workers.start()
    first = outside.task(End({"complete": True, "message": "Done."}), reports_to=())
    outside.wait_for(lambda: outside.said(first))

    proxy.fall_silent()
    proxy.let_new_connections_through()

    tasks = give_work(outside, seconds=0, reports_to=())
    outside.wait_for(lambda: all(map(outside.said, tasks)), within=2 * SOON)
    assert_all_done(outside, workers, tasks)


def test_a_worker_ends_in_time_though_its_database_is_silent(
    outside: Outside, proxy: Proxy, workers: Workers
) -> None:
    tasks = give_work(outside, seconds=1.5, reports_to=())
    worker = workers.start("--drain", "1s")
    outside.wait_for(lambda: len(workers.traces.read("look")) == len(tasks))

    proxy.fall_silent()

    # Its own bound is how long `end` waits.
    assert worker.running.end(signal.SIGTERM).code == 0


def test_a_table_that_is_away_for_a_moment_costs_a_moment(
    outside: Outside, workers: Workers
) -> None:
    worker = workers.start()
    outside.rename_table("questions", "elsewhere")
    worker.running.wait_for_error("store.failed")
    outside.rename_table("elsewhere", "questions")

    tasks = give_work(outside, seconds=0, reports_to=())

    assert_all_done(outside, workers, tasks)
    assert outside.rows("SELECT status, count(*) FROM runs GROUP BY status") == [("success", 4)]
