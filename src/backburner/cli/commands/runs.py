"""`backburner runs`: what was done in a conversation, or in one run of it."""

from typing import Any

import click

from backburner.cli import id_prefix
from backburner.cli.client import Server
from backburner.cli.output import brief, say_facts, say_json, say_table, short, when
from backburner.cli.server_options import shows, talks


@click.command("runs")
@click.argument("conversation")
@click.argument("run", required=False)
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True)
@shows
@talks
def command(
    server: Server, *, conversation: str, run: str | None, limit: int, in_json: bool
) -> None:
    """List what was done in a conversation, newest first, or show one run with its calls."""
    which = id_prefix.conversation(server, conversation)
    if run is not None:
        show_run(server.get(f"/api/runs/{id_prefix.run(server, which, run)}"), in_json=in_json)
        return
    found = list(server.items(f"/api/conversations/{which}/runs", limit=limit))
    if in_json:
        say_json(found)
        return
    rows = [
        (short(one["id"]), one["kind"], one["status"], when(one["started_at"]), brief(result(one)))
        for one in found
    ]
    say_table([("ID", "KIND", "STATUS", "STARTED", "RESULT"), *rows], empty="Nothing was done yet.")


def show_run(found: Any, *, in_json: bool) -> None:
    if in_json:
        say_json(found)
        return
    times = {"started": when(found["started_at"]), "ended": when(found["ended_at"])}
    facts = {name: found[name] for name in ("id", "kind", "status", "tokens", "profile")}
    say_facts({**facts, **times, "result": result(found)})
    rows = [
        (call["tool"], call["state"], "failed" if call["failed"] else "", brief(call["result"]))
        for call in found["tool_calls"]
    ]
    click.echo()
    say_table([("TOOL", "STATE", "", "RESULT"), *rows], empty="It called no tools.")


def result(found: Any) -> str:
    """Say what came of a run: what it found, why it failed, or why there was none."""
    if found["failure"]:
        return f"{found['failure']['kind']}: {found['failure']['message']}"
    if found["skipped"]:
        return f"{found['skipped']['count']} times: {found['skipped']['reason']}"
    return str(found["result"] or "")
