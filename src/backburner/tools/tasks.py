"""What an agent may do with tasks: standing work with a name, under the conversation it is in."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from backburner.actions.deps import Deps
from backburner.actions.origin import Origin
from backburner.actions.schedules import Timing
from backburner.actions.work import control, tasks
from backburner.actions.work.control import TaskChanges
from backburner.actions.work.tasks import NewTask
from backburner.core.conversation import MAX_TITLE_CHARS, Notify
from backburner.core.schedule import AfterCondition
from backburner.core.transitions import Terms
from backburner.core.work.proposal import MAX_REASON_CHARS
from backburner.core.work.views import TaskKind, TaskStatus
from backburner.ports import Offer
from backburner.runs.retrying_store import with_retries
from backburner.tools import phrasing
from backburner.tools.define import Arguments, define_tool

MAX_RUN_LIMIT = 1_000_000

NotifyChoice = Literal["always", "on_change", "on_failure", "never"]


class TaskSchedule(Arguments):
    interval: str | None = Field(
        default=None, description="How often, as a length of time: `30m`, `2h`, `1d`."
    )
    when: str | None = Field(
        default=None,
        description="Instead of an interval, in the user's time zone: `every weekday at 9`,"
        " `every monday at 9:30`, `in 20 minutes`, `tomorrow at 17:00`, a cron expression, or an"
        " ISO time with an offset.",
    )
    after: str | None = Field(
        default=None,
        description="Instead of a time: the name or id of the task that it comes after. It runs"
        " whenever that one completes, and once if that one runs once.",
    )
    after_on: Literal["success", "any"] = Field(
        default="success",
        description="With `after`: `any` runs it also when the other one fails or is cancelled.",
    )

    def timing(self, kind: str | None = None) -> Timing:
        return Timing(
            words=self.when,
            interval=self.interval,
            after=self.after,
            on=AfterCondition(self.after_on),
            kind=None if kind is None else TaskKind(kind),
        )


class AddTask(TaskSchedule):
    name: str = Field(
        min_length=1,
        max_length=MAX_TITLE_CHARS,
        description="A short name, such as `watch-ci-main`.",
    )
    description: str = Field(
        default="", max_length=2_000, description="What it is for, in a sentence."
    )
    prompt: str = Field(
        min_length=1,
        description="What to do in each run, complete in itself: whoever does it has not read this"
        " conversation. Say what is worth reporting and what is not.",
    )
    kind: Literal["scheduled", "oneshot"] | None = Field(
        default=None,
        description="`scheduled` comes back; `oneshot` is done once, and at once if no time is"
        " given. May be left out where the time says it.",
    )
    notify: NotifyChoice | None = Field(
        default=None,
        description="When the user is told what a run says: `always`, `on_change` (only what"
        " differs from the last time), `on_failure` or `never`. Left out: as for this"
        " conversation, which is `on_change` unless something else was said.",
    )
    max_runs: int | None = Field(
        default=None, ge=1, le=MAX_RUN_LIMIT, description="It ends after so many runs; null: never."
    )
    tools: list[str] | None = Field(
        default=None,
        max_length=200,
        description="The tools that it may use, by name; null: those of this conversation.",
    )
    agent: str | None = Field(
        default=None, description="The name of a profile to work under; null: as is usual."
    )

    def task(self) -> NewTask:
        return NewTask(
            name=self.name,
            prompt=self.prompt,
            timing=self.timing(self.kind),
            description=self.description,
            notify=None if self.notify is None else Notify(self.notify),
            max_runs=self.max_runs,
            tools=self.tools,
            profile=self.agent,
        )


class ProposeTask(AddTask):
    why: str = Field(
        min_length=1,
        max_length=MAX_REASON_CHARS,
        description="Why it would help, for the user to read: what you noticed, and what you would"
        " do about it.",
    )


class TaskName(Arguments):
    task: str = Field(
        min_length=1,
        max_length=MAX_TITLE_CHARS,
        description="Its name, its id, or the beginning of its id.",
    )


class UpdateTask(TaskSchedule, TaskName):
    """What is left out stays as it is."""

    name: str | None = Field(default=None, max_length=MAX_TITLE_CHARS)
    description: str | None = Field(default=None, max_length=2_000)
    prompt: str | None = Field(default=None, description="What to do in each run from now on.")
    notify: NotifyChoice | None = None
    max_runs: int | None = Field(
        default=None, ge=0, le=MAX_RUN_LIMIT, description="Counted from its first run; 0: no limit."
    )
    tools: list[str] | None = Field(default=None, max_length=200)

    def changes(self) -> TaskChanges:
        timed = self.timing()
        return TaskChanges(terms=self._rework, timing=timed if timed.is_given else None)

    def _rework(self, terms: Terms) -> Terms:
        given: dict[str, Any] = {
            "title": self.name,
            "description": self.description,
            "prompt": self.prompt,
            "notify": None if self.notify is None else Notify(self.notify),
            "tools": None if self.tools is None else tuple(self.tools),
        }
        terms = replace(terms, **{name: one for name, one in given.items() if one is not None})
        return terms if self.max_runs is None else replace(terms, max_runs=self.max_runs or None)


class CancelTask(TaskName):
    reason: str = Field(
        default="", max_length=2_000, description="Why, for whoever looks it up later."
    )


class ListTasks(Arguments):
    status: Literal["proposed", "active", "paused", "done", "failed"] | None = Field(
        default=None, description="Only those that stand so; null: all that were not put away."
    )


class TaskHistory(TaskName):
    runs: int = Field(default=10, ge=1, le=50, description="The most runs to list.")


def task_offers(deps: Deps, origin: Origin) -> Sequence[Offer]:
    """Offer what can be done with the tasks of a user, from where somebody asks."""
    tools = _Tools(deps, origin)
    return (
        define_tool("task_add", AddTask, tools.add, free=True),
        define_tool("task_propose", ProposeTask, tools.propose, free=True),
        define_tool("task_update", UpdateTask, tools.update, free=True),
        define_tool("task_list", ListTasks, tools.look, free=True, read_only=True),
        define_tool("task_pause", TaskName, tools.pause, free=True),
        define_tool("task_resume", TaskName, tools.resume, free=True),
        define_tool("task_cancel", CancelTask, tools.cancel, free=True),
        define_tool("task_run_now", TaskName, tools.run_now, free=True),
        # What runs found may be in words of others.
        define_tool(
            "task_history", TaskHistory, tools.history, free=True, read_only=True, outside=True
        ),
    )


class _Tools:
    def __init__(self, deps: Deps, origin: Origin) -> None:
        self._deps = with_retries(deps) if origin.turn else deps
        self._origin = origin

    async def add(self, asked: AddTask) -> str:
        """Set up a task: standing work of its own with a name, which reports to this conversation.

        It begins at once. The answer says when it runs: tell the user those times. A task that was
        not asked for in a chat, or after text of others was read, is only proposed and waits for
        the user's yes; the answer says so.
        """
        done = await tasks.add(self._deps, self._origin, asked.task())
        return phrasing.describe_task(done)

    async def propose(self, asked: ProposeTask) -> str:
        """Propose a task that nobody asked for: the user is asked, and nothing runs before a yes.

        Use it for something you noticed that would truly help. At most three in a run, and nothing
        that the user has said no to within a day.
        """
        done = await tasks.add(self._deps, self._origin, asked.task(), proposed_because=asked.why)
        return phrasing.describe_task(done)

    async def update(self, asked: UpdateTask) -> str:
        """Change a task: its name, what it does, when, how it tells, how often it runs.

        Only in a chat, as long as no text of others was read. A proposal is asked about anew.
        """
        done = await control.update(self._deps, self._origin, asked.task, asked.changes())
        return f"Changed. {phrasing.describe_task(done)}"

    async def look(self, asked: ListTasks) -> str:
        """List the user's tasks wherever they were made: proposed, active, paused, done, failed."""
        status = None if asked.status is None else TaskStatus(asked.status)
        return phrasing.describe_tasks(await tasks.list_for_agent(self._deps, self._origin, status))

    async def pause(self, asked: TaskName) -> str:
        """Let a task stand still until it is resumed. A run that is under way finishes."""
        done = await control.pause(self._deps, self._origin, asked.task)
        return f"Paused: {phrasing.task_name(done.work)}. task_resume lets it go on."

    async def resume(self, asked: TaskName) -> str:
        """Let a paused task go on: its next time is counted from now."""
        done = await control.resume(self._deps, self._origin, asked.task)
        return f"It goes on. {phrasing.describe_task(done)}"

    async def cancel(self, asked: CancelTask) -> str:
        """Stop a task for good and put it away. Its history and the reason are kept."""
        done = await control.put_away(self._deps, self._origin, asked.task, reason=asked.reason)
        return f"Cancelled: {phrasing.task_name(done.work)}."

    async def run_now(self, asked: TaskName) -> str:
        """Run a task at once, whatever its schedule says."""
        done = await control.run_now(self._deps, self._origin, asked.task)
        return f"It runs now: {phrasing.task_name(done.work)}."

    async def history(self, asked: TaskHistory) -> str:
        """List the last runs of a task: when, how each ended, what it found, what it took."""
        found, runs = await tasks.history(
            self._deps, self._origin.user, asked.task, limit=asked.runs
        )
        return phrasing.describe_history(found, runs)
