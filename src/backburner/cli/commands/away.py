"""`backburner away`: what happened by itself since one last looked."""

from typing import Any

import click

from backburner.cli.client import Server
from backburner.cli.output import brief, say_json, say_table, short, when
from backburner.cli.server_options import shows, talks


@click.command("away")
@click.option("--since", metavar="TIME", help="Such as 2026-11-16T08:00:00Z.")
@click.option("--seen", is_flag=True, help="Note that you have seen it; the next one begins there.")
@shows
@talks
def command(server: Server, *, since: str | None, seen: bool, in_json: bool) -> None:
    """See what happened while you were away: what ran, what was said, what needs you."""
    found = server.get("/api/away", since=since)
    if in_json:
        say_json(found)
    else:
        show(found)
    if seen:
        server.post("/api/away/seen", {"until": found["until"]})


def show(found: Any) -> None:
    totals = found["totals"]
    click.echo(
        f"Since {when(found['since'])}. Runs that went well: {totals['succeeded']},"
        f" that failed: {totals['failed']}. Tokens spent: {found['spent']['tokens']:,}."
    )
    asked = [(short(one["question"]), one["title"], one["prompt"]) for one in found["needs"]]
    _say("Needs you", ("ID", "CONVERSATION", "QUESTION"), asked)
    told = [(when(one["created_at"]), one["kind"], one["text"]) for one in found["told"]]
    _say("You were told", ("WHEN", "KIND", "TEXT"), told)
    failed = [
        (short(one["conversation"]), one["title"], one["failure"])
        for one in found["ran"]
        if one["failure"]
    ]
    _say("Went wrong", ("ID", "CONVERSATION", "WHY"), failed)


def _say(title: str, head: tuple[str, str, str], rows: list[tuple[str, str, str]]) -> None:
    if rows:
        click.echo(f"\n{title}")
        say_table([head, *(tuple(brief(cell) for cell in row) for row in rows)], empty="")
