"""`backburner schedule`: when a conversation works in the background."""

from typing import Any

import click

from backburner.cli import id_prefix
from backburner.cli.client import Server
from backburner.cli.output import local_time, print_fields, print_json, print_result
from backburner.cli.server_options import json_option, missed_option, with_server
from backburner.core.errors import BadRequest


@click.group("schedule")
def schedule() -> None:
    """Set, preview or clear the schedule of a conversation.

    CONVERSATION is a title, an id, or the start of an id. WHEN is a phrase such as "every weekday
    at 9", "in 2h" or "every 30m", or a cron expression. Times are in your time zone, which the
    schedule keeps when you change yours later.
    """


@schedule.command("set")
@click.argument("conversation")
@click.argument("when", required=False)
@click.option("--what", metavar="TEXT", help="Prompt of each run. Default: as before.")
@missed_option
@json_option
@with_server
def set_schedule(
    server: Server,
    *,
    conversation: str,
    when: str | None,
    what: str | None,
    catch_up: str | None,
    as_json: bool,
) -> None:
    """Give a conversation a schedule, or change it.

    With --missed, WHEN may be left out: the times stay as they are.
    """
    if when is None and catch_up is None:
        raise BadRequest("Nothing to change.", hint="Give WHEN, or --missed.")
    path = f"{_path(server, conversation)}/schedule"
    given = {"when": when, "what": what, "catch_up": catch_up}
    changed = server.put(path, {name: text for name, text in given.items() if text is not None})
    print_result(changed, _describe(changed), as_json=as_json)


@schedule.command("clear")
@click.argument("conversation")
@json_option
@with_server
def clear(server: Server, *, conversation: str, as_json: bool) -> None:
    """Stop the work of a conversation by removing its schedule."""
    changed = server.delete(f"{_path(server, conversation)}/schedule")
    print_result(changed, "It has no schedule any more.", as_json=as_json)


@schedule.command("preview")
@click.argument("when")
@json_option
@with_server
def preview(server: Server, *, when: str, as_json: bool) -> None:
    """Show how WHEN is understood, and the next times."""
    found = server.post_once("/api/schedule/preview", {"when": when})
    if as_json:
        print_json(found)
        return
    print_fields(
        {
            "schedule": found["in_words"],
            "time zone": found["zone"],
            "next runs": "; ".join(found["next_times_in_words"]),
            "warning": " ".join(found["warnings"]),
        }
    )


def _path(server: Server, conversation: str) -> str:
    return f"/api/conversations/{id_prefix.find_conversation(server, conversation)}"


def _describe(changed: Any) -> str:
    next_at = local_time(changed["next_run_at"])
    next_run = f", next run at {next_at}" if next_at else ""
    return f"{changed['title']}: {changed['schedule_in_words']}{next_run}."
