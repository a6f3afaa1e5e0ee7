"""A Claude Code program: started for a session, given turns, ended with all its descendants."""

import base64
import os
import shlex
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from claude_agent_sdk import (
    ClaudeSDKClient,
    ClaudeSDKError,
    ResultMessage,
    StreamEvent,
    SystemMessage,
)

from backburner.core.conversation import WorkFolder
from backburner.core.errors import EngineFailed
from backburner.engine.claude import failures, options
from backburner.engine.claude.builtins import Hooks
from backburner.engine.claude.homes import ProgramFolder
from backburner.engine.claude.relay import Line
from backburner.engine.claude.sessions import TranscriptMirror
from backburner.engine.claude.tools import TurnTools, digest, expose
from backburner.engine.endings import explain_nothing, note_for
from backburner.ports import (
    Blob,
    EngineEvent,
    Gate,
    Offer,
    SessionEntries,
    TextDelta,
    TurnEnded,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderIdentity:
    """A folder of the user as it was when a program started in it, whatever is at its path now."""

    folder: WorkFolder
    added_at: datetime | None
    #: Device and number, by which the kernel knows it; None: it is not there.
    inode: tuple[int, int] | None


@dataclass(slots=True, kw_only=True)
class Program:
    client: ClaudeSDKClient
    line: Line
    turn_tools: TurnTools
    hooks: Hooks
    mirror: TranscriptMirror
    folder: ProgramFolder
    #: Of the tools that it was started with.
    tools_digest: str
    session: str
    #: It was started with a stored session.
    resumed: bool
    #: The folder of the user that it was started in; None: the private workspace.
    place: FolderIdentity | None = None
    #: The entries of its session.
    memory: list[str] = field(default_factory=list)
    #: Its last turn ended normally, so it can be given another.
    is_reusable: bool = True
    #: The prompt of the turn has images.
    has_images: bool = False

    async def turn(
        self, prompt: str, offers: Sequence[Offer], gate: Gate, images: Sequence[Blob] = ()
    ) -> AsyncGenerator[EngineEvent, None]:
        self.is_reusable = False
        self.has_images = bool(images)
        self.turn_tools.begin(offers, gate)
        self.line.begin(gate)
        reader = _TextReader()
        try:
            await self.client.query(_with_images(prompt, images) if images else prompt)
            async for message in self.client.receive_response():
                match message:
                    case StreamEvent(event=event, parent_tool_use_id=None):
                        if text := reader.read(event):
                            yield TextDelta(text)
                    case SystemMessage(subtype="init", data=data):
                        self.session = str(data["session_id"])
                    case ResultMessage():
                        for last in self._end(message, reader.text):
                            yield last
                    case _:
                        if entries := self._take(ended=False):
                            yield entries
        except ClaudeSDKError as error:
            raise self._failure(str(error)) from error
        finally:
            self.turn_tools.gate = self.line.gate = None
            self.hooks.cancel_calls()

    def _end(self, result: ResultMessage, text: str) -> Iterator[EngineEvent]:
        is_cut_short = self.line.spent or self.turn_tools.stopped
        has_failed = result.is_error and not is_cut_short
        # The results of calls are kept, even if the turn failed after them.
        if entries := self._take(ended=not has_failed):
            yield entries
        note = "" if is_cut_short or self.line.failure else note_for(self.line.stop_reason)
        if note and not text:
            raise EngineFailed(explain_nothing(self.line.stop_reason))
        if has_failed and not note:
            raise self._failure(" ".join([result.result or "", *(result.errors or ())]))
        self.is_reusable = not (self.line.spent or self.line.refused or has_failed)
        if note and result.structured_output is None:
            yield TextDelta(f"\n\n{note}")
            text = f"{text}\n\n{note}"
        if not is_cut_short:
            yield TurnEnded(text, result.structured_output)

    def _take(self, *, ended: bool) -> SessionEntries | None:
        taken = self.mirror.take(ended=ended)
        if not taken.entries:
            return None
        self.memory += taken.entries
        calls = self.turn_tools.take_calls(taken.results)
        return SessionEntries(self.session, taken.entries, self.line.context, calls)

    def _failure(self, message: str) -> Exception:
        if self.line.failure is not None:
            return failures.explain_model(
                self.line.failure,
                resumed=self.resumed,
                has_called=self.turn_tools.has_called,
                has_images=self.has_images,
            )
        limit = self.folder.read_limit()
        return failures.explain_program(message, resumed=self.resumed, limit=limit)

    async def close(self) -> None:
        """End it and all its descendants."""
        if not self.is_reusable:
            # Disconnecting alone would let it finish its turn first.
            self._terminate()
        with suppress(Exception):
            await self.client.disconnect()

    def _terminate(self) -> None:
        with suppress(OSError, ValueError):
            os.kill(int(self.folder.pid.read_text()), signal.SIGTERM)


async def start_program(
    prepared: options.ProgramOptions, folder: ProgramFolder, line: Line, offers: Sequence[Offer]
) -> Program:
    """Start a program; it waits for its first turn."""
    turn_tools, mirror = TurnTools(expose(offers)), TranscriptMirror()
    hooks = Hooks(turn_tools, line, prepared.workspace)
    client = ClaudeSDKClient(options.build(prepared, line, turn_tools, hooks, mirror))
    program = Program(
        client=client,
        line=line,
        turn_tools=turn_tools,
        hooks=hooks,
        mirror=mirror,
        folder=folder,
        tools_digest=digest(offers),
        session=prepared.session or "",
        resumed=prepared.session is not None,
    )
    program.is_reusable = False
    try:
        await client.connect()
    except ClaudeSDKError as error:
        limit = folder.read_limit()
        raise failures.explain_program(str(error), resumed=program.resumed, limit=limit) from error
    except BaseException:
        await program.close()
        raise
    return program


async def _with_images(prompt: str, images: Sequence[Blob]) -> AsyncIterator[dict[str, Any]]:
    """Write a prompt with images, in the form that the SDK passes on."""
    shown = [
        {
            "type": "image",
            "source": {
                "type": "base64",
                "media_type": blob.media_type,
                "data": base64.b64encode(blob.data).decode(),
            },
        }
        for blob in images
    ]
    content = [{"type": "text", "text": prompt}, *shown]
    yield {
        "type": "user",
        "message": {"role": "user", "content": content},
        "parent_tool_use_id": None,
    }


def write_launcher(folder: ProgramFolder) -> None:
    """Write a script that records its process id and starts the program."""
    pid, wrapper = shlex.quote(str(folder.pid)), shlex.quote(str(folder.wrapper))
    text = f'#!/bin/sh\necho $$ >{pid}\nexec {wrapper} "$@"\n'
    folder.launcher.write_text(text, encoding="utf-8")
    folder.launcher.chmod(0o700)


@dataclass(slots=True)
class _TextReader:
    """Collects streamed text; several blocks become paragraphs."""

    text: str = ""
    _begins: bool = False

    def read(self, event: dict[str, Any]) -> str:
        if event.get("type") == "content_block_start":
            self._begins = True
        delta = event.get("delta")
        if not isinstance(delta, dict) or delta.get("type") != "text_delta":
            return ""
        piece = str(delta.get("text", ""))
        if self._begins and self.text and piece:
            piece = f"\n\n{piece}"
        self._begins = False
        self.text += piece
        return piece
