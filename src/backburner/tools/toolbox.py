"""Collects the tools of a run, restricted to those its work may use."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from backburner.actions.connections import definitions, sessions
from backburner.actions.deps import Deps
from backburner.actions.origin import Origin
from backburner.actions.work import files, folders
from backburner.core import tool_policy
from backburner.core.connections.connection import Connection, ConnectionTool, ToolDefinition
from backburner.core.content.file import (
    FileOrigin,
    FileReference,
    choose_media_type,
    clean_name,
)
from backburner.core.conversation import Conversation, Kind, Use
from backburner.core.errors import ConnectionFailed, SignedOut
from backburner.core.ids import RunId, UserId
from backburner.core.run import Item, Turn
from backburner.core.signed_in import SIGNED_IN_TOOL, granted_programs
from backburner.ports import Connected, Offer, ToolSession
from backburner.runs.retrying_store import with_retries
from backburner.tools.connections.run_connections import RunConnections, find_answered
from backburner.tools.connections.sessions import RunSessions
from backburner.tools.content.attachments import AttachmentFolder
from backburner.tools.content.results import result_offers
from backburner.tools.conversation import conversation_offers
from backburner.tools.jobs import job_offers
from backburner.tools.memories import memory_offers
from backburner.tools.progress import progress_offers
from backburner.tools.tasks import task_offers
from backburner.tools.workspace import CommandTerms, check_folder

#: For tools that are offered; what they may do is looked up at each call.
KNOWN_SECONDS = 60


def no_workspace(user: UserId, terms: CommandTerms) -> Sequence[Offer]:
    del user, terms
    return ()


def no_session(connection: Connection) -> ToolSession:
    raise ConnectionFailed(f"{connection.title} cannot be reached from here.", permanent=True)


@dataclass(slots=True)
class Toolbox:
    deps: Deps
    #: Makes the file and command tools of a user.
    workspace: Callable[[UserId, CommandTerms], Sequence[Offer]] = no_workspace
    #: Whether programs can use the sign-ins of a single user here.
    has_sign_ins: bool = False
    #: Opens a session with the server of a connection.
    open_session: Callable[[Connection], ToolSession] = no_session
    #: Makes a private folder for the attached files of a run; None: there is no place for them.
    make_folder: Callable[[], Path] | None = None
    #: Of the runs in progress.
    _attachments: dict[RunId, AttachmentFolder] = field(default_factory=dict)
    #: Whether one user has the only account, and until when that need not be looked up again.
    _is_alone: bool = False
    _known_until: float = 0.0

    async def has_others(self) -> bool:
        """Return whether more than one user has an account here."""
        return await self.deps.store.read(lambda tx: len(tx.accounts.page(limit=2)) > 1)

    async def check_folder(self, conversation: Conversation) -> None:
        user, folder = conversation.user_id, conversation.folder
        if folder is None:
            return
        is_usable = await self.deps.store.read(
            lambda tx: folders.is_usable(tx, self.deps, user, folder)
        )
        await asyncio.to_thread(check_folder, Path(folder.path), removed=not is_usable)

    def connect(
        self, turn: Turn, conversation: Conversation, items: Sequence[Item]
    ) -> AbstractAsyncContextManager[Connected]:
        deps = with_retries(self.deps)

        async def record_listing(
            connection: Connection, listed: Sequence[ToolDefinition]
        ) -> Sequence[ConnectionTool]:
            return await definitions.record_listing(
                deps, connection, listed, conversation_id=turn.conversation_id
            )

        async def record_signed_out(connection: Connection, error: SignedOut) -> bool:
            return await sessions.note_use(deps, connection, error)

        opened = RunSessions(self.open_session, record_listing, record_signed_out)
        read_on = result_offers(deps, turn)
        return RunConnections(deps, conversation, opened, find_answered(items), read_on=read_on)

    async def offers(self, turn: Turn, conversation: Conversation) -> Sequence[Offer]:
        async def signed_in() -> frozenset[str]:
            return await self._signed_in(conversation)

        async def list_folders() -> Sequence[Path]:
            return await self._list_folders(conversation.user_id)

        deps, origin = with_retries(self.deps), Origin.of(turn, conversation.uses)
        terms = CommandTerms(
            turn,
            tool_policy.choose_cage(conversation),
            self.has_others,
            folder=conversation.folder,
            may_sign_in=await self._may_sign_in(conversation),
            signed_in=signed_in,
            folders=list_folders,
            attachments=self._find_attachments(turn, conversation),
            keep=partial(self._keep_file, turn),
            max_file_bytes=deps.limits.files.file,
        )
        # Nobody looks at discovery while it runs.
        is_watched = conversation.kind is not Kind.DISCOVERY
        progress = progress_offers(deps, turn) if is_watched else ()
        offers = (
            *conversation_offers(deps, turn),
            *task_offers(deps, origin),
            *memory_offers(deps, origin),
            *job_offers(deps, origin),
            *progress,
            *self.workspace(turn.user_id, terms),
        )
        allowed = tool_policy.allowed_tools(conversation)
        return [offer for offer in offers if tool_policy.is_tool_allowed(offer.tool, allowed)]

    async def end_run(self, turn: Turn) -> None:
        folder = self._attachments.pop(turn.run_id, None)
        if folder is not None:
            await folder.close()

    def _find_attachments(self, turn: Turn, conversation: Conversation) -> AttachmentFolder | None:
        if self.make_folder is None:
            return None
        known = self._attachments.get(turn.run_id)
        if known is not None:
            return known
        deps, user = with_retries(self.deps), turn.user_id

        async def find() -> Sequence[FileReference]:
            return await files.list_attached(deps, conversation)

        def read(file: FileReference) -> AsyncIterator[bytes]:
            return files.stream(deps, user, file)

        made = AttachmentFolder(find, read, self.make_folder)
        self._attachments[turn.run_id] = made
        return made

    async def _keep_file(self, turn: Turn, data: bytes, name: str) -> FileReference:
        deps = with_retries(self.deps)
        return await files.store_file(
            deps.store,
            turn.user_id,
            data,
            media_type=choose_media_type(data, ""),
            name=clean_name(name) or "file",
            origin=FileOrigin(turn.conversation_id, turn.run_id),
            limits=deps.limits.files,
        )

    async def _may_sign_in(self, conversation: Conversation) -> bool:
        """Whether programs with sign-ins are offered; each call checks again who has accounts."""
        if not self.has_sign_ins or not conversation.may_use(Use.SIGN_INS):
            return False
        now = asyncio.get_running_loop().time()
        if self._known_until <= now:
            self._is_alone = not await self.has_others()
            self._known_until = now + KNOWN_SECONDS
        return self._is_alone

    async def _list_folders(self, user: UserId) -> Sequence[Path]:
        known = await self.deps.store.read(lambda tx: folders.usable(tx, self.deps, user))
        return [Path(folder.path) for folder in known]

    async def _signed_in(self, conversation: Conversation) -> frozenset[str]:
        """Return the programs whose sign-in the user has allowed here for good."""
        grants = await self.deps.store.read(
            lambda tx: tx.grants.valid(conversation.user_id, conversation.id)
        )
        return granted_programs(
            grant.words for grant in grants if grant.tool == SIGNED_IN_TOOL and grant.call is None
        )
