"""Tools for the background work of the agent's own conversation."""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from backburner.actions.deps import Deps
from backburner.actions.work import conversation_work
from backburner.actions.work.conversation_work import WorkRequest
from backburner.core.conversation import MAX_TITLE_CHARS, Notify
from backburner.core.run import Turn
from backburner.ports import Offer
from backburner.tools import phrasing
from backburner.tools.define import Arguments, define_tool


class ScheduleWork(Arguments):
    what: str = Field(
        description="What to do in each run. Make it self-contained: the run does not see this"
        " conversation. Leave it empty only with `change`, to keep the present text."
    )
    when: str = Field(
        description="When to run, in the user's time zone: `now`, `in 20 minutes`, `every 30m`,"
        " `every weekday at 9`, `every monday at 9:30`, `tomorrow at 17:00`, a cron expression,"
        " or an ISO time with an offset."
    )
    title: str = Field(
        default="", max_length=MAX_TITLE_CHARS, description="A short name for the work."
    )
    separate: bool = Field(
        default=False,
        description="True if the user asked for several things. Call this tool once for each, with"
        " true every time; each becomes a task that reports here.",
    )
    change: str = Field(
        default="",
        description="Only to change existing work: its title or id, or `this` for the work of this"
        " conversation. Its time is replaced, and `what` unless that is empty.",
    )
    notify: Literal["", "always", "on_change", "on_failure", "never"] = Field(
        default="",
        description="When to notify the user of the result of a run: `always` (for reminders),"
        " `on_change` (only if it differs from the previous one), `on_failure` or `never`."
        " Default: the setting of this conversation, usually `on_change`.",
    )


class WorkName(Arguments):
    name: str = Field(
        default="",
        description="Its title or id, `this` for the work of this conversation, or `all`. Optional"
        " if there is only one piece of work.",
    )


class NoArguments(Arguments):
    pass


def conversation_offers(deps: Deps, turn: Turn) -> Sequence[Offer]:
    tools = _Tools(deps, turn)
    return (
        define_tool("schedule_work", ScheduleWork, tools.schedule, free=True),
        define_tool("stop_work", WorkName, tools.stop, free=True),
        define_tool("list_work", NoArguments, tools.list, free=True, read_only=True),
    )


class _Tools:
    def __init__(self, deps: Deps, turn: Turn) -> None:
        self._deps = deps
        self._turn = turn

    async def schedule(self, arguments: ScheduleWork) -> str:
        """Schedule background work: once later, repeatedly, or now while the chat continues.

        Use it whenever the user asks for something that takes time, is for later, or repeats. It
        becomes the work of this conversation, or a separate task that reports here if there is
        work already. The result says when it runs: tell the user those times. Work scheduled
        outside a chat, or after reading outside text, waits for the user's approval.
        """
        request = WorkRequest(
            prompt=arguments.what,
            when=arguments.when,
            title=arguments.title,
            separate=arguments.separate,
            notify=Notify(arguments.notify) if arguments.notify else None,
        )
        here = self._turn.conversation_id
        if arguments.change.strip():
            changed = await conversation_work.change_work(
                self._deps, self._turn, arguments.change, request
            )
            done = f"Changed. {phrasing.describe_new_work(changed, here=here)}"
            return phrasing.describe_change(changed, done)
        created = await conversation_work.start_work(self._deps, self._turn, request)
        return phrasing.describe_new_work(created, here=here)

    async def stop(self, arguments: WorkName) -> str:
        """Stop the background work of this conversation, or of a task below it, for good."""
        stopped = await conversation_work.stop(self._deps, self._turn, arguments.name)
        return phrasing.describe_stopped_work(stopped)

    async def list(self, arguments: NoArguments) -> str:
        """List the background work of this conversation and of the tasks below it."""
        del arguments
        works = await conversation_work.list_work(self._deps, self._turn)
        return phrasing.describe_work(works)
