"""`backburner worker` as an operator starts it: its settings in a file, a folder of its own."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from backburner.core.connections.program import StdioProgram
from support.programs.programs import Running, Start
from support.stage.make import USER

MODEL = "claude-sonnet-4-5"
#: What it is held to here so that nobody waits for long.
USUAL: Mapping[str, Any] = {
    "lease": "2s",
    "heartbeat": "500ms",
    "drain": "2s",
    "poll_interval": "1s",
    "min_interval": "1s",
    "warm_chats": 0,
}


class RealWorkers:
    """Starts them on one database, with Claude Code and a model on this machine."""

    def __init__(self, start: Start, folder: Path, url: str, model: str) -> None:
        self._start = start
        self._folder = folder
        self._url = url
        self.profiles: dict[str, dict[str, Any]] = {
            "claude": {"engine": "claude", "address": model, "model": MODEL, "key": "key"}
        }
        self.settings: dict[str, Any] = dict(USUAL)

    def start(
        self, name: str = "data", *, env: Mapping[str, str] | None = None, **settings: Any
    ) -> Running:
        """Start one with a data folder of that name, and wait until it works."""
        data = self._configure(name, settings)
        running = self._start("worker", "--data", data, env={**os.environ, **(env or {})})
        assert ": worker " in running.read_line(), running.end()
        return running

    def serve(
        self, name: str = "data", *, env: Mapping[str, str] | None = None, **settings: Any
    ) -> tuple[Running, str]:
        """Start one that serves the API as well; return it with its address."""
        data = self._configure(name, settings)
        command = ("up", "--port", "0", "--data", data)
        running = self._start(*command, env={**os.environ, **(env or {})})
        return running, running.wait_until_ready()

    def _configure(self, name: str, settings: dict[str, Any]) -> Path:
        data = self.data(name)
        data.mkdir(mode=0o700, exist_ok=True)
        chosen = {"database_url": self._url} | self.settings | settings
        (data / "backburner.toml").write_text(write_toml(chosen, self.profiles))
        return data

    def data(self, name: str = "data") -> Path:
        return self._folder / name

    def workspace(self, name: str = "data") -> Path:
        """Give the folder in which agents work for the user."""
        folder = self.data(name) / "workspaces" / USER
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder


def program_settings(programs: Mapping[str, StdioProgram]) -> Mapping[str, Any]:
    """Write what an operator writes to define programs."""
    lines = dict[str, Any]()
    for name, program in programs.items():
        table = f"mcp_programs.{name}"
        lines[f"{table}.command"] = program.command
        lines[f"{table}.readable"] = program.readable
        lines[f"{table}.writable"] = program.writable
        for variable, value in program.environment.items():
            lines[f"{table}.environment.{variable}"] = value
    return lines


def write_toml(settings: Mapping[str, Any], profiles: Mapping[str, Mapping[str, Any]]) -> str:
    # What stands here is written in TOML as it is in JSON.
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    for name, table in profiles.items():
        lines += [f"[profiles.{name}]", *(f"{key} = {json.dumps(table[key])}" for key in table)]
    return "\n".join(lines) + "\n"
