"""The agent's program: started for a session, given its turns, ended with all that it started."""

import os
import shlex
import signal
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from claude_agent_sdk import (
    ClaudeSDKClient,
    ClaudeSDKError,
    ResultMessage,
    StreamEvent,
    SystemMessage,
)

from backburner.engine.claude import failures, options
from backburner.engine.claude.builtins import Hooks
from backburner.engine.claude.relay import Line
from backburner.engine.claude.sessions import Mirror
from backburner.engine.claude.tools import Hands, digest, expose
from backburner.ports import EngineEvent, Gate, Offer, SessionEntries, TextDelta, TurnEnded


@dataclass(slots=True, kw_only=True)
class Program:
    client: ClaudeSDKClient
    line: Line
    hands: Hands
    hooks: Hooks
    mirror: Mirror
    home: Path
    #: Tells sets of tools apart.
    tools: str
    session: str
    #: It was started with something to remember.
    remembers: bool
    #: What it remembers, as entries of its session.
    memory: list[str] = field(default_factory=list)
    #: It has ended a turn as it should, and can be given another.
    is_fit: bool = True

    async def turn(
        self, prompt: str, offers: Sequence[Offer], gate: Gate
    ) -> AsyncGenerator[EngineEvent, None]:
        """Give it one turn."""
        self.is_fit = False
        self.hands.begin(offers, gate)
        self.line.begin(gate)
        words = _Words()
        try:
            await self.client.query(prompt)
            async for message in self.client.receive_response():
                match message:
                    case StreamEvent(event=event, parent_tool_use_id=None):
                        if text := words.read(event):
                            yield TextDelta(text)
                    case SystemMessage(subtype="init", data=data):
                        self.session = str(data["session_id"])
                    case ResultMessage():
                        for ending in self._end(message, words.said):
                            yield ending
                    case _:
                        if entries := self._take(ended=False):
                            yield entries
        except ClaudeSDKError as error:
            raise self._failure(str(error)) from error
        finally:
            self.hands.gate = self.line.gate = None
            self.hooks.give_up()

    def _end(self, result: ResultMessage, said: str) -> Iterator[EngineEvent]:
        is_cut_short = self.line.spent or self.hands.stopped
        has_failed = result.is_error and not is_cut_short
        # What calls have given is known, whatever came after.
        if entries := self._take(ended=not has_failed):
            yield entries
        if has_failed:
            raise self._failure(" ".join([result.result or "", *(result.errors or ())]))
        self.is_fit = not self.line.spent and not self.line.refused
        if not is_cut_short:
            yield TurnEnded(said, result.structured_output)

    def _take(self, *, ended: bool) -> SessionEntries | None:
        entries = self.mirror.take(ended=ended)
        if not entries:
            return None
        self.memory += entries
        return SessionEntries(self.session, entries, tokens=self.line.context)

    def _failure(self, said: str) -> Exception:
        if self.line.trouble is not None:
            return failures.of_model(self.line.trouble, remembers=self.remembers)
        return failures.of_program(said, remembers=self.remembers)

    async def close(self) -> None:
        """End it, and everything it started."""
        if not self.is_fit:
            # Asked in peace it would first finish what it is doing.
            self._terminate()
        with suppress(Exception):
            await self.client.disconnect()

    def _terminate(self) -> None:
        with suppress(OSError, ValueError):
            os.kill(int(pid_file(self.home).read_text()), signal.SIGTERM)


async def start(how: options.Start, line: Line, offers: Sequence[Offer]) -> Program:
    """Start the program; it waits for its first turn."""
    hands, mirror = Hands(expose(offers)), Mirror()
    hooks = Hooks(hands, line)
    client = ClaudeSDKClient(options.build(how, line, hands, hooks, mirror))
    program = Program(
        client=client,
        line=line,
        hands=hands,
        hooks=hooks,
        mirror=mirror,
        home=how.home,
        tools=digest(offers),
        session=how.session or "",
        remembers=how.session is not None,
    )
    program.is_fit = False
    try:
        await client.connect()
    except ClaudeSDKError as error:
        raise failures.of_program(str(error), remembers=program.remembers) from error
    except BaseException:
        await program.close()
        raise
    return program


def write_launcher(home: Path, wrapper: Path) -> Path:
    """Write what starts the program and says under which id it can be ended."""
    launcher, pid = home / "launch", shlex.quote(str(pid_file(home)))
    text = f'#!/bin/sh\necho $$ >{pid}\nexec {shlex.quote(str(wrapper))} "$@"\n'
    launcher.write_text(text, encoding="utf-8")
    launcher.chmod(0o700)
    return launcher


def pid_file(home: Path) -> Path:
    return home / "pid"


@dataclass(slots=True)
class _Words:
    """What it says, in one piece: what comes in several blocks is told as paragraphs."""

    said: str = ""
    _begins: bool = False

    def read(self, event: dict[str, Any]) -> str:
        if event.get("type") == "content_block_start":
            self._begins = True
        delta = event.get("delta")
        if not isinstance(delta, dict) or delta.get("type") != "text_delta":
            return ""
        text = str(delta.get("text", ""))
        if self._begins and self.said and text:
            text = f"\n\n{text}"
        self._begins = False
        self.said += text
        return text
