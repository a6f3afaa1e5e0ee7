"""The tool for programs that use their own sign-in."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import Field

from backburner.core.commands import Cage
from backburner.core.errors import NotAllowed
from backburner.core.signed_in import MAX_ARGUMENTS, PROGRAMS, SIGNED_IN_TOOL, show_line
from backburner.core.tool_policy import GrantMatch
from backburner.ports import CommandResult, Offer, SignIns, ToolResult
from backburner.tools.define import Arguments, define_tool

PROGRAM_TIMEOUT = timedelta(minutes=5)
HAS_OTHERS = "Sign-ins are used only where one user has an account. A team uses connections."


class RunSignedIn(Arguments):
    program: str = Field(description="aws, gh, git, kubectl or npm.")
    arguments: list[str] = Field(
        min_length=1,
        max_length=MAX_ARGUMENTS,
        description="One by one: the subcommand first, options after it.",
    )
    folder: str | None = Field(default=None, description="Where to run it, from the workspace.")


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedFolder:
    """The folder of a conversation, and how a program runs in it."""

    folder: Path
    cage: Cage
    has_others: Callable[[], Awaitable[bool]]
    #: Programs whose sign-in a lasting grant of the conversation is for.
    signed_in: Callable[[], Awaitable[frozenset[str]]]
    #: All folders of the user that agents work in.
    folders: Callable[[], Awaitable[Sequence[Path]]]
    #: Runs a command, and puts back the files that other programs obey.
    run_watched: Callable[..., Awaitable[ToolResult]]
    describe: Callable[[CommandResult, timedelta], str]


def signed_in_offers(place: WatchedFolder, sign_ins: SignIns) -> Sequence[Offer]:
    tool = _SignedIn(place, sign_ins)
    offer = define_tool(
        SIGNED_IN_TOOL,
        RunSignedIn,
        tool.run_signed_in,
        preview=tool.preview,
        outside=True,
        grant_match=GrantMatch.PROGRAM,
    )
    # The preview names the account of the user, and nothing else.
    return (replace(offer, check=tool.check, preview_outside=False),)


class _SignedIn:
    def __init__(self, place: WatchedFolder, sign_ins: SignIns) -> None:
        self._place = place
        self._sign_ins = sign_ins

    async def run_signed_in(self, arguments: RunSignedIn) -> ToolResult:
        """Run a program with the user's own sign-in, in the workspace. Needs approval.

        There is no shell, and it starts no other programs. gh needs --repo. git has clone, fetch,
        ls-remote, pull and push, over https. Without a sign-in, use run_command.
        """
        # Another user may have joined since the call was admitted.
        await self._check_alone()
        agents = await self._place.folders()

        async def run() -> CommandResult:
            return await self._sign_ins.run(
                arguments.program,
                arguments.arguments,
                folder=self._place.folder,
                below=arguments.folder or ".",
                within=PROGRAM_TIMEOUT,
                cage=self._place.cage,
                agents=agents,
            )

        return await self._place.run_watched(
            run,
            lambda result: self._place.describe(result, PROGRAM_TIMEOUT),
            show_line(arguments.model_dump()),
            network=True,
            signed_in=True,
        )

    async def check(self, arguments: Mapping[str, Any]) -> None:
        """Refuse a call that no approval could help."""
        await self._check_alone()
        if (program := arguments.get("program")) in PROGRAMS:
            await self._describe_account(program)

    async def preview(self, arguments: Mapping[str, Any]) -> str:
        program = str(arguments.get("program"))
        account = await self._describe_account(program)
        if program in await self._place.signed_in():
            return f"It uses your {program} sign-in ({account})."
        return f"Use your {program} sign-in ({account}) here?"

    async def _check_alone(self) -> None:
        if await self._place.has_others():
            raise NotAllowed(HAS_OTHERS)

    async def _describe_account(self, program: str) -> str:
        agents, folder = await self._place.folders(), self._place.folder
        return await asyncio.to_thread(self._sign_ins.describe, program, folder, agents=agents)
