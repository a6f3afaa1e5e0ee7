"""The server as it is put together: what `/ready` finds out."""

import asyncio
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from sqlalchemy import text, update
from support.people.a_token import TOKEN, put_token
from support.people.users import add_user

from backburner.actions.accounts import credentials
from backburner.app.build import App, build
from backburner.app.clock import Clock
from backburner.app.machines import Machines
from backburner.app.server import build_server_api, build_worker_api
from backburner.app.urls import host_in_url, link_url
from backburner.bus.local import LocalBus
from backburner.core.accounts import CredentialKind
from backburner.core.errors import StoreFailed
from backburner.core.ids import new_user_id
from backburner.settings import load
from backburner.store import tables
from backburner.store.db import Database
from backburner.store.lifecycle.opening import open_database
from backburner.store.tx import Tx

#: Of any wait here, in seconds; only what is broken takes as long.
BOUND = 60
OPERATOR = {"authorization": f"Bearer {TOKEN}"}
OK = {"data folder": "ok", "database": "ok", "worker": "ok", "queue": "ok"}


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    settings, clock = load(data=str(tmp_path / "data")), Clock()
    settings.data.mkdir()
    url = settings.database.get_secret_value()
    with closing(open_database(url, clock.read)) as database:
        yield build(settings, clock, database, LocalBus(), Machines())


async def test_lines_of_several_programs_are_split_into_steps(app: App) -> None:
    assert app.deps.read_line is not None
    assert [step.words for step in app.deps.read_line("a b | c")] == [("a", "b"), ("c",)]


async def ready(app: App) -> tuple[int, dict[str, str]]:
    transport = httpx2.ASGITransport(app=build_server_api(app))
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        answer = await client.get("/ready")
    return answer.status_code, answer.json()["checks"]


def fill_disk(database: Database) -> None:
    """Let the file grow no more, as on a full disk."""
    pages = database.run(lambda tx: tx.connection.exec_driver_sql("PRAGMA page_count").scalar_one())
    limit_pages(database, pages)


def limit_pages(database: Database, pages: int) -> None:
    statement = f"PRAGMA max_page_count = {pages}"
    database.run(lambda tx: tx.connection.exec_driver_sql(statement).all())


def write_much(tx: Tx) -> None:
    tx.connection.execute(
        text("INSERT INTO install (key, value) VALUES ('much', :much)"), {"much": "x" * 100_000}
    )


async def test_a_server_is_ready(app: App) -> None:
    assert await ready(app) == (200, OK)


#: Serves until it is ready, and prints its address and that of links.
SERVES = """
import asyncio, os, sys
from contextlib import closing
from backburner.app.build import build
from backburner.app.clock import Clock
from backburner.app.machines import Machines
from backburner.app.server import serve
from backburner.bus.local import LocalBus
from backburner.settings import load
from backburner.store.lifecycle.opening import open_database

settings = load(data=sys.argv[1], port=0, public_url=sys.argv[2])
settings.data.mkdir()

def announce(address):
    print(address, app.deps.base_url, flush=True)
    os._exit(0)

with closing(open_database(settings.database.get_secret_value(), Clock().read)) as database:
    app = build(settings, Clock(), database, LocalBus(), Machines())
    asyncio.run(serve(app, announce=announce, welcome=print, works=False))
"""


@pytest.mark.parametrize("public_url", ["", "https://bb.example"])
def test_a_server_sends_notices_with_the_address_that_it_listens_on(
    tmp_path: Path, public_url: str
) -> None:
    command = [sys.executable, "-c", SERVES, str(tmp_path / "data"), public_url]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=BOUND)

    address, url = ended.stdout.splitlines()[-1].split(" ")
    assert re.fullmatch(r"http://127\.0\.0\.1:[1-9]\d*", address)
    assert url == (public_url or address)


@pytest.mark.parametrize(
    ("values", "url"),
    [({"port": 9000}, ""), ({"public_url": "https://bb.example"}, "https://bb.example")],
)
def test_a_worker_knows_no_server_but_that_of_the_settings(
    app: App, tmp_path: Path, values: dict[str, Any], url: str
) -> None:
    settings = load(data=str(tmp_path / "data"), **values)

    assert build(settings, app.clock, app.database, LocalBus(), Machines()).deps.base_url == url


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "https://127.0.0.1:1"),
        ("::1", "https://[::1]:1"),
        ("192.0.2.7", "https://192.0.2.7:1"),
        # Nobody knows by which name others reach it.
        ("0.0.0.0", ""),  # noqa: S104
        ("::", ""),
    ],
)
def test_an_address_that_people_cannot_open_is_not_sent(
    tmp_path: Path, host: str, url: str
) -> None:
    for name in ("certificate", "key"):
        (tmp_path / name).touch()
    files = {"tls_certificate": tmp_path / "certificate", "tls_key": tmp_path / "key"}

    settings = load(data=tmp_path, host=host, **files)

    assert link_url(settings, f"https://{host_in_url(host)}:1") == url


async def test_a_server_on_a_full_disk_is_not_ready_and_says_that_it_is_full(app: App) -> None:
    fill_disk(app.database)

    with pytest.raises(StoreFailed, match=r"^The disk is full\. Free some space"):
        await app.database.transact(write_much)

    assert await ready(app) == (503, OK | {"database": "failed"})
    limit_pages(app.database, 2**30)
    await app.database.transact(write_much)
    assert app.database.errors == {"disk_full": 1}


async def test_a_server_whose_database_is_read_only_is_not_ready(app: App) -> None:
    app.database.run(lambda tx: tx.connection.exec_driver_sql("PRAGMA query_only = ON"))

    assert await ready(app) == (503, OK | {"database": "failed"})


async def test_a_worker_counts_its_runs_for_whoever_may_read_metrics(app: App) -> None:
    def begin(tx: Tx) -> None:
        add_user(tx, user := new_user_id())
        tx.connection.execute(update(tables.users).values(role="operator"))
        put_token(tx.connection, user)

    app.database.run(begin)
    app.worker.finished["success"] = 3
    transport = httpx2.ASGITransport(app=build_worker_api(app))
    async with httpx2.AsyncClient(transport=transport, base_url="http://worker:9100") as client:
        refused = await client.get("/metrics")
        answer = await client.get("/metrics", headers=OPERATOR)
        other = await client.get("/api/me", headers=OPERATOR)

    assert (refused.status_code, answer.status_code, other.status_code) == (401, 200, 404)
    assert 'backburner_runs_finished_total{outcome="success"} 3' in answer.text
    assert 'backburner_ready{check="worker"} 1' in answer.text


async def test_a_worker_refuses_pages_of_other_sites_in_words(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def identify(_deps: object, _secret: str) -> object:
        return SimpleNamespace(credential="k_1", kind=CredentialKind.SESSION)

    monkeypatch.setattr(credentials, "identify", identify)
    transport = httpx2.ASGITransport(app=build_worker_api(app))
    halves: dict[str, Any] = {
        "cookies": {"backburner": "a"},
        "headers": {"x-backburner-session": "b", "origin": "http://elsewhere"},
    }
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://worker:9100", **halves
    ) as client:
        assert (await client.get("/metrics")).status_code == 403


async def test_a_server_whose_data_folder_is_gone_is_not_ready(app: App) -> None:
    shutil.rmtree(app.settings.data)

    assert await ready(app) == (503, OK | {"data folder": "failed", "database": "failed"})


async def test_a_server_whose_worker_stands_still_is_not_ready(app: App) -> None:
    app.worker.looked_at = asyncio.get_running_loop().time() - 60

    assert await ready(app) == (503, OK | {"worker": "failed"})
