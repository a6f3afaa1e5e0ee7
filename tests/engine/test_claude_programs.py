"""Programs of the Claude engine: kept warm for chats, replaced when needed, always ended."""

import asyncio
import os
import re
import subprocess
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from support.contracts.engine.harness import RecordingGate
from support.doubles import tools
from support.model_api import CallTool, ModelApi, Say, Stall
from support.stage import make
from support.stage.until import until

from backburner.core.errors import EngineFailed
from backburner.core.ids import ConversationId
from backburner.core.outcome import OUTCOME_SCHEMA
from backburner.core.run import RunKind
from backburner.engine.claude.engine import ClaudeEngine, ClaudeModel
from backburner.engine.claude.homes import ProgramHomes
from backburner.engine.claude.program import write_launcher
from backburner.engine.claude.tools import expose
from backburner.ports import SessionEntries, TurnRequest
from backburner.process import launcher
from backburner.process.launcher import CleanLauncher

#: Of any wait here; only a broken engine takes as long.
WAIT_SECONDS = 30.0


@pytest.fixture
async def api() -> AsyncIterator[ModelApi]:
    async with ModelApi() as api:
        yield api


@pytest.fixture
async def make_engine(api: ModelApi, tmp_path: Path) -> AsyncIterator[Callable[..., ClaudeEngine]]:
    made = list[ClaudeEngine]()

    def make(*, warm: int = 2, warm_for: timedelta = timedelta(minutes=5)) -> ClaudeEngine:
        engine = ClaudeEngine(
            ClaudeModel(
                name="claude-sonnet-5-5", address=api.address, headers={"x-api-key": "key"}
            ),
            launcher=CleanLauncher(),
            homes=tmp_path / "homes",
            workspace=lambda user: tmp_path / "workspaces" / user,
            warm=warm,
            warm_for=warm_for,
        )
        made.append(engine)
        return engine

    yield make
    for engine in made:
        await engine.close()


class Chat:
    """A conversation with an engine, which keeps the session as a run does."""

    def __init__(self, engine: ClaudeEngine, name: str = "one") -> None:
        self.engine = engine
        self.conversation = make.conversation(id=ConversationId(f"c_{name}"))
        self.offers = [tools.TestTools().offer("look", free=True)]
        self.gate = RecordingGate()
        self.session: str | None = None
        self.memory: list[str] = []
        self.own_key: str | None = None

    async def say(self, text: str, *, works: bool = False) -> None:
        request = TurnRequest(
            conversation=self.conversation,
            kind=RunKind.BACKGROUND if works else RunKind.REPLY,
            prompt=text,
            items=(),
            session_id=self.session,
            memory=tuple(self.memory),
            tools=self.offers,
            schema=OUTCOME_SCHEMA if works else None,
            own_key=self.own_key,
        )
        async with asyncio.timeout(WAIT_SECONDS):
            async for event in self.engine.run(request, self.gate):
                if isinstance(event, SessionEntries):
                    self.session = event.session_id
                    self.memory += event.entries


def programs(folder: Path) -> set[int]:
    """Return the process ids of the programs that have a home in a folder."""
    files = (folder / "homes").glob("*/home-*/pid")
    return {pid for pid in (int(file.read_text()) for file in files) if is_alive(pid)}


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def until_gone(*pids: int) -> None:
    await until(lambda: not any(map(is_alive, pids)))


async def test_a_chat_keeps_its_program_for_the_next_message(
    make_engine: Callable[..., ClaudeEngine], api: ModelApi, tmp_path: Path
) -> None:
    chat = Chat(make_engine())
    await chat.say("The word is plum.")
    (first,) = programs(tmp_path)
    await chat.say("What is the word?")

    assert programs(tmp_path) == {first}
    assert api.requests[1].holds("The word is plum.")
    assert api.complaints == []


async def test_a_program_that_was_kept_has_the_key_of_each_turn(
    make_engine: Callable[..., ClaudeEngine], api: ModelApi, tmp_path: Path
) -> None:
    chat = Chat(make_engine())
    for key in (None, "own-key", "other-key", None):
        chat.own_key = key
        await chat.say("Hello!")

    assert len(programs(tmp_path)) == 1
    used = [request.headers["x-api-key"] for request in api.requests]
    assert used == ["key", "own-key", "other-key", "key"]


async def test_a_program_is_replaced_after_another_run_has_used_its_session(
    make_engine: Callable[..., ClaudeEngine], api: ModelApi, tmp_path: Path
) -> None:
    chat = Chat(make_engine())
    await chat.say("The word is plum.")
    (first,) = programs(tmp_path)
    other = Chat(make_engine())
    other.session, other.memory = chat.session, chat.memory
    await other.say("The other word is pear.")

    await chat.say("What are the words?")

    assert first not in programs(tmp_path)
    assert api.requests[2].holds("The other word is pear.")
    await until_gone(first)


async def test_background_work_has_its_own_program_and_ends_it(
    make_engine: Callable[..., ClaudeEngine], tmp_path: Path
) -> None:
    chat = Chat(make_engine())
    await chat.say("Hello.")
    (warm,) = programs(tmp_path)
    await chat.say("Work.", works=True)

    # The program of the chat does not know of the work.
    await until_gone(warm)
    assert programs(tmp_path) == set()


async def test_a_program_is_replaced_if_the_tools_change(
    make_engine: Callable[..., ClaudeEngine], api: ModelApi, tmp_path: Path
) -> None:
    chat = Chat(make_engine())
    await chat.say("Hello.")
    (first,) = programs(tmp_path)
    chat.offers = [replace(chat.offers[0], description="Look closely.")]
    await chat.say("Hello again.")

    assert first not in programs(tmp_path)
    assert "Look closely." in api.requests[1].raw.decode()


async def test_the_oldest_warm_program_is_ended_above_the_limit(
    make_engine: Callable[..., ClaudeEngine], tmp_path: Path
) -> None:
    engine = make_engine(warm=1)
    await Chat(engine, "one").say("Hello.")
    (first,) = programs(tmp_path)
    await Chat(engine, "two").say("Hello.")

    await until_gone(first)
    assert len(programs(tmp_path)) == 1


async def test_a_warm_program_is_ended_when_its_chat_is_idle(
    make_engine: Callable[..., ClaudeEngine], tmp_path: Path
) -> None:
    chat = Chat(make_engine(warm_for=timedelta(milliseconds=50)))
    await chat.say("Hello.")
    (warm,) = programs(tmp_path)
    # The loop does not run in between, so the program is used again before its timer fires.
    await chat.say("Hello again.")
    assert programs(tmp_path) == {warm}

    await until_gone(warm)


async def test_a_chat_does_not_remember_a_reply_that_was_not_stored(
    make_engine: Callable[..., ClaudeEngine], api: ModelApi
) -> None:
    chat = Chat(make_engine())
    await chat.say("The word is plum.")
    before = list(chat.memory)
    await chat.say("The word is pear.")
    # As after a failed commit.
    chat.memory = before
    await chat.say("What is the word?")

    assert api.requests[2].holds("plum")
    assert not api.requests[2].holds("pear")


async def test_a_program_stopped_for_approval_stays_warm(
    make_engine: Callable[..., ClaudeEngine], api: ModelApi, tmp_path: Path
) -> None:
    chat = Chat(make_engine())
    chat.gate.stops = True
    api.then(Say("Looking."), CallTool("look"))
    await chat.say("Look.")
    (first,) = programs(tmp_path)
    chat.gate.stops = False
    await chat.say("Go on.")

    assert programs(tmp_path) == {first}
    assert api.requests[1].holds("look is done.")


async def test_closing_the_engine_leaves_no_program_and_no_home(
    make_engine: Callable[..., ClaudeEngine], api: ModelApi, tmp_path: Path
) -> None:
    engine = make_engine()
    await Chat(engine, "one").say("Hello.")
    api.then(Say("Well"), Stall())
    talking = asyncio.create_task(Chat(engine, "two").say("Hello."))
    await api.wait_for_requests(2)
    pids = programs(tmp_path)
    assert len(pids) == 2
    talking.cancel()
    await asyncio.wait({talking}, timeout=WAIT_SECONDS)
    await engine.close()

    await until_gone(*pids)
    assert list((tmp_path / "homes").iterdir()) == []


async def test_a_program_that_uses_too_much_is_ended_and_the_user_told(
    make_engine: Callable[..., ClaudeEngine], api: ModelApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launcher, "memory_limit", lambda: 2**20)
    api.then(Stall())

    with pytest.raises(EngineFailed) as failed:
        await Chat(make_engine()).say("Hello.")

    assert str(failed.value) == "Claude Code was ended: it used too much memory."


def test_a_program_cannot_write_the_files_that_control_it(tmp_path: Path) -> None:
    folder = ProgramHomes(tmp_path).make()
    folder.home.joinpath("file").touch()
    CleanLauncher().write(
        folder.wrapper,
        program=Path("/bin/sh"),
        keep=["PATH"],
        writable=(folder.home,),
        limit_report=folder.limit_report,
    )
    write_launcher(folder)
    before = [path.read_text() for path in (folder.wrapper, folder.launcher)]
    files = f"{folder.pid} {folder.launcher} {folder.wrapper} {folder.limit_report}"
    line = f"echo ok > {folder.home}/file; for file in {files}; do echo 1 > $file; done"

    done = subprocess.run([folder.launcher, "-c", line], capture_output=True, check=False)

    assert (folder.home / "file").read_text() == "ok\n", done
    assert int(folder.pid.read_text()) > 1
    assert [path.read_text() for path in (folder.wrapper, folder.launcher)] == before


def test_homes_of_ended_processes_are_swept_and_others_are_kept(tmp_path: Path) -> None:
    alive, dead = ProgramHomes(tmp_path), ProgramHomes(tmp_path)
    kept, left = alive.make(), dead.make()
    # The end of a process releases its locks.
    os.close(dead._folder._lock)
    new = ProgramHomes(tmp_path)

    assert (kept.path.exists(), left.path.exists()) == (True, False)
    new.close()
    alive.close()


def test_tools_get_names_that_the_program_accepts() -> None:
    given = tools.TestTools()
    names = ["send.mail", "send_mail", "a" * 80, "send mail"]
    exposed = expose([given.offer(name) for name in names])

    (server, named), *others = exposed.items()
    assert (server, others) == ("test", [])
    assert [tool.offer.tool.name for tool in named.values()] == names
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,53}", name) for name in named)
