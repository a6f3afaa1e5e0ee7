"""`backburner tasks`: standing work, listed, set up, looked at, tried, steered and cancelled."""

from typing import Any

import click

from backburner.cli import id_prefix
from backburner.cli.client import Server
from backburner.cli.commands import runs
from backburner.cli.output import brief, clean, say_facts, say_json, say_table, short, when
from backburner.cli.server_options import shows, talks

STATUSES = ("proposed", "active", "paused", "done", "failed")
LIST = "list"


class Listing(click.Group):
    """Lists where nothing else is said."""

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        says_what = arguments and (not arguments[0].startswith("-") or arguments[0] == "--help")
        return super().parse_args(context, arguments if says_what else [LIST, *arguments])


@click.group("tasks", cls=Listing)
def command() -> None:
    """See to tasks: by name, or by any beginning of their id. Without a command, list them."""


@command.command(LIST)
@click.option("--status", type=click.Choice(STATUSES), help="Only those that stand so.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True)
@shows
@talks
def list_all(server: Server, *, status: str | None, limit: int, in_json: bool) -> None:
    """List tasks; those that were put away only with --status done."""
    found = list(server.items("/api/tasks", limit=limit, status=status))
    if in_json:
        say_json(found)
        return
    rows = [
        (
            short(one["id"]),
            state(one),
            one["run_count"],
            when(one["next_run_at"]),
            brief(one["name"]),
            brief(one["schedule_in_words"]),
        )
        for one in found
    ]
    heading = ("ID", "STATUS", "RUNS", "NEXT", "NAME", "WHEN")
    say_table([heading, *rows], empty="There are none.")


@command.command("show")
@click.argument("task")
@shows
@talks
def show(server: Server, *, task: str, in_json: bool) -> None:
    """Show what a task does, when, and how it stands."""
    found = server.get(f"/api/tasks/{id_prefix.task(server, task)}")
    if in_json:
        say_json(found)
        return
    say_facts(
        {
            "id": found["id"],
            "name": found["name"],
            "status": state(found),
            "for": found["description"],
            "does": found["prompt"],
            "when": found["schedule_in_words"],
            "next": ", ".join(when(one) for one in found["next_times"]),
            "runs": _runs(found),
            "tells": found["notify"],
            "tools": _tools(found),
            "reports to": _places(found),
            "waits for": "; ".join(asked["prompt"] for asked in found["questions"]),
        }
    )


@command.command("add")
@click.argument("name")
@click.argument("prompt")
@click.option("--interval", metavar="TIME", help="How often: 30m, 2h, 1d.")
@click.option("--when", "words", metavar="WORDS", help="Or: every weekday at 9, in 2h, cron.")
@click.option("--after", metavar="TASK", help="Or: whenever that task completes.")
@click.option("--on", type=click.Choice(["success", "any"]), help="With --after: however it ends.")
@click.option("--once", is_flag=True, help="Without a time: once, and at once.")
@click.option("--description", help="What it is for.")
@click.option("--notify", type=click.Choice(["always", "on_change", "on_failure", "never"]))
@click.option("--max-runs", type=click.IntRange(min=1), help="It ends after so many.")
@click.option("--tool", "tools", multiple=True, help="Only this tool; may be given more than once.")
@click.option("--profile", help="A named model.")
@shows
@talks
def add(
    server: Server, *, words: str | None, on: str | None, once: bool, in_json: bool, **given: Any
) -> None:
    """Set up a task: a name, what to do in each run, and when."""
    tools = list(given.pop("tools")) or None
    body = {"when": words, "after_on": on, "kind": "oneshot" if once else None, "tools": tools}
    body |= given
    made = server.post(
        "/api/tasks", {name: value for name, value in body.items() if value is not None}
    )
    _tell(made, f"Set up: {_in_words(made)}", in_json=in_json)


@command.command("preview")
@click.argument("task")
@shows
@talks
def preview(server: Server, *, task: str, in_json: bool) -> None:
    """Show what a task would do, its next five times, and what that is likely to cost."""
    found = server.get(f"/api/tasks/{id_prefix.task(server, task)}/preview")
    if in_json:
        say_json(found)
        return
    say_facts(
        {
            "name": found["name"],
            "status": found["status"],
            "does": found["prompt"],
            "when": found["schedule_in_words"],
            "next": "; ".join(found["next_times_in_words"]),
            "tools": _tools(found),
            "reports to": _places(found),
            "profile": found["profile"],
            "a run": _cost(found["cost"], "run"),
            "a month": _cost(found["cost"], "month"),
        }
    )


@command.command("test-run")
@click.argument("task")
@shows
@talks
def test_run(server: Server, *, task: str, in_json: bool) -> None:
    """Do the work of a task once, to see what comes of it. Its schedule stays as it is."""
    tried = server.post(f"/api/tasks/{id_prefix.task(server, task)}/test-run")
    words = f"It is tried now. The result will be in: backburner conversations {tried['task_id']}"
    _tell(tried, words, in_json=in_json)


@command.command("history")
@click.argument("task")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True)
@shows
@talks
def history(server: Server, *, task: str, limit: int, in_json: bool) -> None:
    """List the runs of a task, the newest first."""
    which = id_prefix.task(server, task)
    found = list(server.items(f"/api/tasks/{which}/runs", limit=limit))
    if in_json:
        say_json(found)
        return
    rows = [
        (when(one["started_at"]), one["status"], one["tokens"], brief(runs.result(one)))
        for one in found
    ]
    say_table([("STARTED", "STATUS", "TOKENS", "RESULT"), *rows], empty="It has not run yet.")


@command.command("cancel")
@click.argument("task")
@click.option("--reason", default="", help="Kept with the task.")
@talks
def cancel(server: Server, *, task: str, reason: str) -> None:
    """Stop a task for good and put it away."""
    which = id_prefix.task(server, task)
    server.post(f"/api/tasks/{which}/cancel", {"reason": reason})
    click.echo("Cancelled.")


def _steering(name: str, meaning: str, done: str) -> None:
    @command.command(name, help=meaning)
    @click.argument("task")
    @shows
    @talks
    def steer(server: Server, *, task: str, in_json: bool) -> None:
        found = server.post(f"/api/tasks/{id_prefix.task(server, task)}/{name}")
        _tell(found, f"{done}: {found['name']}.", in_json=in_json)


_steering("pause", "Let a task stand still.", "Paused")
_steering("resume", "Let a task go on.", "It goes on")
_steering("run-now", "Run a task at once.", "It runs now")


def state(found: Any) -> str:
    needs = found["needs_you"] and found["status"] != "proposed"
    return f"{found['status']}, needs you" if needs else str(found["status"])


def _in_words(found: Any) -> str:
    next_at = when(found["next_run_at"])
    begins = f", next at {next_at}" if next_at else ""
    return f"{found['name']}, {found['schedule_in_words']}{begins}."


def _tell(found: Any, words: str, *, in_json: bool) -> None:
    if in_json:
        say_json(found)
    else:
        click.echo(clean(words))


def _runs(found: Any) -> str:
    most = found["max_runs"]
    return f"{found['run_count']}" if most is None else f"{found['run_count']} of {most}"


def _tools(found: Any) -> str:
    tools = found["tools"]
    return "all" if tools is None else ", ".join(tools) or "none"


def _places(found: Any) -> str:
    return ", ".join(f"{place['channel']} {place['target']}" for place in found["reports_to"])


def _cost(cost: Any, per: str) -> str:
    """Say what something costs, as far as anybody knows."""
    if cost is None or cost[f"tokens_per_{per}"] is None:
        return "not known yet" if cost is None else "not known: something else starts it"
    tokens, usd = cost[f"tokens_per_{per}"], cost[f"usd_per_{per}"]
    money = "no price known" if usd is None else f"{usd:.4f} USD"
    from_what = f" (from {cost['based_on']})" if per == "run" else ""
    return f"{tokens:,} tokens, {money}{from_what}"
