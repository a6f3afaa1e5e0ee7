"""`backburner status`: whether the server works, and how things stand."""

from typing import Any

import click

from backburner.cli.client import NoServer, Server
from backburner.cli.output import say_facts, say_json, when
from backburner.cli.server_options import shows, talks
from backburner.core.errors import BackburnerError


@click.command("status", epilog="It ends with 0 if the server works, and with 1 if it does not.")
@shows
@talks
def command(server: Server, *, in_json: bool) -> int:
    """See how things stand."""
    found = look(server)
    if in_json:
        say_json(found)
    else:
        show(found)
    return 0 if found["ready"] else 1


def look(server: Server) -> dict[str, Any]:
    me = server.get("/api/me")
    working = list(server.items("/api/conversations", status="background"))
    times = [one["next_run_at"] for one in working if one["next_run_at"]]
    return {
        "address": server.address,
        "version": server.get("/health")["version"],
        "ready": is_ready(server),
        "user": me,
        "working": len(working),
        "next_run_at": min(times, default=None),
        "questions": len(list(server.items("/api/questions"))),
        "notices": len(list(server.items("/api/notices", unseen=True))),
    }


def is_ready(server: Server) -> bool:
    try:
        return bool(server.get("/ready")["status"] == "ready")
    except NoServer:
        raise
    except BackburnerError:
        return False


def show(found: dict[str, Any]) -> None:
    me = found["user"]
    paused = "everybody's" if me["all_paused"] else "yours" if me["paused"] else ""
    ready = "ready" if found["ready"] else "not ready: see `backburner doctor`"
    say_facts(
        {
            "server": f"Backburner {found['version']} at {found['address']}, {ready}",
            "you": f"{me['name'] or me['login'] or me['id']} ({me['role']}), {me['zone']}",
            "paused": f"all background work, {paused}" if paused else "",
            "in the background": f"{found['working']}",
            "next run": when(found["next_run_at"]),
            "questions": f"{found['questions']} open",
            "notices": f"{found['notices']} new",
        }
    )
