"""What an agent may do with the background work of the conversation it is in."""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from backburner.actions.deps import Deps
from backburner.actions.work import conversation_work
from backburner.actions.work.conversation_work import WorkRequest
from backburner.core.conversation import MAX_TITLE_CHARS, Notify
from backburner.core.run import Turn
from backburner.ports import Offer
from backburner.runs.retrying_store import with_retries
from backburner.tools import phrasing
from backburner.tools.define import Arguments, define_tool


class ScheduleWork(Arguments):
    what: str = Field(
        description="What is to be done each time, complete in itself: whoever does it has not"
        " read this conversation. May be empty only together with `change`: it then stays as it is."
    )
    when: str = Field(
        description="When, in the user's time zone: `now`, `in 20 minutes`, `every 30m`,"
        " `every weekday at 9`, `every monday at 9:30`, `tomorrow at 17:00`, a cron expression,"
        " or an ISO time with an offset."
    )
    title: str = Field(
        default="", max_length=MAX_TITLE_CHARS, description="A short name for a task of its own."
    )
    separate: bool = Field(
        default=False,
        description="True if the user asked for several things: call this once for each, with"
        " true every time, and each becomes a task of its own that reports here.",
    )
    change: str = Field(
        default="",
        description="Only to change work that is there already: its title or id, or `this` for the"
        " work of this conversation. It gets the new time, and what is to be done if that is said.",
    )
    notify: Literal["", "always", "on_change", "on_failure", "never"] = Field(
        default="",
        description="When the user is told what a run says: `always` (for reminders), `on_change`"
        " (only what differs from the last time), `on_failure` or `never`. Left out: as it is for"
        " this conversation, which is `on_change` unless something else was said.",
    )


class WorkName(Arguments):
    which: str = Field(
        default="",
        description="Its title or id, `this` for the work of this conversation, or `all`. May be"
        " left out where there is only one piece of work.",
    )


class NoArguments(Arguments):
    pass


def conversation_offers(deps: Deps, turn: Turn) -> Sequence[Offer]:
    """Offer what goes for the conversation that a run is about."""
    tools = _Tools(deps, turn)
    return (
        define_tool("schedule_work", ScheduleWork, tools.schedule, free=True),
        define_tool("stop_work", WorkName, tools.stop, free=True),
        define_tool("list_work", NoArguments, tools.look, free=True, read_only=True),
    )


class _Tools:
    def __init__(self, deps: Deps, turn: Turn) -> None:
        self._deps = with_retries(deps)
        self._turn = turn

    async def schedule(self, asked: ScheduleWork) -> str:
        """Do something in the background: later, again and again, or now while the talk goes on.

        Use it whenever the user asks for something that takes time, comes later or comes back.
        It becomes the work of this conversation; if that has work already, a task of its own that
        reports here. The answer says when it runs: tell the user those times. Work that was not
        asked for in a chat, or after text of others was read, waits for the user's yes.
        """
        wish = WorkRequest(
            what=asked.what,
            when=asked.when,
            title=asked.title,
            separate=asked.separate,
            notify=Notify(asked.notify) if asked.notify else None,
        )
        if asked.change.strip():
            done = await conversation_work.rearrange(self._deps, self._turn, asked.change, wish)
            return f"Changed. {phrasing.describe_new_work(done, here=self._turn.conversation_id)}"
        done = await conversation_work.arrange(self._deps, self._turn, wish)
        return phrasing.describe_new_work(done, here=self._turn.conversation_id)

    async def stop(self, asked: WorkName) -> str:
        """Stop background work of this conversation, or of a task under it, for good."""
        stopped = await conversation_work.stop(self._deps, self._turn, asked.which)
        return phrasing.describe_stopped_work(stopped)

    async def look(self, asked: NoArguments) -> str:
        """List the background work of this conversation and of the tasks under it."""
        del asked
        works = await conversation_work.look(self._deps, self._turn)
        return phrasing.describe_work(works)
