"""`backburner status`, `watch` and `away`: now, as it happens, and while you were away."""

from datetime import datetime
from typing import Any

import click

from backburner.cli import id_prefix
from backburner.cli.client import NoServer, Server
from backburner.cli.command_name import name_commands
from backburner.cli.commands.account.me import describe_zone
from backburner.cli.commands.conversations import describe_running, next_run
from backburner.cli.live.event_reader import EventReader
from backburner.cli.live.live_view import EventLines, LiveView
from backburner.cli.main import INTERRUPTED
from backburner.cli.output import (
    local_time,
    print_fields,
    print_json,
    print_table,
    short_id,
    truncate,
)
from backburner.cli.server_options import (
    FindServer,
    json_option,
    with_server,
    with_server_finder,
)
from backburner.core.accounts import Act
from backburner.core.errors import BackburnerError

#: Between two looks for tool calls, while something runs.
LOOK_SECONDS = 1.0
#: Work that runs or is next, shown by `status`.
MAX_WORK_SHOWN = 5


@click.command("status", epilog="Exit code: 0 if the server is ready, else 1.")
@json_option
@with_server
def status(server: Server, *, as_json: bool) -> int:
    """Show the state of the server and your work."""
    state = read_state(server)
    if as_json:
        print_json(state)
    else:
        print_state(state)
    return 0 if state["ready"] else 1


def read_state(server: Server) -> dict[str, Any]:
    user = server.get("/api/me")
    background = list(server.items("/api/conversations", status="background"))
    times = [
        conversation["next_run_at"] for conversation in background if conversation["next_run_at"]
    ]
    return {
        "address": server.address,
        "version": server.get("/health")["version"],
        "ready": is_ready(server),
        "user": user,
        "background": len(background),
        "next_run_at": min(times, default=None),
        "running": list(server.items("/api/runs", status="running")),
        "next": sorted(
            (item for item in background if next_run(item) and not item["running"]),
            key=lambda item: item["next_run_at"],
        )[:MAX_WORK_SHOWN],
        "questions": len(list(server.items("/api/questions"))),
        "notices": len(list(server.items("/api/notices", unseen=True))),
        "acts": list(server.items("/api/me/audit")),
    }


def is_ready(server: Server) -> bool:
    try:
        return bool(server.get("/ready")["status"] == "ready")
    except NoServer:
        raise
    except BackburnerError:
        return False


def print_state(state: dict[str, Any]) -> None:
    user = state["user"]
    own = "all your background work" if user["paused"] else ""
    paused = "all background work of all users" if user["all_paused"] else own
    ready = "ready" if state["ready"] else name_commands("not ready; run `backburner doctor`")
    print_fields(
        {
            "server": f"Backburner {state['version']} at {state['address']}, {ready}",
            "user": f"{user['name'] or user['login'] or user['id']} ({user['role']})",
            "time zone": describe_zone(user),
            "paused": paused,
            "background": f"{state['background']} active",
            "next run": local_time(state["next_run_at"]),
            "questions": f"{state['questions']} open",
            "notices": f"{state['notices']} new",
            "account": describe_reset(state["acts"]),
        }
    )
    running = [
        {
            "ID": short_id(run["conversation_id"]),
            "TITLE": truncate(run["title"]),
            "KIND": run["kind"],
            "DOING": describe_running(run["running"]),
        }
        for run in state["running"]
    ]
    coming = [
        {
            "ID": short_id(item["id"]),
            "TITLE": truncate(item["title"]),
            "NEXT RUN": next_run(item),
        }
        for item in state["next"]
    ]
    _print_sections({"Running now": running, "Next": coming})


def describe_reset(acts: list[Any]) -> str:
    """Say when somebody else last made a link with which your account could be used."""
    times = [act["at"] for act in acts if act["act"] == Act.PASSWORD_RESET]
    if not times:
        return ""
    at = local_time(max(times))
    see = name_commands("see `backburner user audit --mine`")
    return f"an operator reset your password at {at}; {see}"


class WatchEnds(BackburnerError):
    """The work goes on without you."""

    exit_code = INTERRUPTED


@click.command("watch")
@click.argument("conversation", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the events as JSON, one per line.")
@with_server_finder
def watch(find_server: FindServer, *, conversation: str | None, as_json: bool) -> None:
    """Watch work as it happens: replies, tool calls, questions and the ends of runs.

    CONVERSATION is a title, an id, or the start of an id; without it, all your work is shown.
    Ctrl-C ends the view and leaves the work running.
    """
    found = conversation and id_prefix.find_conversation(find_server(), conversation)
    view = (EventLines if as_json else LiveView)(find_server, found)
    reader = EventReader(find_server)
    try:
        view.begin()
        while True:
            event = reader.next(LOOK_SECONDS if view.is_busy else None)
            if event is None:
                view.refresh()
            else:
                view.show(*event)
    except KeyboardInterrupt:
        raise WatchEnds(
            "Stopped watching. The work goes on.", hint="See it with `backburner status`."
        ) from None
    finally:
        reader.close()


def _read_time(_: click.Context, __: click.Parameter, text: str | None) -> str | None:
    """Read an ISO time; without an offset, in the time zone of this machine."""
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).astimezone().isoformat()
    except (ValueError, OverflowError):
        hint = "Use, for example, 2026-11-16T08:00."
        raise click.BadParameter(f"{text!r} is not a time. {hint}") from None


@click.command("away")
@click.option(
    "--since", metavar="TIME", callback=_read_time, help="Start, such as 2026-11-16T08:00."
)
@click.option(
    "--seen", "mark_seen", is_flag=True, help="Mark it as seen; the next summary starts there."
)
@json_option
@with_server
def away(server: Server, *, since: str | None, mark_seen: bool, as_json: bool) -> None:
    """Show what happened while you were away.

    The summary lists failed runs, notices and open questions since you last marked it as seen.
    """
    summary = server.get("/api/away", since=since)
    if as_json:
        print_json(summary)
    else:
        print_away(summary)
    if mark_seen:
        server.post("/api/away/seen", {"until": summary["until"]})


def print_away(summary: Any) -> None:
    totals = summary["totals"]
    skipped = f", {totals['skipped']} skipped" if totals["skipped"] else ""
    click.echo(
        f"Since {local_time(summary['since'])}. Runs: {totals['succeeded']} succeeded,"
        f" {totals['failed']} failed{skipped}. Tokens used: {summary['spent']['tokens']:,}."
    )
    questions = [
        {
            "ID": short_id(question["question"]),
            "CONVERSATION": truncate(question["title"]),
            "QUESTION": truncate(question["prompt"]),
        }
        for question in summary["needs"]
    ]
    notices = [
        {
            "TIME": local_time(notice["created_at"]),
            "KIND": notice["kind"],
            "CONVERSATION": truncate(notice["title"]),
            "TEXT": truncate(notice["text"]),
        }
        for notice in summary["told"]
    ]
    failures = [
        {
            "ID": short_id(row["conversation"]),
            "CONVERSATION": truncate(row["title"]),
            "ERROR": truncate(row["failure"]),
        }
        for row in summary["ran"]
        if row["failure"]
    ]
    _print_sections({"Open questions": questions, "Notices": notices, "Failed": failures})
    if quiet := summary["lane_counts"]["quiet"]:
        click.echo(f"\nQuiet: {quiet} that ran and had nothing to tell.")


def _print_sections(sections: dict[str, list[dict[str, Any]]]) -> None:
    for title, rows in sections.items():
        if rows:
            click.echo(f"\n{title}")
            print_table(rows, empty="")
