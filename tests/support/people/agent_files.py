"""A stage whose agents have the real tools of a workspace, with the files of messages."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from backburner.actions import chat
from backburner.actions.chat import UserMessage
from backburner.actions.deps import Limits
from backburner.actions.work import files
from backburner.bus.local import LocalBus
from backburner.core.content.attachment import Attachment
from backburner.core.content.file import DEFAULT_LIMITS, FileLimits, FileReference
from backburner.core.conversation import Conversation
from backburner.core.ids import UserId
from backburner.gateway.network import CheckedNetwork
from backburner.ports import Offer
from backburner.process.shell import ConfinedShell
from backburner.process_folder import LateProcessFolder
from backburner.store.db import Database
from backburner.tools.toolbox import Toolbox
from backburner.tools.workspace import CommandTerms, workspace_offers
from support.doubles.engine import Call, ScriptedEngine
from support.stage.make import USER
from support.stage.stage import Stage


class House:
    """Commands run in the real cage, or in none."""

    def __init__(
        self,
        database: Database,
        base: Path,
        *,
        unconfined: bool = False,
        limits: FileLimits = DEFAULT_LIMITS,
    ) -> None:
        self.base = base
        self.workspace = base / "workspace"
        self.shell = ConfinedShell(unconfined=unconfined)
        self.folders = LateProcessFolder(base / "data" / "attachments")
        self.stage = Stage(
            database,
            LocalBus(),
            ScriptedEngine(),
            toolbox=lambda deps: Toolbox(
                deps, self._offers, make_folder=lambda: self.folders.make("run-")
            ),
            limits=Limits(files=limits),
        )

    def _offers(self, user: UserId, terms: CommandTerms) -> Sequence[Offer]:
        kept, folder = self.base / "kept", self.workspace / user
        return workspace_offers(folder, kept, self.shell, CheckedNetwork(), terms)

    def put(self, path: str, data: bytes) -> Path:
        """Put a file into the workspace."""
        file = self.workspace / USER / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        return file

    async def send(
        self, place: Conversation, text: str, *given: tuple[str, bytes], user: UserId = USER
    ) -> list[FileReference]:
        kept = [
            await files.upload(self.stage.deps, user, data, name=name, limits=DEFAULT_LIMITS)
            for name, data in given
        ]
        named = [Attachment(file.digest, file.name) for file in kept]
        await chat.send(self.stage.deps, user, place.id, UserMessage(text, named))
        return kept

    async def ask(self, place: Conversation, tool: str, **arguments: Any) -> str:
        """Have an agent call a tool in a run of its own; return what it was told."""
        await self.stage.work()
        self.stage.engine.then(Call(tool, arguments))
        await self.stage.say(place, "Go on.")
        await self.stage.work()
        return self.stage.engine.results[-1].text

    def left(self) -> list[Path]:
        return [path for path in (self.base / "data").rglob("*") if path.name.startswith("run-")]
