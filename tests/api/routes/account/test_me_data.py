"""Taking out everything that is one's own, and erasing it."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import select, update
from support.doubles.engine import End, ScriptedEngine, Wait
from support.people.tokens import issue_token
from support.requirements import requirement
from support.stage.make import MATE, STRANGER, USER
from support.stage.stage import Stage
from support.stage.stages import clock, database

from backburner.actions import personal_data
from backburner.api.app import build_api
from backburner.app.backup import back_up_to_unnamed_file
from backburner.app.folder import remove_folder
from backburner.bus.local import LocalBus
from backburner.core.accounts import Scope
from backburner.core.errors import MachineFailed
from backburner.core.ids import UserId
from backburner.store import tables
from backburner.store.accounts.personal_data import LEFT_OUT, PARTS
from backburner.store.db import Database

__all__ = ["clock", "database"]

ASKS = {
    "needs_input": True,
    "message": "Hm.",
    "question": {"type": "confirmation", "prompt": "Go on?"},
}
SURE = {"confirm": personal_data.ERASE_CONFIRMATION}


@pytest.fixture
def stage(database: Database, tmp_path: Path) -> Stage:
    return Stage(
        database,
        LocalBus(),
        ScriptedEngine(),
        remove_files=lambda user: remove_folder(tmp_path / "workspaces", user),
        copy_database=lambda: back_up_to_unnamed_file(database, tmp_path),
    )


@pytest.fixture
async def sign_in(stage: Stage) -> AsyncIterator[Callable[..., Any]]:
    api = build_api(stage.deps, hosts={"localhost"}, checks={})
    opened = []

    async def sign_in(user: UserId, *scopes: Scope) -> httpx2.AsyncClient:
        stage.user(user)
        wanted = scopes or (Scope.READ, Scope.WRITE, Scope.APPROVE)
        token = await issue_token(stage.deps, user, wanted, name=f"token of {user}")
        opened.append(
            httpx2.AsyncClient(
                transport=httpx2.ASGITransport(app=api),
                base_url="http://localhost",
                headers={"authorization": f"Bearer {token}"},
            )
        )
        return opened[-1]

    yield sign_in
    for client in opened:
        await client.aclose()


def make_operator(stage: Stage, user: UserId) -> None:
    change = update(tables.users).where(tables.users.c.id == stage.user(user))
    stage.database.run(lambda tx: tx.connection.execute(change.values(role="operator")))


def listed(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


def rows_of(stage: Stage, user: UserId) -> dict[str, int]:
    """Count what there is of somebody, in whatever table."""
    owned = [one for one in tables.metadata.sorted_tables if "user_id" in one.c]
    queries = {one.name: select(one).where(one.c.user_id == user) for one in owned}
    queries["users"] = select(tables.users).where(tables.users.c.id == user)
    found = stage.database.run(
        lambda tx: {name: len(tx.connection.execute(q).all()) for name, q in queries.items()}
    )
    return {name: count for name, count in found.items() if count}


@requirement("Z-mine")
async def test_everything_of_ones_own_is_in_the_copy(
    stage: Stage, sign_in: Callable[..., Any]
) -> None:
    client = await sign_in(USER)
    stage.engine.then(End(text="Hello yourself."))
    stage.engine.then(End(outcome=ASKS))
    chat = await stage.chat()
    await stage.say(chat, "Hello there")
    await stage.work()
    task = await stage.task(title="Look after it")
    await stage.work()
    answer = await client.get("/api/export")
    found = answer.json()

    assert answer.status_code == 200
    assert found["format"] == "backburner"
    assert found["profile"]["id"] == USER
    assert {one["id"] for one in found["conversations"]} == {chat.id, task.id}
    assert {"Hello there", "Hello yourself.", "Hm."} <= {m["content"] for m in found["messages"]}
    said = {one["content"]: one["conversation_id"] for one in found["messages"]}
    assert (said["Hello there"], said["Hm."]) == (chat.id, task.id)
    assert [one["prompt"] for one in found["questions"]] == ["Go on?"]
    assert sorted(one["kind"] for one in found["runs"]) == ["background", "reply"]
    told = [one["prompt"] for one in found["outcomes"]]
    assert sorted(told) == sorted(request.prompt for request in stage.engine.requests)
    assert found["notices"][0]["text"] == "Go on?"
    contexts = {one["id"]: one["context"] for one in found["conversations"]}
    assert (contexts[chat.id], contexts[task.id]["prompt"]) == ({}, "Do it.")
    assert set(found) == {"format", "version", "exported_at", "profile", *PARTS}
    # Rows are numbered for everybody together on PostgreSQL: that is nobody's business.
    assert not any("number" in row for part in PARTS for row in found[part])


async def test_no_secret_and_nothing_of_others_is_in_the_copy(
    stage: Stage, sign_in: Callable[..., Any]
) -> None:
    client, other = await sign_in(USER), await sign_in(STRANGER)
    hashed = update(tables.users).values(password="argon-canary")  # noqa: S106
    stage.database.run(lambda tx: tx.connection.execute(hashed))
    theirs = await stage.chat(STRANGER)
    await stage.say(theirs, "stranger-canary")
    text = (await client.get("/api/export")).text

    assert "canary" not in text
    assert STRANGER not in text
    for one in (client, other):
        assert one.headers["authorization"].split()[1] not in text
    digests = stage.database.run(
        lambda tx: tx.connection.execute(select(tables.credentials.c.digest)).scalars().all()
    )
    assert not any(digest in text for digest in digests)
    assert "stranger-canary" in (await other.get("/api/export")).text


def test_of_every_table_somebody_decided_whether_it_is_taken_out() -> None:
    owned = {one.name for one in tables.metadata.sorted_tables if "user_id" in one.c}

    assert owned <= {*PARTS, *LEFT_OUT}
    assert {part.table.name for part in PARTS.values()} == set(PARTS)


async def test_more_than_fits_at_once_is_taken_out_in_order(
    stage: Stage, sign_in: Callable[..., Any]
) -> None:
    client = await sign_in(USER)
    chat = await stage.chat()
    for number in range(personal_data.EXPORT_BATCH + 5):
        await stage.say(chat, f"message {number}")
    said = [one["content"] for one in (await client.get("/api/export")).json()["messages"]]

    assert said == [f"message {number}" for number in range(personal_data.EXPORT_BATCH + 5)]


@requirement("Z-mine")
async def test_whoever_erases_leaves_no_row_and_no_file_and_others_keep_theirs(
    stage: Stage, sign_in: Callable[..., Any], tmp_path: Path
) -> None:
    client, other = await sign_in(USER), await sign_in(MATE)
    for user in (USER, MATE):
        (tmp_path / "workspaces" / user).mkdir(parents=True)
        (tmp_path / "workspaces" / user / "notes.txt").write_text("mine")
    chat, theirs = await stage.chat(), await stage.chat(MATE)
    await stage.say(chat, "Hello")
    await stage.say(theirs, "Hello")
    await stage.task(reports_to=())
    await stage.work()
    before = rows_of(stage, MATE)
    answer = await client.post("/api/erase", json=SURE)

    assert answer.status_code == 204
    assert rows_of(stage, USER) == {}
    assert rows_of(stage, MATE) == before
    assert not (tmp_path / "workspaces" / USER).exists()
    assert (tmp_path / "workspaces" / MATE / "notes.txt").exists()
    assert (await client.get("/api/export")).status_code == 401
    assert (await other.get("/api/export")).status_code == 200


@pytest.mark.parametrize("body", [{"confirm": "yes"}, {"confirm": ""}, {}, {**SURE, "more": 1}])
async def test_nothing_is_erased_that_was_not_confirmed(
    stage: Stage, sign_in: Callable[..., Any], body: dict[str, Any]
) -> None:
    client = await sign_in(USER)
    answer = await client.post("/api/erase", json=body)

    assert answer.status_code in (400, 422)
    assert rows_of(stage, USER)["users"] == 1


async def test_a_credential_that_only_reads_erases_nothing(
    stage: Stage, sign_in: Callable[..., Any]
) -> None:
    client = await sign_in(USER, Scope.READ)

    assert (await client.post("/api/erase", json=SURE)).status_code == 403
    assert rows_of(stage, USER)["users"] == 1


async def test_the_last_operator_stays_as_long_as_there_are_others(
    stage: Stage, sign_in: Callable[..., Any]
) -> None:
    client = await sign_in(USER)
    make_operator(stage, USER)
    stage.user(MATE)
    refused = await client.post("/api/erase", json=SURE)
    make_operator(stage, MATE)
    erased = await client.post("/api/erase", json=SURE)

    assert refused.status_code == 409
    assert "operator" in refused.json()["hint"]
    assert erased.status_code == 204


async def test_the_only_one_there_is_can_erase_everything(
    stage: Stage, sign_in: Callable[..., Any]
) -> None:
    client = await sign_in(USER)
    make_operator(stage, USER)

    assert (await client.post("/api/erase", json=SURE)).status_code == 204


async def test_what_is_under_way_is_stopped_first(
    stage: Stage, sign_in: Callable[..., Any]
) -> None:
    client = await sign_in(USER)
    stage.engine.then(Wait())
    chat = await stage.chat()
    await stage.say(chat, "Hello")
    await stage.take_up()
    erasing = asyncio.create_task(client.post("/api/erase", json=SURE))
    async with asyncio.timeout(20):
        while not erasing.done():
            # Here nobody hears of anything but when its lease is renewed.
            await stage.renew()
            await asyncio.wait([erasing], timeout=0.01)
    await stage.idle()

    assert (await erasing).status_code == 204
    assert rows_of(stage, USER) == {}


async def test_files_that_cannot_be_removed_leave_the_account_to_try_again_with(
    stage: Stage,
) -> None:
    stage.user(USER)
    failures = [MachineFailed("The disk is gone.", permanent=True)]

    async def remove(user: UserId) -> None:
        assert user == USER
        if failures:
            raise failures.pop()

    deps = replace(stage.deps, remove_files=remove)
    with pytest.raises(MachineFailed):
        await personal_data.erase(deps, USER, personal_data.ERASE_CONFIRMATION)
    assert rows_of(stage, USER)["users"] == 1

    await personal_data.erase(deps, USER, personal_data.ERASE_CONFIRMATION)
    assert rows_of(stage, USER) == {}


async def test_an_operator_gets_a_copy_of_the_whole_that_leaves_no_file_behind(
    stage: Stage, sign_in: Callable[..., Any], tmp_path: Path
) -> None:
    client = await sign_in(USER, *Scope)
    make_operator(stage, USER)
    before = listed(tmp_path)
    answer = await client.post("/api/backup")
    copy = tmp_path / "copy"
    copy.write_bytes(answer.content)
    with closing(sqlite3.connect(copy)) as found:
        (count,) = found.execute("SELECT count(*) FROM users").fetchone()
    copy.unlink()

    assert answer.status_code == 200
    assert count == 1
    assert listed(tmp_path) == before


async def test_nobody_else_gets_one(sign_in: Callable[..., Any]) -> None:
    client = await sign_in(USER, *Scope)

    assert (await client.post("/api/backup")).status_code == 403
    assert json.loads((await client.post("/api/backup")).text)["status"] == 403
