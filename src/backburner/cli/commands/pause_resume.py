"""`backburner pause`, `resume`, `run-now` and `cancel`: what becomes of background work."""

from collections.abc import Callable
from typing import Any

import click

from backburner.cli import id_prefix
from backburner.cli.client import Server
from backburner.cli.main import COMMANDS
from backburner.cli.output import clean, say_json, when
from backburner.cli.server_options import shows, talks


def _steering(name: str, done: Callable[[Any], str]) -> click.Command:
    @click.command(name, help=f"{COMMANDS[name]} Any beginning of the id will do.")
    @click.argument("conversation")
    @shows
    @talks
    def command(server: Server, *, conversation: str, in_json: bool) -> None:
        which = id_prefix.conversation(server, conversation)
        tell(server.post(f"/api/conversations/{which}/{name}"), done, in_json=in_json)

    return command


def _for_all(name: str, done: Callable[[Any], str], *, paused: bool) -> click.Command:
    @click.command(name, help=f"{COMMANDS[name]} Any beginning of the id will do.")
    @click.argument("conversation", required=False)
    @click.option("--everything", is_flag=True, help="All background work of yours.")
    @shows
    @talks
    def command(
        server: Server, *, conversation: str | None, everything: bool, in_json: bool
    ) -> None:
        if everything == (conversation is not None):
            raise click.UsageError("Say which conversation, or --everything.")
        if conversation is None:
            everybody = server.put("/api/me", {"paused": paused})
            words = "stands still" if paused else "goes on"
            tell(everybody, lambda _: f"All background work {words}.", in_json=in_json)
        else:
            which = id_prefix.conversation(server, conversation)
            tell(server.post(f"/api/conversations/{which}/{name}"), done, in_json=in_json)

    return command


def tell(found: Any, done: Callable[[Any], str], *, in_json: bool) -> None:
    if in_json:
        say_json(found)
    else:
        click.echo(clean(done(found)))


def _resumed(found: Any) -> str:
    next_at = when(found["next_run_at"])
    return f"It goes on: {found['title']}{f', next at {next_at}' if next_at else ''}."


commands = {
    "pause": _for_all("pause", lambda found: f"Paused: {found['title']}.", paused=True),
    "resume": _for_all("resume", _resumed, paused=False),
    "run-now": _steering("run-now", lambda found: f"It runs now: {found['title']}."),
    "cancel": _steering("cancel", lambda found: f"Stopped for good: {found['title']}."),
}
