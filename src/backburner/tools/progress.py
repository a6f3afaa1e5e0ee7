"""The tool with which a background run says what it is doing."""

from collections.abc import Sequence

from pydantic import Field

from backburner.actions.deps import Deps
from backburner.actions.work import progress
from backburner.core.run import MAX_PROGRESS_CHARS, RunKind, Turn
from backburner.core.tool_policy import PROGRESS_TOOL
from backburner.ports import Offer
from backburner.tools.define import Arguments, define_tool


class ReportProgress(Arguments):
    text: str = Field(
        min_length=1,
        max_length=MAX_PROGRESS_CHARS,
        description="What you are doing, in one short line: `Read 40 of 120 files`.",
    )


def progress_offers(deps: Deps, turn: Turn) -> Sequence[Offer]:
    if turn.kind is not RunKind.BACKGROUND:
        return ()

    async def report(arguments: ReportProgress) -> str:
        """Show the user how far you are, in work that takes more than a minute or two.

        Only the last line is shown, and only while you work.
        """
        await progress.report(deps, turn, arguments.text)
        return "Shown."

    # It is safe to repeat: the last report is the one that counts.
    return (define_tool(PROGRESS_TOOL, ReportProgress, report, free=True, read_only=True),)
