"""The state of the repository that a workspace is: for whoever looks for work to propose.

Nobody is asked about these commands, so nothing that lies in the workspace may be run by them.
"""

import asyncio
from datetime import timedelta
from pathlib import Path

from backburner.core.errors import ProcessFailed
from backburner.ports import Shell

LONGEST = timedelta(seconds=10)

_GIT = (
    "git --no-pager --no-optional-locks -c core.fsmonitor=false -c core.hooksPath=/dev/null"
    " -c log.showSignature=false"
)
#: Filters of a repository are programs, so where there are any only the history is shown.
COMMAND = f"""\
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
git rev-parse --git-dir > /dev/null 2>&1 || exit 1
git config --get-regexp '^filter\\.' > /dev/null ||
  {_GIT} status --short --branch --ignore-submodules=all | head -n 60
{_GIT} log --oneline --no-decorate -n 5 2> /dev/null || true"""


async def look_at(folder: Path, shell: Shell) -> str:
    """Tell what changed and what was committed last; nothing where there is no repository."""
    if not await asyncio.to_thread((folder / ".git").is_dir):
        return ""
    try:
        ran = await shell.run(COMMAND, folder=folder, within=LONGEST)
    except ProcessFailed:
        return ""
    is_whole = ran.code == 0 and not ran.timed_out and not ran.flooded
    return ran.output if is_whole else ""
