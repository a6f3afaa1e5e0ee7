"""The state of the git repository in a workspace, which discovery shows to the agent.

These commands run without approval: in a cage that changes and reaches nothing, and so that they
execute nothing from the workspace. Where the cage is missing they do not run.
"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from backburner.core.commands import Cage
from backburner.core.errors import BackburnerError, ProcessFailed
from backburner.core.work.discovery import gh_arguments
from backburner.ports import CommandBounds, Shell, SignIns

COMMAND_TIMEOUT = timedelta(seconds=10)
GH_TIMEOUT = timedelta(seconds=30)
BOUNDS = CommandBounds(cage=Cage.LOOK, sees_processes=False)

_GIT = (
    "git --no-pager --no-optional-locks -c core.fsmonitor=false -c core.hooksPath=/dev/null"
    " -c log.showSignature=false -c diff.external= -c protocol.allow=never"
)
#: `git status` executes the filters of a repository, so with filters only the log is shown. What a
#: partial clone lacks would be fetched with a program that the repository names; an older git does
#: not know the first of the variables against it.
COMMAND = f"""\
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_NO_LAZY_FETCH=1 GIT_ALLOW_PROTOCOL=none GIT_TERMINAL_PROMPT=0
git rev-parse --git-dir > /dev/null 2>&1 || exit 1
git config --get-regexp '^filter\\.' > /dev/null ||
  {_GIT} status --short --branch --ignore-submodules=all | head -n 60
{_GIT} log --oneline --no-decorate -n 5 2> /dev/null || true"""


async def describe_ci(
    folder: Path, repository: str, sign_ins: SignIns, *, agents: Sequence[Path]
) -> str:
    """Return the last runs of CI and the open pull requests, as gh lists them.

    `agents` are all folders that agents write: no program of them is used.
    """
    texts = []
    for arguments in gh_arguments(repository):
        try:
            ran = await sign_ins.run(
                "gh",
                arguments,
                folder=folder,
                below=".",
                within=GH_TIMEOUT,
                cage=Cage.LOOK,
                agents=agents,
            )
            output = ran.output if ran.code == 0 else f"Failed: {ran.output[-500:]}"
        except BackburnerError as error:
            output = f"Not run: {error}"
        texts.append(f"\n$ gh {' '.join(arguments)}\n{output}")
    return "".join(texts)


async def describe_repository(folder: Path, shell: Shell) -> str:
    """Return changed files and recent commits; empty if there is no repository."""
    if shell.cage_missing is not None or not await asyncio.to_thread((folder / ".git").is_dir):
        return ""
    try:
        ran = await shell.run(COMMAND, folder=folder, within=COMMAND_TIMEOUT, bounds=BOUNDS)
    except ProcessFailed:
        return ""
    is_complete = ran.code == 0 and not ran.timed_out and not ran.output_exceeded
    return ran.output if is_complete else ""
