"""`backburner up` and its database, as real processes."""

import json
import signal
import time
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import psycopg
import pytest
from support.programs.programs import Start
from support.servers.postgres_server import postgres_server, somebody_waits

from backburner.store.lifecycle.schema import MIGRATION_LOCK

#: Bait: it must not be shown anywhere.
PASSWORD = "correct-horse"  # noqa: S105 (it is the bait)


def get(url: str) -> Any:
    try:
        with urlopen(url, timeout=10) as answer:  # noqa: S310 (an address we were just told)
            return json.load(answer)
    except HTTPError as error:
        with error:
            return json.load(error)


@pytest.mark.starts
def test_a_second_one_in_the_same_folder_is_refused_in_one_line(
    start: Start, tmp_path: Path
) -> None:
    arguments = ("up", "--port", "0", "--data", tmp_path)
    running = start(*arguments)
    address = running.wait_until_ready()
    refused = start(*arguments).end()

    assert refused.code == 1
    assert refused.out == []
    assert len(refused.err) == 1
    assert f"Process {running.process.pid} has the database file" in refused.err[0]
    assert get(f"{address}/ready")["status"] == "ready"
    assert running.end(signal.SIGTERM).code == 0


def test_without_its_database_it_is_not_ready_and_no_log_line_shows_the_password(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with postgres_server() as url:
        with_password = url.replace("postgres@", f"postgres:{PASSWORD}@")
        monkeypatch.setenv("BACKBURNER_DATABASE_URL", with_password)
        running = start("up", "--port", "0", "--data", tmp_path, "--log-level", "debug")
        address = running.wait_until_ready()
        before = get(f"{address}/ready?token={PASSWORD}")
    # The result is kept for a second.
    while (after := get(f"{address}/ready"))["status"] == "ready":
        time.sleep(0.1)
    health = get(f"{address}/health")
    ended = running.end(signal.SIGINT)
    err = "\n".join(ended.err)

    assert before["checks"]["database"] == "ok"
    assert after["checks"] == {
        "data folder": "ok",
        "database": "failed",
        "worker": "ok",
        "queue": "ok",
    }
    assert health["status"] == "ok"
    assert ended.code == 0
    assert "Running upgrade" in err
    assert '"GET /ready HTTP/1.1"' in err
    assert "readiness.check_failed" in err
    assert PASSWORD not in err


def test_an_interrupt_ends_the_wait_for_somebody_who_migrates(
    start: Start, empty_postgres_url: str, tmp_path: Path
) -> None:
    with psycopg.connect(empty_postgres_url, autocommit=True) as connection:
        connection.execute(f"SELECT pg_advisory_lock({MIGRATION_LOCK})")
        running = start(
            *("up", "--port", "0", "--data", tmp_path, "--database-url", empty_postgres_url)
        )
        while not somebody_waits(connection):
            assert running.process.poll() is None, running.end()
            time.sleep(0.05)
        ended = running.end(signal.SIGINT)

    assert ended.code == 0
    assert ended.out == ["Stopped."]
