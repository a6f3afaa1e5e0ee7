"""`backburner jobs`: work that conversations handed out, looked at and looked after."""

import time
from collections.abc import Iterable, Sequence
from typing import Any

import click

from backburner.cli import id_prefix
from backburner.cli.client import Server
from backburner.cli.output import brief, clean, say_facts, say_json, say_table, short, when
from backburner.cli.server_options import shows, talks
from backburner.core.errors import MachineFailed

#: Between two looks, in seconds.
PAUSE = 0.5
AT_WORK = ("running", "resumed")

_in = click.option("--in", "conversation", metavar="CONVERSATION", help="That handed them out.")
_batch = click.option("--batch", help="All that belong to this group.")


class NotDone(MachineFailed):
    """Not all of them are done."""


@click.group("jobs", invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """List jobs, or start, show, await, resume, cancel and clear them.

    A job is a piece of work that a conversation handed out. Any beginning of its id will do.
    """
    if context.invoked_subcommand is None:
        context.invoke(list_all)


@command.command("list")
@click.option("--status", help="Only running, resumed, completed, error or cancelled ones.")
@_batch
@_in
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True)
@shows
@talks
def list_all(
    server: Server,
    *,
    limit: int,
    in_json: bool,
    conversation: str | None,
    **only: Any,
) -> None:
    """List jobs, those that changed last first."""
    parent = id_prefix.conversation(server, conversation) if conversation else None
    found = list(server.items("/api/jobs", limit=limit, parent_id=parent, **only))
    if in_json:
        say_json(found)
        return
    rows = [
        (short(one["id"]), state(one), when(one["created_at"]), one["calls"], _title(one))
        for one in found
    ]
    say_table([("ID", "STATUS", "STARTED", "CALLS", "WHAT"), *rows], empty="There are none.")


@command.command("start")
@click.argument("words", nargs=-1, required=True)
@click.option("--name", help="A short name, for people.")
@click.option("--in", "conversation", metavar="CONVERSATION", help="Without it, of a new one.")
@click.option("--agent", help="The name of a profile to work under.")
@click.option("--batch", default="", help="The group it belongs to.")
@shows
@talks
def start(
    server: Server,
    *,
    words: tuple[str, ...],
    name: str | None,
    conversation: str | None,
    agent: str | None,
    batch: str,
    in_json: bool,
) -> None:
    """Start a job, and say its id."""
    text = " ".join(words)
    if conversation is None:
        parent = server.post("/api/conversations", {"title": brief(name or text)})["id"]
    else:
        parent = id_prefix.conversation(server, conversation)
    body = {"conversation": parent, "description": brief(name or text), "prompt": text}
    started = server.post("/api/jobs", {**body, "agent": agent, "batch": batch})
    _tell(started, f"Started: {started['id']}", in_json=in_json)


@command.command("show")
@click.argument("job")
@shows
@talks
def show(server: Server, *, job: str, in_json: bool) -> None:
    """Show how a job stands, and its result if there is one."""
    found = server.get(f"/api/jobs/{id_prefix.job(server, job)}")
    if in_json:
        say_json(found)
    else:
        say_one(found)


@command.command("block")
@click.argument("jobs", nargs=-1, required=True)
@click.option("--timeout", type=click.FloatRange(min=0), default=60.0, show_default=True)
@shows
@talks
def block(server: Server, *, jobs: tuple[str, ...], timeout: float, in_json: bool) -> None:
    """Wait until jobs have ended, need you or stand still, or so many seconds have passed."""
    ids = [id_prefix.job(server, one) for one in jobs]
    found = _wait(server, ids, until=time.monotonic() + timeout)
    if in_json:
        say_json(found)
    for one in found if not in_json else ():
        say_one(one)
        click.echo()
    if left := [one for one in found if one["status"] != "completed"]:
        stand = ", ".join(f"{short(one['id'])} {state(one)}" for one in left)
        raise NotDone(f"Not completed: {stand}.")


@command.command("resume")
@click.argument("job")
@click.argument("words", nargs=-1, required=True)
@shows
@talks
def resume(server: Server, *, job: str, words: tuple[str, ...], in_json: bool) -> None:
    """Give a completed job something more to do; it remembers what it did."""
    which = id_prefix.job(server, job)
    resumed = server.post(f"/api/jobs/{which}/resume", {"message": " ".join(words)})
    _tell(resumed, f"It works on it: {resumed['description']}.", in_json=in_json)


@command.command("cancel")
@click.argument("jobs", nargs=-1)
@_batch
@shows
@talks
def cancel(server: Server, *, jobs: tuple[str, ...], batch: str | None, in_json: bool) -> None:
    """Stop jobs: some of them, or a whole batch."""
    if bool(jobs) == (batch is not None):
        raise click.UsageError("Say which jobs, or --batch.")
    done = [server.post(f"/api/jobs/{id_prefix.job(server, one)}/cancel") for one in jobs]
    for parent in _parents(server, batch) if batch is not None else ():
        changed = server.post("/api/jobs/cancel", {"conversation": parent, "batch": batch})
        done += changed["done"]
    _tell_of(done, "Cancelled", in_json=in_json)


@command.command("clear")
@click.argument("jobs", nargs=-1)
@_batch
@_in
@shows
@talks
def clear(
    server: Server,
    *,
    jobs: tuple[str, ...],
    batch: str | None,
    conversation: str | None,
    in_json: bool,
) -> None:
    """Remove jobs that have ended: some, a batch, or all of a conversation."""
    if sum((bool(jobs), batch is not None, conversation is not None)) != 1:
        raise click.UsageError("Say which jobs, --batch or --in.")
    done: list[Any] = []
    for one in jobs:
        which = id_prefix.job(server, one)
        done.append(server.get(f"/api/jobs/{which}"))
        server.delete(f"/api/jobs/{which}")
    if conversation is not None:
        body = {"conversation": id_prefix.conversation(server, conversation)}
        done += server.post("/api/jobs/clear", body)["done"]
    for parent in _parents(server, batch) if batch is not None else ():
        changed = server.post("/api/jobs/clear", {"conversation": parent, "batch": batch})
        done += changed["done"]
    _tell_of(done, "Removed", in_json=in_json)


def state(found: Any) -> str:
    """Say in a word or two how a job stands."""
    if found["needs_you"]:
        return f"{found['status']} (needs you)"
    return f"{found['status']} (paused)" if found["paused"] else str(found["status"])


def say_one(found: Any) -> None:
    say_facts(
        {
            "id": found["id"],
            "what": found["description"],
            "status": state(found),
            "asks": found["question"],
            "batch": found["batch"],
            "handed out by": found["parent_id"],
            "started": when(found["created_at"]),
            "ended": when(found["completed_at"]),
            "calls": f"{found['calls']} ({', '.join(found['recent_tools'])})"
            if found["calls"]
            else "",
            "heard of": when(found["updated_at"]),
        }
    )
    if text := found["result"] or found["error"]:
        click.echo(f"\n{clean(text)}")


def _wait(server: Server, ids: Sequence[str], *, until: float) -> Sequence[Any]:
    while True:
        found = [server.get(f"/api/jobs/{which}") for which in ids]
        left = until - time.monotonic()
        if left <= 0 or not any(_goes_on(one) for one in found):
            return found
        time.sleep(min(PAUSE, left))


def _goes_on(found: Any) -> bool:
    return found["status"] in AT_WORK and not found["needs_you"] and not found["paused"]


def _parents(server: Server, batch: str) -> Iterable[str]:
    """Find who handed out a batch; what it is called is up to them, so that may be several."""
    return {one["parent_id"] for one in server.items("/api/jobs", batch=batch)}


def _title(found: Any) -> str:
    return f"{brief(found['description'])}{' [' + found['batch'] + ']' if found['batch'] else ''}"


def _tell(found: Any, words: str, *, in_json: bool) -> None:
    if in_json:
        say_json(found)
    else:
        click.echo(clean(words))


def _tell_of(found: Sequence[Any], done: str, *, in_json: bool) -> None:
    if in_json:
        say_json(found)
    for one in found if not in_json else ():
        click.echo(clean(f"{done}: {short(one['id'])} {one['description']}."))
    if not found and not in_json:
        click.echo("There was nothing to do.")
