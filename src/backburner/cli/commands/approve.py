"""`backburner approve` and `reject`: what becomes of a proposed task."""

import click

from backburner.cli import id_prefix
from backburner.cli.client import Server
from backburner.cli.main import COMMANDS
from backburner.cli.output import clean, say_json, when
from backburner.cli.server_options import shows, talks

_HOW = "Its name, or any beginning of its id."


@click.command("approve", help=f"{COMMANDS['approve']} {_HOW}")
@click.argument("task")
@shows
@talks
def approve(server: Server, *, task: str, in_json: bool) -> None:
    which, shown, _ = _find(server, task)
    found = server.post(f"/api/tasks/{which}/approve", {"question_id": shown})
    if in_json:
        say_json(found)
        return
    next_at = when(found["next_run_at"])
    begins = f", next at {next_at}" if next_at else ""
    click.echo(clean(f"Approved: {found['name']}, {found['schedule_in_words']}{begins}."))


@click.command("reject", help=f"{COMMANDS['reject']} {_HOW}")
@click.argument("task")
@talks
def reject(server: Server, *, task: str) -> None:
    which, shown, name = _find(server, task)
    server.post(f"/api/tasks/{which}/reject", {"question_id": shown})
    click.echo(clean(f"Dismissed: {name}."))


def _find(server: Server, task: str) -> tuple[str, str | None, str]:
    """Find a proposal, the question that it asks now, and its name."""
    which = id_prefix.task(server, task, status="proposed")
    found = server.get(f"/api/tasks/{which}")
    asked = [one["id"] for one in found["questions"] if one["purpose"] == "proposal"]
    return which, asked[0] if asked else None, found["name"]


commands = {"approve": approve, "reject": reject}
