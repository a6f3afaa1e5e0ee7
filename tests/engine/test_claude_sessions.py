"""Sessions of Claude Code: entries taken at safe points, stored in the database, and restored."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import SessionKey, SessionStoreEntry, project_key_for_directory
from claude_agent_sdk.testing import run_session_store_conformance
from support.doubles.clock import SetClock
from support.stage.scene import Scene

from backburner.core.errors import SessionGone
from backburner.engine.claude.sessions import (
    TranscriptMirror,
    dump_entry,
    load_entry,
    write_transcripts,
)
from backburner.store import tables
from backburner.store.db import Database
from backburner.store.dialect import make_engine

KEY: SessionKey = {"project_key": "p", "session_id": "s"}


def said(text: str) -> Any:
    return {"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}}


def called(*ids: str) -> Any:
    content = [{"type": "tool_use", "id": call_id} for call_id in ids]
    return {"type": "assistant", "message": {"content": content}}


def gave(call_id: str) -> Any:
    content = [{"type": "tool_result", "tool_use_id": call_id}]
    return {"type": "user", "message": {"content": content}}


def asked(text: str) -> Any:
    return {"type": "user", "message": {"content": text}}


async def take(*entries: Any, ended: bool = False) -> list[Any]:
    mirror = TranscriptMirror()
    await mirror.append(KEY, list(entries))
    return [load_entry(text)[1] for text in mirror.take(ended=ended).entries]


async def test_the_mirror_is_a_session_store_as_the_sdk_defines_it() -> None:
    def fresh() -> Any:
        return TranscriptMirror()

    await run_session_store_conformance(fresh)


async def test_during_a_turn_only_entries_up_to_complete_results_are_taken() -> None:
    question, call, result, answer = asked("Look."), called("1"), gave("1"), said("Seen.")
    assert await take(question, said("Let me look.")) == []
    assert await take(question, call) == []
    assert await take(question, call, result) == [question, call, result]
    assert await take(question, call, result, answer) == [question, call, result]
    assert await take(question, called("1", "2"), gave("2")) == []
    assert await take(question, call, result, answer, ended=True) == [
        question,
        call,
        result,
        answer,
    ]


async def test_each_entry_is_taken_once() -> None:
    mirror = TranscriptMirror()
    await mirror.append(KEY, [asked("Look."), called("1"), gave("1"), said("Seen.")])
    taken = [mirror.take(ended=ended) for ended in (False, True, True)]
    assert [len(one.entries) for one in taken] == [3, 1, 0]
    assert [one.results for one in taken] == [("1",), (), ()]


async def test_an_api_error_is_not_remembered() -> None:
    failed = {**said("API Error: 500"), "isApiErrorMessage": True}
    assert await take(asked("Look."), failed, ended=True) == [asked("Look.")]


def test_a_session_is_written_where_the_program_looks_for_it(tmp_path: Path) -> None:
    memory = [
        dump_entry("", said("é\u2028")),
        dump_entry("subagents/one", said("b")),
        dump_entry("", said("c")),
    ]
    write_transcripts(tmp_path / "config", tmp_path / "work", "s-1", memory)

    folder = tmp_path / "config" / "projects" / project_key_for_directory(tmp_path / "work")
    main = (folder / "s-1.jsonl").read_text(encoding="utf-8")
    assert [json.loads(line) for line in main.split("\n")[:-1]] == [said("é\u2028"), said("c")]
    assert json.loads((folder / "s-1" / "subagents" / "one.jsonl").read_text()) == said("b")


@pytest.mark.parametrize(
    "text",
    [
        "{no json",
        "[]",
        '["", "text"]',
        "[1, {}]",
        dump_entry("../../outside", said("a")),
        dump_entry("/etc/outside", said("a")),
    ],
)
def test_a_session_with_an_invalid_entry_is_gone(tmp_path: Path, text: str) -> None:
    with pytest.raises(SessionGone):
        write_transcripts(tmp_path / "config", tmp_path / "work", "s-1", [text])
    assert not list(tmp_path.rglob("*outside*"))


class StoredSessions:
    """The SDK's `SessionStore`, over our database and the engine's form of entries."""

    def __init__(self, database: Database) -> None:
        scene = Scene(database)
        scene.say(scene.chat())
        self.database, self.turn = database, scene.begin_reply().turn

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        mirror = TranscriptMirror()
        await mirror.append(key, entries)
        kept = mirror.take(ended=True).entries
        self.database.run(lambda tx: tx.sessions.append(self.turn, _session(key), kept))

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        kept = self.database.run(lambda tx: tx.sessions.load(self.turn, _session(key)))
        mirror = TranscriptMirror()
        for subpath, entry in map(load_entry, kept):
            main: SessionKey = {
                "project_key": key["project_key"],
                "session_id": key["session_id"],
            }
            await mirror.append({**main, "subpath": subpath} if subpath else main, [entry])
        return await mirror.load(key)


def _session(key: SessionKey) -> str:
    return f"{key['project_key']}/{key['session_id']}"


@pytest.fixture(params=["sqlite", "postgres"])
def make_database(
    request: pytest.FixtureRequest,
) -> Iterator[Callable[[], Database]]:
    url: str = request.getfixturevalue(f"migrated_{request.param}_url")
    with closing(Database(make_engine(url), SetClock())) as database:
        yield lambda: database


async def test_stored_sessions_conform_to_the_store_of_the_sdk(
    make_database: Callable[[], Database],
) -> None:
    def fresh() -> Any:
        database = make_database()
        database.run(lambda tx: tx.connection.execute(tables.users.delete()))
        return StoredSessions(database)

    await run_session_store_conformance(fresh)
