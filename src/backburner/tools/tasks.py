"""Tools for tasks: named background work of the user."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from backburner.actions.deps import Deps
from backburner.actions.models.changes import ModelChoice
from backburner.actions.origin import Origin
from backburner.actions.schedules import Timing
from backburner.actions.work import control, tasks
from backburner.actions.work.control import TaskChanges
from backburner.actions.work.tasks import NewTask
from backburner.core.conversation import MAX_TITLE_CHARS, Notify, OnRepeatedFailure
from backburner.core.schedule import AfterCondition
from backburner.core.transitions import Terms
from backburner.core.work.folders import MAX_PATH_CHARS
from backburner.core.work.proposal import MAX_REASON_CHARS
from backburner.core.work.views import TaskKind, TaskStatus
from backburner.ports import Offer
from backburner.tools import phrasing
from backburner.tools.define import (
    CONNECTIONS,
    Arguments,
    Timeout,
    define_tool,
    describe_for_clients,
)

MAX_RUN_LIMIT = 1_000_000

NotifyChoice = Literal["always", "on_change", "on_failure", "never"]
FailurePolicy = Literal["pause", "notify"]


class TaskSchedule(Arguments):
    interval: str | None = Field(
        default=None, description="The interval between runs: `30m`, `2h`, `1d`."
    )
    when: str | None = Field(
        default=None,
        description="Instead of an interval, in the user's time zone: `every weekday at 9`,"
        " `every monday at 9:30`, `in 20 minutes`, `tomorrow at 17:00`, a cron expression, or an"
        " ISO time with an offset.",
    )
    after: str | None = Field(
        default=None,
        description="Instead of a time: another task, by name or id. It runs whenever that one"
        " completes; once if that one runs once.",
    )
    after_on: Literal["success", "any"] = Field(
        default="success",
        description="With `after`: `any` also runs it when the other fails or is cancelled.",
    )

    def timing(self, kind: str | None = None) -> Timing:
        return Timing(
            phrase=self.when,
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
        default="", max_length=2_000, description="Its purpose, in a sentence."
    )
    prompt: str = Field(
        min_length=1,
        description="What to do in each run. Make it self-contained: the run does not see this"
        " conversation. Say what is worth reporting and what is not.",
    )
    kind: Literal["scheduled", "oneshot"] | None = Field(
        default=None,
        description="`scheduled` repeats; `oneshot` runs once, immediately if no time is given."
        " Optional if the time implies it.",
    )
    notify: NotifyChoice | None = Field(
        default=None,
        description="When to notify the user of a result; `on_change`: if it differs from the"
        " previous one. Default: the setting of this conversation, usually `on_change`.",
    )
    on_repeated_failure: FailurePolicy = Field(
        default="pause",
        description="Pause after two failures in a row, or notify after three and continue.",
    )
    max_runs: int | None = Field(
        default=None,
        ge=1,
        le=MAX_RUN_LIMIT,
        description="The task ends after this many runs; null: no limit.",
    )
    timeout: Timeout = None
    tools: list[str] | None = Field(
        default=None,
        max_length=200,
        description="The tools it may use, by name; null: those of this conversation.",
    )
    agent: str | None = Field(
        default=None,
        description="`general`, `researcher` (reads only), `coder`, or one that the user names.",
    )
    connections: list[str] = Field(default=[], description=CONNECTIONS)
    folder: str | None = Field(
        default=None,
        max_length=MAX_PATH_CHARS,
        description="To work in: a folder the user has added, by path or name; null: that of this"
        " conversation.",
    )

    def task(self) -> NewTask:
        return NewTask(
            folder=self.folder,
            connections=self.connections,
            name=self.name,
            prompt=self.prompt,
            timing=self.timing(self.kind),
            description=self.description,
            notify=None if self.notify is None else Notify(self.notify),
            max_runs=self.max_runs,
            run_timeout=self.timeout,
            tools=self.tools,
            agent=self.agent,
            on_repeated_failure=OnRepeatedFailure(self.on_repeated_failure),
        )


class ProposeTask(AddTask):
    why: str = Field(
        min_length=1,
        max_length=MAX_REASON_CHARS,
        description="The reason, for the user: what you noticed, and how the task would help.",
    )


class TaskName(Arguments):
    task: str = Field(
        min_length=1,
        max_length=MAX_TITLE_CHARS,
        description="Its name, its id, or the beginning of its id.",
    )


class UpdateTask(TaskSchedule, TaskName):
    """Omitted arguments leave the task unchanged."""

    name: str | None = Field(default=None, max_length=MAX_TITLE_CHARS)
    description: str | None = Field(default=None, max_length=2_000)
    prompt: str | None = Field(default=None, description="What to do in each run from now on.")
    notify: NotifyChoice | None = None
    on_repeated_failure: FailurePolicy | None = None
    max_runs: int | None = Field(
        default=None,
        ge=0,
        le=MAX_RUN_LIMIT,
        description="Counted from the first run of the task; 0: no limit.",
    )
    timeout: Timeout = None
    tools: list[str] | None = Field(default=None, max_length=200)
    connections: list[str] | None = None
    agent: str | None = Field(
        default=None, description="The name of the profile to use from the next run on."
    )

    def changes(self) -> TaskChanges:
        timing = self.timing()
        return TaskChanges(
            terms=self._edit,
            timing=timing if timing.is_given else None,
            model=None if self.agent is None else ModelChoice(self.agent),
        )

    def _edit(self, terms: Terms) -> Terms:
        fields: dict[str, Any] = {
            "title": self.name,
            "description": self.description,
            "prompt": self.prompt,
            "notify": None if self.notify is None else Notify(self.notify),
            "on_repeated_failure": self.on_repeated_failure
            and OnRepeatedFailure(self.on_repeated_failure),
            "run_timeout": self.timeout,
            "tools": None if self.tools is None else tuple(self.tools),
            "connections": None if self.connections is None else tuple(self.connections),
        }
        changed = {name: value for name, value in fields.items() if value is not None}
        terms = replace(terms, **changed)
        return terms if self.max_runs is None else replace(terms, max_runs=self.max_runs or None)


class CancelTask(TaskName):
    reason: str = Field(default="", max_length=2_000, description="The reason, for the record.")


class ListTasks(Arguments):
    status: Literal["proposed", "active", "paused", "done", "failed"] | None = Field(
        default=None,
        description="List only tasks with this status; null: all that are not archived.",
    )


class TaskHistory(TaskName):
    runs: int = Field(default=10, ge=1, le=50, description="The maximum number of runs to list.")


#: Descriptions for clients outside. They act for the user, and are not told of results.
CLIENT_TEXTS = {
    "task_add": "Create a task: named background work for the user. It is active immediately. The"
    " result says when it runs: tell the user those times. The user is notified of its results,"
    " you are not: read them with task_history.",
    "task_update": "Change a task: its name, prompt, schedule, notifications, tools or run limit."
    " The user is asked again about a changed proposal.",
}
HOW_TO_READ_RESULTS = "Read the results of its runs with task_history."


def task_offers(deps: Deps, origin: Origin) -> Sequence[Offer]:
    offers = _offers(deps, origin)
    return offers if origin.turn is not None else describe_for_clients(offers, CLIENT_TEXTS)


def _offers(deps: Deps, origin: Origin) -> Sequence[Offer]:
    tools = _Tools(deps, origin)
    return (
        define_tool("task_add", AddTask, tools.add, free=True),
        define_tool("task_propose", ProposeTask, tools.propose, free=True),
        define_tool("task_update", UpdateTask, tools.update, free=True),
        define_tool("task_list", ListTasks, tools.list, free=True, read_only=True),
        define_tool("task_pause", TaskName, tools.pause, free=True),
        define_tool("task_resume", TaskName, tools.resume, free=True),
        define_tool("task_cancel", CancelTask, tools.cancel, free=True),
        define_tool("task_run_now", TaskName, tools.run_now, free=True),
        define_tool("task_history", TaskHistory, tools.history, free=True, read_only=True),
    )


class _Tools:
    def __init__(self, deps: Deps, origin: Origin) -> None:
        self._deps = deps
        self._origin = origin

    async def add(self, arguments: AddTask) -> str:
        """Create a task: named background work that reports to this conversation.

        It starts immediately. The result says when it runs: tell the user those times. A task
        added outside a chat, or after reading outside text, is only proposed and waits for the
        user's approval; the result says so.
        """
        task = await tasks.add(self._deps, self._origin, arguments.task())
        text = phrasing.describe_task(task)
        return text if self._origin.turn is not None else f"{text} {HOW_TO_READ_RESULTS}"

    async def propose(self, arguments: ProposeTask) -> str:
        """Propose a task that the user did not ask for; nothing runs before they approve it.

        Use it for something you noticed that would really help. Propose at most three tasks a run,
        and nothing that the user has rejected within a day.
        """
        task = await tasks.add(
            self._deps, self._origin, arguments.task(), proposed_because=arguments.why
        )
        return phrasing.describe_task(task)

    async def update(self, arguments: UpdateTask) -> str:
        """Change a task: its name, prompt, schedule, notifications, tools, run limit or profile.

        Outside a chat, or after reading outside text, the change is only proposed and waits for
        the user's approval; the result says so. A changed proposal is asked again.
        """
        task = await control.update(self._deps, self._origin, arguments.task, arguments.changes())
        return phrasing.describe_change(task, f"Changed. {phrasing.describe_task(task)}")

    async def list(self, arguments: ListTasks) -> str:
        """List the tasks of the user from all conversations, with status and next times."""
        status = None if arguments.status is None else TaskStatus(arguments.status)
        return phrasing.describe_tasks(await tasks.list_for_agent(self._deps, self._origin, status))

    async def pause(self, arguments: TaskName) -> str:
        """Pause a task until it is resumed. A run in progress finishes."""
        task = await control.pause(self._deps, self._origin, arguments.task)
        name = phrasing.task_name(task.work)
        return phrasing.describe_change(task, f"Paused: {name}. Use task_resume to resume it.")

    async def resume(self, arguments: TaskName) -> str:
        """Resume a paused task; its next time is computed from now."""
        task = await control.resume(self._deps, self._origin, arguments.task)
        return phrasing.describe_change(task, f"Resumed. {phrasing.describe_task(task)}")

    async def cancel(self, arguments: CancelTask) -> str:
        """Cancel a task for good and archive it. Its history and the reason are kept."""
        task = await control.cancel_and_archive(
            self._deps, self._origin, arguments.task, reason=arguments.reason
        )
        return phrasing.describe_change(task, f"Cancelled: {phrasing.task_name(task.work)}.")

    async def run_now(self, arguments: TaskName) -> str:
        """Run a task now, regardless of its schedule."""
        task = await control.run_now(self._deps, self._origin, arguments.task)
        return phrasing.describe_change(task, f"Running now: {phrasing.task_name(task.work)}.")

    async def history(self, arguments: TaskHistory) -> str:
        """List the last runs of a task: time, status, result and tokens of each."""
        task, runs = await tasks.history(
            self._deps, self._origin, arguments.task, limit=arguments.runs
        )
        return phrasing.describe_history(task, runs)
