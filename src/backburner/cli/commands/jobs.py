"""`backburner jobs`: pieces of work that conversations delegate."""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import Any

import click

from backburner.cli import id_prefix
from backburner.cli.client import Server
from backburner.cli.commands.connections.option import may_use
from backburner.cli.commands.conversations import describe_running
from backburner.cli.commands.work.new_conversation import new_conversation
from backburner.cli.confirmation import confirm, yes_option
from backburner.cli.current_folder import folder_option
from backburner.cli.list_group import LIST, ListGroup
from backburner.cli.output import (
    describe_progress,
    local_time,
    print_fields,
    print_items,
    print_json,
    print_result,
    printable,
    short_id,
    truncate,
)
from backburner.cli.server_options import (
    Decorated,
    json_option,
    limit_option,
    with_server,
)
from backburner.cli.timeout_option import describe_seconds, timeout_option
from backburner.core.errors import MachineFailed
from backburner.core.work.views import JobStatus

POLL_INTERVAL_SECONDS = 0.5
#: In the question before they are deleted.
MAX_JOBS_NAMED = 5
RUNNING_STATUSES = ("running", "resumed")
NO_JOBS = "No matching jobs."

_in_option = click.option(
    "--in", "conversation", metavar="CONVERSATION", help="Jobs of this conversation."
)


def _wait_option(name: str) -> Callable[[Decorated], Decorated]:
    return click.option(
        name,
        "wait_seconds",
        metavar="SECONDS",
        type=click.FloatRange(min=0),
        default=60.0,
        show_default=True,
        help="Maximum time to wait.",
    )


_batch_option = click.option("--batch", metavar="NAME", help="Jobs of this batch.")


class NotCompleted(MachineFailed):
    """Not all jobs are completed."""


@click.group("jobs", cls=ListGroup)
def jobs() -> None:
    """Manage jobs. Without a command, list them.

    A job is a piece of work that a conversation delegates. JOB is a name, an id, or the
    start of an id.
    """


@click.command("agents")
@json_option
@with_server
def agents(server: Server, *, as_json: bool) -> None:
    """List the agents that jobs and tasks can name."""
    items = server.get("/api/agents")
    rows = [
        {
            "NAME": agent["name"],
            "PROFILE": agent["profile"] or "",
            "TOOLS": "all" if agent["tools"] is None else truncate(", ".join(agent["tools"])),
            "INSTRUCTIONS": truncate(agent["instructions"]),
        }
        for agent in items
    ]
    print_items(items, rows, empty="No agents.", as_json=as_json)


@jobs.command(LIST)
@click.option("--status", type=click.Choice([*map(str, JobStatus)]), help="Filter by status.")
@_batch_option
@_in_option
@limit_option(50)
@json_option
@with_server
def list_jobs(
    server: Server, *, limit: int, as_json: bool, conversation: str | None, **filters: Any
) -> None:
    """List jobs, last changed first."""
    parent_id = id_prefix.find_conversation(server, conversation) if conversation else None
    items = list(server.items("/api/jobs", limit=limit, parent_id=parent_id, **filters))
    rows = [
        {
            "ID": short_id(job["id"]),
            "STATUS": describe_status(job),
            "STARTED": local_time(job["created_at"]),
            "CALLS": job["calls"],
            "DESCRIPTION": truncate(job["description"]),
            "PROGRESS": truncate((job["progress"] or {}).get("text")),
            "BATCH": _batch(job),
        }
        for job in items
    ]
    print_items(items, rows, empty="No jobs.", as_json=as_json)


@jobs.command("tree")
@click.argument("conversation", required=False)
@json_option
@with_server
def tree(server: Server, *, conversation: str | None, as_json: bool) -> None:
    """Show jobs below the conversations and jobs that started them.

    CONVERSATION is a title, an id, or the start of an id. Default: those whose jobs changed last.
    """
    conversation_id = conversation and id_prefix.find_conversation(server, conversation)
    found = server.get("/api/jobs/tree", conversation_id=conversation_id)
    if as_json:
        print_json(found)
        return
    for one in found["trees"]:
        counts = f" ({one['counts']['in_words']})" if one["counts"]["total"] else ""
        click.echo(printable(f"{short_id(one['conversation_id'])}  {one['title']}{counts}"))
        for line in _tree_lines(one["children"], depth=1):
            click.echo(printable(line))
    if not found["trees"]:
        click.echo("No jobs.")
    if found["is_cut"]:
        click.echo("There are more: see `backburner jobs`.")


def _tree_lines(nodes: Sequence[Any], *, depth: int) -> Iterable[str]:
    for node in nodes:
        counts = f" ({node['counts']['in_words']})" if node["counts"]["total"] else ""
        said = (node["progress"] or {}).get("text") or node["doing"]
        doing = f": {truncate(said)}" if said else ""
        title = f"{truncate(node['title'])}{counts}"
        yield f"{short_id(node['id'])}{'  ' * depth}  {describe_status(node)}  {title}{doing}"
        yield from _tree_lines(node["children"], depth=depth + 1)


@jobs.command("start")
@click.argument("prompt", nargs=-1, required=True)
@click.option("--name", help="Short description.")
@click.option(
    "--in",
    "conversation",
    metavar="CONVERSATION",
    help="Conversation that gets the result. Default: a new one.",
)
@folder_option
@may_use
@click.option("--agent", metavar="NAME", help="Agent or profile; `agents` lists agents.")
@click.option("--batch", metavar="NAME", default="", help="Batch that the job belongs to.")
@timeout_option(default="job_timeout")
@click.option("--wait", is_flag=True, help="Wait until it has ended, and show its result.")
@_wait_option("--wait-timeout")
@json_option
@with_server
def start(
    server: Server, *, prompt: tuple[str, ...], wait: bool, wait_seconds: float, **options: Any
) -> None:
    """Start a job and print its id."""
    text, as_json, conversation = " ".join(prompt), options["as_json"], options["conversation"]
    title = truncate(options["name"] or text)
    parent = (
        new_conversation(server, {"title": title})
        if conversation is None
        else nullcontext(id_prefix.find_conversation(server, conversation))
    )
    with parent as parent_id:
        body: dict[str, Any] = {"conversation": parent_id, "description": title, "prompt": text}
        body |= {name: options[name] for name in ("agent", "batch", "timeout", "folder")}
        body["connections"] = list(options["connections"])
        job = server.post("/api/jobs", body)
    if wait:
        (job,) = _wait(server, [job["id"]], until=time.monotonic() + wait_seconds)
        (print_json if as_json else print_job)(job)
        _require_completed([job])
    else:
        print_result(job, f"Started: {job['id']}", as_json=as_json)


@jobs.command("show")
@click.argument("job")
@json_option
@with_server
def show(server: Server, *, job: str, as_json: bool) -> None:
    """Show the state and result of a job."""
    details = server.get(f"/api/jobs/{id_prefix.find_job(server, job)}")
    if as_json:
        print_json(details)
    else:
        print_job(details)


@jobs.command("block")
@click.argument("jobs", nargs=-1, metavar="[JOB]...")
@_batch_option
@_wait_option("--timeout")
@json_option
@with_server
def block(
    server: Server,
    *,
    jobs: tuple[str, ...],
    batch: str | None,
    wait_seconds: float,
    as_json: bool,
) -> None:
    """Wait until jobs have ended, are paused or have a question for you."""
    _require_choice(jobs, batch)
    ids = [id_prefix.find_job(server, prefix) for prefix in jobs]
    if batch is not None:
        ids = [job["id"] for job in server.items("/api/jobs", batch=batch)]
    items = _wait(server, ids, until=time.monotonic() + wait_seconds)
    if as_json:
        print_json(items)
    elif not items:
        click.echo(NO_JOBS)
    for job in items if not as_json else ():
        print_job(job)
        click.echo()
    _require_completed(items)


def _require_completed(items: Sequence[Any]) -> None:
    if unfinished := [job for job in items if job["status"] != "completed"]:
        states = ", ".join(f"{short_id(job['id'])} {describe_status(job)}" for job in unfinished)
        raise NotCompleted(f"Not completed: {states}.")


@jobs.command("resume")
@click.argument("job")
@click.argument("message", nargs=-1, required=True)
@json_option
@with_server
def resume(server: Server, *, job: str, message: tuple[str, ...], as_json: bool) -> None:
    """Send a follow-up to a completed job. It remembers its earlier work."""
    job_id = id_prefix.find_job(server, job)
    resumed = server.post(f"/api/jobs/{job_id}/resume", {"message": " ".join(message)})
    print_result(resumed, f"Resumed: {resumed['description']}.", as_json=as_json)


@jobs.command("cancel")
@click.argument("jobs", nargs=-1, metavar="[JOB]...")
@_batch_option
@json_option
@with_server
def cancel(server: Server, *, jobs: tuple[str, ...], batch: str | None, as_json: bool) -> None:
    """Cancel jobs."""
    _require_choice(jobs, batch)
    cancelled = [
        server.post(f"/api/jobs/{id_prefix.find_job(server, prefix)}/cancel") for prefix in jobs
    ]
    for parent_id in _batch_parents(server, batch) if batch is not None else ():
        body = {"conversation": parent_id, "batch": batch}
        cancelled += server.post("/api/jobs/cancel", body)["done"]
    _print_changed(cancelled, "Cancelled", as_json=as_json)


@jobs.command("clear")
@click.argument("jobs", nargs=-1, metavar="[JOB]...")
@_batch_option
@_in_option
@yes_option
@json_option
@with_server
def clear(
    server: Server,
    *,
    jobs: tuple[str, ...],
    batch: str | None,
    conversation: str | None,
    is_sure: bool,
    as_json: bool,
) -> None:
    """Delete jobs that have ended, with their results."""
    if sum((bool(jobs), batch is not None, conversation is not None)) != 1:
        raise click.UsageError("Pass one of JOB, --batch or --in.")
    ids = [id_prefix.find_job(server, reference) for reference in jobs]
    chosen = [server.get(f"/api/jobs/{job_id}") for job_id in ids]
    if not ids:
        parent_id = conversation and id_prefix.find_conversation(server, conversation)
        chosen = [
            job
            for job in server.items("/api/jobs", parent_id=parent_id, batch=batch)
            if job["status"] not in RUNNING_STATUSES
        ]
    if chosen:
        names = "; ".join(truncate(job["description"]) for job in chosen[:MAX_JOBS_NAMED])
        more = f" and {len(chosen) - MAX_JOBS_NAMED} more" * (len(chosen) > MAX_JOBS_NAMED)
        confirm(f"Delete with all results: {names}{more}?", is_sure=is_sure)
    for job in chosen:
        server.delete(f"/api/jobs/{job['id']}")
    _print_changed(chosen, "Deleted", as_json=as_json)


def _batch(job: Any) -> str:
    """Shorten the batch of a job that was given none: an id that tells people nothing."""
    batch = str(job["batch"])
    return short_id(batch) if id_prefix.is_full_id(batch) else batch


def _require_choice(jobs: Sequence[str], batch: str | None) -> None:
    if bool(jobs) == (batch is not None):
        raise click.UsageError("Pass either JOB or --batch.")


def describe_status(job: Any) -> str:
    if awaited := (job["waits_for"] or "").removeprefix("It waits for "):
        return f"{job['status']} (waits for: {awaited[0].lower()}{awaited[1:].rstrip('.')})"
    if job["needs_you"]:
        return f"{job['status']} (needs you)"
    return f"{job['status']} (paused)" if job["paused"] else str(job["status"])


def print_job(job: Any) -> None:
    tools = f" ({', '.join(job['recent_tools'])})"
    print_fields(
        {
            "id": job["id"],
            "description": job["description"],
            "agent": job["agent"],
            "folder": job["folder"],
            "connections": ", ".join(job["connections"] or ()),
            "status": describe_status(job),
            "running": describe_running(job["running"]),
            "question": job["question"],
            "timeout": describe_seconds(job["timeout"]),
            "batch": job["batch"],
            "conversation": job["parent_id"],
            "started": local_time(job["created_at"]),
            "ended": local_time(job["completed_at"]),
            "calls": f"{job['calls']}{tools}" if job["calls"] else "",
            "progress": describe_progress(job["progress"]),
            "changed": local_time(job["updated_at"]),
        }
    )
    if text := job["result"] or job["error"]:
        click.echo(f"\n{printable(text)}")


def _wait(server: Server, ids: Sequence[str], *, until: float) -> Sequence[Any]:
    while True:
        items = [server.get(f"/api/jobs/{job_id}") for job_id in ids]
        left = until - time.monotonic()
        if left <= 0 or not any(_is_running(job) for job in items):
            return items
        time.sleep(min(POLL_INTERVAL_SECONDS, left))


def _is_running(job: Any) -> bool:
    return job["status"] in RUNNING_STATUSES and not job["needs_you"] and not job["paused"]


def _batch_parents(server: Server, batch: str) -> Iterable[str]:
    """Find the conversations with a batch of this name: names are unique only within one."""
    return {job["parent_id"] for job in server.items("/api/jobs", batch=batch)}


def _print_changed(items: Sequence[Any], verb: str, *, as_json: bool) -> None:
    if as_json:
        print_json(items)
        return
    for job in items:
        click.echo(printable(f"{verb}: {short_id(job['id'])} {job['description']}."))
    if not items:
        click.echo(NO_JOBS)
