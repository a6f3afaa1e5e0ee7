"""`backburner status` and `away`: the current state, and what happened in your absence."""

from typing import Any

import click

from backburner.cli.client import NoServer, Server
from backburner.cli.command_name import name_commands
from backburner.cli.commands.account.me import describe_zone
from backburner.cli.output import (
    local_time,
    print_fields,
    print_json,
    print_table,
    short_id,
    truncate,
)
from backburner.cli.server_options import json_option, with_server
from backburner.core.accounts import Act
from backburner.core.errors import BackburnerError


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
    paused_for = "all users" if user["all_paused"] else "you" if user["paused"] else ""
    ready = "ready" if state["ready"] else name_commands("not ready; run `backburner doctor`")
    print_fields(
        {
            "server": f"Backburner {state['version']} at {state['address']}, {ready}",
            "user": f"{user['name'] or user['login'] or user['id']} ({user['role']})",
            "time zone": describe_zone(user),
            "paused": f"all background work of {paused_for}" if paused_for else "",
            "background": f"{state['background']} active",
            "next run": local_time(state["next_run_at"]),
            "questions": f"{state['questions']} open",
            "notices": f"{state['notices']} new",
            "account": describe_reset(state["acts"]),
        }
    )


def describe_reset(acts: list[Any]) -> str:
    """Say when somebody else last made a link with which your account could be used."""
    times = [act["at"] for act in acts if act["act"] == Act.PASSWORD_RESET]
    if not times:
        return ""
    at = local_time(max(times))
    see = name_commands("see `backburner user audit --mine`")
    return f"an operator reset your password at {at}; {see}"


@click.command("away")
@click.option("--since", metavar="TIME", help="Start, such as 2026-11-16T08:00:00Z.")
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
    click.echo(
        f"Since {local_time(summary['since'])}. Runs: {totals['succeeded']} succeeded,"
        f" {totals['failed']} failed. Tokens used: {summary['spent']['tokens']:,}."
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
    sections = {"Open questions": questions, "Notices": notices, "Failed": failures}
    for title, rows in sections.items():
        if rows:
            click.echo(f"\n{title}")
            print_table(rows, empty="")
