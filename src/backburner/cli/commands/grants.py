"""`backburner grants`: what agents may do without asking, widening it, and taking it back."""

import click

from backburner.cli import id_prefix
from backburner.cli.client import Server
from backburner.cli.output import say_json, say_table, short, when
from backburner.cli.server_options import shows, talks


@click.group("grants")
def command() -> None:
    """See what may be done without asking; widen it, or take it back."""


@command.command("list")
@shows
@talks
def list_all(server: Server, *, in_json: bool) -> None:
    """List what may be done without asking, newest first."""
    found = list(server.items("/api/grants"))
    if in_json:
        say_json(found)
        return
    rows = [
        (
            short(one["id"]),
            short(one["conversation_id"]),
            when(one["given_at"]),
            f"{one['server']}: {one['tool']}",
            " ".join(one["words"]),
            "always" if one["lasting"] else "once",
        )
        for one in found
    ]
    heading = ("ID", "CONVERSATION", "GIVEN", "TOOL", "FOR", "HOW OFTEN")
    say_table([heading, *rows], empty="Nothing: every call is asked about.")


@command.command("widen")
@click.argument("grant")
@click.argument("words", nargs=-1, required=True)
@shows
@talks
def widen(server: Server, *, grant: str, words: tuple[str, ...], in_json: bool) -> None:
    """Let GRANT cover every command that begins with these WORDS, the first of its own."""
    done = server.patch(f"/api/grants/{id_prefix.grant(server, grant)}", {"words": list(words)})
    if in_json:
        say_json(done)
    else:
        click.echo(f"From now on: {' '.join(done['words'])} ...")


@command.command("revoke")
@click.argument("grant")
@talks
def revoke(server: Server, *, grant: str) -> None:
    """Take GRANT back: the next call that would need it is asked about."""
    server.delete(f"/api/grants/{id_prefix.grant(server, grant)}")
