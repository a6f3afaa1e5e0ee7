"""`backburner tasks`: standing work."""

from collections.abc import Mapping
from typing import Any

import click

from backburner.cli import id_prefix
from backburner.cli.client import Server
from backburner.cli.command_name import name_commands
from backburner.cli.commands.connections.option import connection_option, may_use
from backburner.cli.commands.conversations import (
    describe_awaited_sign_in,
    describe_result,
    describe_running,
    messages_by_run,
    next_run,
)
from backburner.cli.confirmation import confirm, yes_option
from backburner.cli.current_folder import folder_option
from backburner.cli.list_group import LIST, ListGroup
from backburner.cli.output import (
    describe_progress,
    local_time,
    local_times,
    print_fields,
    print_items,
    print_json,
    print_line,
    print_result,
    short_id,
    truncate,
)
from backburner.cli.server_options import json_option, limit_option, missed_option, with_server
from backburner.cli.timeout_option import describe_seconds, timeout_option
from backburner.core.conversation import PauseReason
from backburner.core.errors import BadRequest

STATUSES = ("proposed", "active", "paused", "done", "failed")


_failure_option = click.option(
    "--on-repeated-failure",
    type=click.Choice(["pause", "notify"]),
    help="Pause after two failures in a row, or notify after three and continue.",
)


@click.group("tasks", cls=ListGroup)
def tasks() -> None:
    """Manage tasks. Without a command, list them.

    TASK is a name, an id, or the start of an id.
    """


@tasks.command(LIST)
@click.option("--status", type=click.Choice(STATUSES), help="Filter by status.")
@limit_option(50)
@json_option
@with_server
def list_tasks(server: Server, *, status: str | None, limit: int, as_json: bool) -> None:
    """List tasks. Archived ones are listed with --status done only."""
    items = list(server.items("/api/tasks", limit=limit, status=status))
    rows = [
        {
            "ID": short_id(task["id"]),
            "STATUS": describe_status(task),
            "RUNS": task["run_count"],
            "NEXT RUN": next_run(task),
            "NAME": truncate(task["name"]),
            "SCHEDULE": truncate(task["schedule_in_words"]),
        }
        for task in items
    ]
    print_items(items, rows, empty="No tasks.", as_json=as_json)


@tasks.command("show")
@click.argument("task")
@json_option
@with_server
def show(server: Server, *, task: str, as_json: bool) -> None:
    """Show the prompt, schedule and state of a task."""
    details = server.get(f"/api/tasks/{id_prefix.find_task(server, task)}")
    if as_json:
        print_json(details)
        return
    last = next(server.items(f"/api/tasks/{details['id']}/runs", limit=1), None)
    messages = messages_by_run(server, details["id"])
    print_fields(
        {
            "id": details["id"],
            "name": details["name"],
            "status": describe_status(details),
            "running": describe_running(details["running"]),
            "description": details["description"],
            "prompt": details["prompt"],
            "schedule": details["schedule_in_words"],
            "next runs": local_times(details["next_times"]),
            "runs": _run_count(details),
            "progress": describe_progress(details["progress"]),
            "last result": _last_result(last, messages) if last else "",
            "notify": details["notify"],
            "on repeated failure": details["on_repeated_failure"],
            "timeout": describe_seconds(details["timeout"]),
            "agent": details["agent"],
            "folder": details["folder"],
            "tools": _tools(details),
            "connections": ", ".join(details["connections"] or ()),
            "warnings": name_commands(" ".join(details["warnings"])),
            "reports to": _destinations(details),
            "questions": "; ".join(question["prompt"] for question in details["questions"]),
        }
    )


@tasks.command("add")
@click.argument("name")
@click.argument("prompt")
@click.option("--interval", metavar="TIME", help="Repeat: 30m, 2h, 1d.")
@click.option("--when", metavar="TEXT", help='Schedule: "every weekday at 9", "in 2h", or cron.')
@click.option("--after", metavar="TASK", help="Run whenever this task completes.")
@missed_option
@click.option(
    "--on", type=click.Choice(["success", "any"]), help="With --after: which outcome counts."
)
@click.option("--once", is_flag=True, help="Run once; without a schedule, at once.")
@click.option("--description", metavar="TEXT", help="Purpose of the task.")
@click.option(
    "--notify",
    type=click.Choice(["always", "on_change", "on_failure", "never"]),
    help="When to send a notice.",
)
@click.option(
    "--max-runs",
    metavar="NUMBER",
    type=click.IntRange(min=1),
    help="Stop after this many runs.",
)
@_failure_option
@click.option(
    "--tool", "tools", metavar="NAME", multiple=True, help="Allow only this tool; repeatable."
)
@folder_option
@may_use
@timeout_option(default="run_timeout")
@click.option("--agent", metavar="NAME", help="Agent or profile; `agents` lists agents.")
@click.option("--profile", metavar="NAME", help="Profile to use.")
@click.option("--allowance", metavar="LIMIT", help='What it may spend with its jobs: "2 USD".')
@click.option("--paused", is_flag=True, help="Set it up paused: `tasks resume` starts it.")
@json_option
@with_server
def add(server: Server, *, on: str | None, once: bool, as_json: bool, **options: Any) -> None:
    """Create a task.

    PROMPT says what to do in each run.
    """
    given = [name for name in ("when", "interval", "after") if options[name] is not None]
    if len(given) > 1 or not (given or once):
        problem = "There is more than one schedule." if given else "The schedule is missing."
        raise BadRequest(problem, hint="Pass one of --when, --interval, --after and --once.")
    lists = {name: list(options.pop(name)) or None for name in ("tools", "connections")}
    options["paused"] = options["paused"] or None
    body = {"after_on": on, "kind": "oneshot" if once else None, **lists, **options}
    task = server.post(
        "/api/tasks", {name: value for name, value in body.items() if value is not None}
    )
    print_result(task, f"Created: {summarize(task)}", as_json=as_json)
    _print_warnings(task, as_json=as_json)


@tasks.command("edit")
@click.argument("task")
@click.option("--name", metavar="TEXT", help="New name.")
@click.option("--prompt", metavar="TEXT", help="What to do in each run from now on.")
@click.option("--interval", metavar="TIME", help="Repeat: 30m, 2h, 1d.")
@click.option("--when", metavar="TEXT", help='Schedule: "every weekday at 9", "in 2h", or cron.')
@click.option("--after", metavar="TASK", help="Run whenever this task completes.")
@missed_option
@click.option("--description", metavar="TEXT", help="Purpose of the task.")
@click.option(
    "--notify",
    type=click.Choice(["always", "on_change", "on_failure", "never"]),
    help="When to send a notice.",
)
@click.option("--max-runs", metavar="NUMBER", help="Stop after this many runs, or `none`.")
@_failure_option
@click.option(
    "--tool", "tools", metavar="NAME", multiple=True, help="Allow only this tool; repeatable."
)
@click.option("--all-tools", is_flag=True, help="Allow all tools.")
@connection_option("Connection that it may use, instead of those it has; repeatable.")
@click.option("--no-connections", is_flag=True, help="Let it use no connections.")
@click.option("--profile", metavar="NAME", help="Profile to use, or `default`.")
@timeout_option()
@json_option
@with_server
def edit(
    server: Server,
    *,
    task: str,
    max_runs: str | None,
    tools: tuple[str, ...],
    all_tools: bool,
    profile: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Change a task. Options that are left out stay as they are."""
    connections, no_connections = options.pop("connections"), options.pop("no_connections")
    body: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if max_runs is not None:
        body["max_runs"] = _read_count(max_runs)
    if tools or all_tools:
        body["tools"] = None if all_tools else list(tools)
    if connections or no_connections:
        body["connections"] = [] if no_connections else list(connections)
    if profile is not None:
        body["profile"] = None if profile == "default" else profile
    if not body:
        raise BadRequest("Nothing to change.", hint="Pass an option such as --when.")
    changed = server.patch(f"/api/tasks/{id_prefix.find_task(server, task)}", body)
    print_result(changed, f"Changed: {summarize(changed)}", as_json=as_json)
    _print_warnings(changed, as_json=as_json)


@tasks.command("delete")
@click.argument("task")
@yes_option
@with_server
def delete(server: Server, *, task: str, is_sure: bool) -> None:
    """Delete a task with its history. To keep the history, cancel it."""
    path = f"/api/tasks/{id_prefix.find_task(server, task)}"
    name = server.get(path)["name"]
    confirm(f"Delete {name!r} with its history?", is_sure=is_sure)
    server.delete(path)
    print_line("Deleted.")


@tasks.command("preview")
@click.argument("task")
@json_option
@with_server
def preview(server: Server, *, task: str, as_json: bool) -> None:
    """Show the next five runs of a task and an estimate of their cost."""
    details = server.get(f"/api/tasks/{id_prefix.find_task(server, task)}/preview")
    if as_json:
        print_json(details)
        return
    print_fields(
        {
            "name": details["name"],
            "status": details["status"],
            "prompt": details["prompt"],
            "schedule": details["schedule_in_words"],
            "next runs": "; ".join(details["next_times_in_words"]),
            "tools": _tools(details),
            "reports to": _destinations(details),
            "profile": details["profile"],
            "per run": _cost(details["cost"], "run"),
            "per month": _cost(details["cost"], "month"),
        }
    )


@tasks.command("test-run")
@click.argument("task")
@json_option
@with_server
def test_run(server: Server, *, task: str, as_json: bool) -> None:
    """Run the prompt of a task once as a test. Its schedule does not change.

    Calls that need approval are not made; one question lists them when it ends.
    """
    started = server.post(f"/api/tasks/{id_prefix.find_task(server, task)}/test-run")
    text = f"Test run started. Its result: `backburner conversations {started['task_id']}`"
    print_result(started, name_commands(text), as_json=as_json)


@tasks.command("history")
@click.argument("task")
@limit_option(20)
@json_option
@with_server
def history(server: Server, *, task: str, limit: int, as_json: bool) -> None:
    """List the runs of a task, newest first."""
    task_id = id_prefix.find_task(server, task)
    items = list(server.items(f"/api/tasks/{task_id}/runs", limit=limit))
    messages = messages_by_run(server, task_id)
    rows = [
        {
            "STARTED": local_time(run["started_at"]),
            "STATUS": run["status"],
            "TOKENS": run["tokens"],
            "RESULT": truncate(describe_result(run, messages)),
        }
        for run in items
    ]
    print_items(items, rows, empty="No runs yet.", as_json=as_json)


@tasks.command("cancel")
@click.argument("task")
@click.option("--reason", metavar="TEXT", default="", help="Reason, stored with the task.")
@json_option
@with_server
def cancel(server: Server, *, task: str, reason: str, as_json: bool) -> None:
    """Cancel a task permanently and archive it."""
    task_id = id_prefix.find_task(server, task)
    server.post(f"/api/tasks/{task_id}/cancel", {"reason": reason})
    cancelled = server.get(f"/api/conversations/{task_id}")
    print_result(cancelled, f"Cancelled: {cancelled['title']}.", as_json=as_json)


def _add_command(name: str, help_text: str, verb: str) -> None:
    @tasks.command(name, help=help_text)
    @click.argument("task")
    @json_option
    @with_server
    def command(server: Server, *, task: str, as_json: bool) -> None:
        changed = server.post(f"/api/tasks/{id_prefix.find_task(server, task)}/{name}")
        print_result(changed, f"{verb}: {changed['name']}.", as_json=as_json)


_add_command("pause", "Pause a task.", "Paused")
_add_command("resume", "Resume a task.", "Resumed")
_add_command("run-now", "Run a task now.", "Running now")


def _read_count(text: str) -> int | None:
    if text == "none":
        return None
    if not text.isdecimal():
        raise BadRequest(f"{text!r} is not a number of runs.", hint="Use 1 or more, or `none`.")
    return int(text)


def _print_warnings(task: Any, *, as_json: bool) -> None:
    for warning in () if as_json else task["warnings"]:
        click.echo(name_commands(warning), err=True)


def describe_status(task: Any) -> str:
    if awaited := describe_awaited_sign_in(task):
        return awaited
    if task["status"] == "paused" and task["pause_reason"] != PauseReason.USER:
        return f"paused ({task['pause_reason'].replace('_', ' ')})"
    needs_user = task["needs_you"] and task["status"] != "proposed"
    return f"{task['status']}, needs you" if needs_user else str(task["status"])


def summarize(task: Any) -> str:
    next_at = local_time(task["next_run_at"])
    next_run = f", next run at {next_at}" if next_at else ""
    return f"{task['name']}, {task['schedule_in_words']}{next_run}."


def _last_result(run: Any, messages: Mapping[str, str]) -> str:
    skipped = "skipped: " if run["skipped"] else ""
    return f"{skipped}{describe_result(run, messages)}"


def _run_count(task: Any) -> str:
    limit = task["max_runs"]
    return f"{task['run_count']}" if limit is None else f"{task['run_count']} of {limit}"


def _tools(task: Any) -> str:
    tools = task["tools"]
    return "all" if tools is None else ", ".join(tools) or "none"


def _destinations(task: Any) -> str:
    return ", ".join(f"{place['channel']} {place['target']}" for place in task["reports_to"])


def _cost(cost: Any, period: str) -> str:
    if cost is None:
        return "unknown: no similar runs yet"
    tokens, usd = cost[f"tokens_per_{period}"], cost[f"usd_per_{period}"]
    if tokens is None:
        return "unknown: other work triggers it"
    money = "no price known" if usd is None else f"{usd:.4f} USD"
    source = f" (based on {cost['based_on']})" if period == "run" else ""
    return f"{tokens:,} tokens, {money}{source}"
