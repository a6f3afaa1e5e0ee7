"""The program: what it imports for what it does, and how it ends."""

import asyncio
import os
import pkgutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest
from structlog.testing import capture_logs
from support.doubles.channel import RecordingChannel

from backburner.app import program
from backburner.app.machines import Machines
from backburner.cli import commands
from backburner.settings import load
from backburner.store.db import Database
from backburner.worker.service import Worker

#: `mcp` speaks a protocol whose library imports the other two.
COMMANDS = [
    f"backburner.cli.commands.{module.name}" for module in pkgutil.iter_modules(commands.__path__)
]


def test_a_worker_does_without_the_web_framework_and_the_driver_of_postgresql() -> None:
    modules = imported_with("backburner.app.program", "backburner.app.owner")

    assert modules == {"backburner.core.conversation"}


def test_commands_do_without_the_web_framework() -> None:
    assert "backburner.cli.commands.tasks" in COMMANDS
    assert imported_with(*COMMANDS) & {"fastapi", "backburner.api"} == set()


def test_a_message_is_sent_without_the_rules_of_conversations() -> None:
    modules = imported_with("backburner.cli.main", "backburner.cli.commands.say")

    assert "backburner.core.conversation" not in modules


def imported_with(*modules: str) -> set[str]:
    heavy = {"fastapi", "starlette", "uvicorn", "psycopg"}
    heavy |= {"backburner.api", "backburner.core.conversation"}
    code = f"import sys, {', '.join(modules)}; print(*(sys.modules.keys() & {heavy}))"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, timeout=60, capture_output=True, text=True
    )
    return set(done.stdout.split())


def test_an_error_ends_the_program_with_1_even_if_a_thread_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    close = Database.close
    # As if one of its threads did not end.
    monkeypatch.setattr(Database, "close", lambda database: not close(database))
    monkeypatch.setattr(os, "_exit", sys.exit)
    with capture_logs() as logs, pytest.raises(SystemExit) as ended:
        program.run(load(data=tmp_path), announce=print, machines=cast(Machines, "broken"))

    assert ended.value.code == 1
    (forced,) = (entry for entry in logs if entry["event"] == "program.exit_forced")
    assert isinstance(forced["exc_info"], AttributeError)


def test_an_error_ends_the_program_with_1_even_if_a_task_ignores_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = list[asyncio.Task[None]]()

    async def ignore_everything() -> None:
        while not over.is_set():
            with suppress(asyncio.CancelledError):
                await over.wait()

    async def fail(_worker: Worker, _stopping: asyncio.Event) -> None:
        left.append(asyncio.create_task(ignore_everything()))
        await asyncio.sleep(0)
        raise RuntimeError

    def leave(code: int) -> None:
        codes.append(code)
        over.set()

    codes, over = list[int](), asyncio.Event()
    monkeypatch.setattr(program, "EXIT_GRACE_SECONDS", 0.01)
    monkeypatch.setattr(os, "_exit", leave)
    monkeypatch.setattr(Worker, "run", fail)
    with pytest.raises(RuntimeError):
        program.run(load(data=tmp_path), announce=print, serves=False)

    assert codes == [1]


def test_channels_are_closed_when_the_program_ends_however_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Closing(RecordingChannel):
        async def close(self) -> None:
            closed.append("outside")

    async def fail(_worker: Worker, _stopping: asyncio.Event) -> None:
        assert closed == []
        raise RuntimeError

    closed = list[str]()
    monkeypatch.setattr(Worker, "run", fail)
    machines = Machines(channels={"outside": Closing()})
    with pytest.raises(RuntimeError):
        program.run(load(data=tmp_path), announce=print, serves=False, machines=machines)

    assert closed == ["outside"]
