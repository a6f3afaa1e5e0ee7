"""`backburner pause`, `resume`, `run-now`, `stop-run`, `cancel` and `fresh`: control work."""

from collections.abc import Callable
from typing import Any

import click

from backburner.cli import id_prefix
from backburner.cli.client import Server
from backburner.cli.confirmation import confirm, yes_option
from backburner.cli.main import COMMANDS
from backburner.cli.output import local_time, print_result
from backburner.cli.server_options import json_option, with_server

_ARGUMENT = "CONVERSATION is a title, an id, or the start of an id."


def _one(name: str, describe: Callable[[Any], str]) -> click.Command:
    @click.command(name, help=f"{COMMANDS[name]}\n\n{_ARGUMENT}")
    @click.argument("conversation")
    @json_option
    @with_server
    def command(server: Server, *, conversation: str, as_json: bool) -> None:
        _post(server, conversation, name, describe, as_json=as_json)

    return command


def _one_or_all(name: str, describe: Callable[[Any], str], *, paused: bool) -> click.Command:
    @click.command(name, help=f"{COMMANDS[name]}\n\n{_ARGUMENT}")
    @click.argument("conversation", required=False)
    @click.option(
        "--everything", is_flag=True, help=f"{name.capitalize()} all your background work."
    )
    @click.option(
        "--everyone",
        is_flag=True,
        help=f"{name.capitalize()} the background work of all users (operators only).",
    )
    @yes_option
    @json_option
    @with_server
    def command(
        server: Server,
        *,
        conversation: str | None,
        everything: bool,
        everyone: bool,
        is_sure: bool,
        as_json: bool,
    ) -> None:
        if [conversation is not None, everything, everyone].count(True) != 1:
            raise click.UsageError("Pass one of CONVERSATION, --everything and --everyone.")
        if everyone:
            _change_everyone(server, paused=paused, is_sure=is_sure, as_json=as_json)
        elif conversation is None:
            user = server.put("/api/me", {"paused": paused})
            verb = "Paused" if paused else "Resumed"
            print_result(user, f"{verb}: all background work.", as_json=as_json)
        else:
            _post(server, conversation, name, describe, as_json=as_json)

    return command


def _change_everyone(server: Server, *, paused: bool, is_sure: bool, as_json: bool) -> None:
    if paused:
        confirm("Pause the background work of all users?", is_sure=is_sure)
    server.post_once("/api/pause-all" if paused else "/api/resume-all")
    verb = "Paused" if paused else "Resumed"
    print_result(
        server.get("/api/me"), f"{verb}: the background work of all users.", as_json=as_json
    )


def _post(
    server: Server, conversation: str, name: str, describe: Callable[[Any], str], *, as_json: bool
) -> None:
    conversation_id = id_prefix.find_conversation(server, conversation)
    changed = server.post(f"/api/conversations/{conversation_id}/{name}")
    print_result(changed, describe(changed), as_json=as_json)


def _resumed(conversation: Any) -> str:
    next_at = local_time(conversation["next_run_at"])
    return f"Resumed: {conversation['title']}{f', next run at {next_at}' if next_at else ''}."


pause = _one_or_all("pause", lambda changed: f"Paused: {changed['title']}.", paused=True)
resume = _one_or_all("resume", _resumed, paused=False)
run_now = _one("run-now", lambda changed: f"Running now: {changed['title']}.")
stop_run = _one("stop-run", lambda changed: f"Stopped the run of: {changed['title']}.")
fresh = _one("fresh", lambda changed: f"Starts afresh: {changed['title']}.")
cancel = _one("cancel", lambda changed: f"Cancelled: {changed['title']}.")
