"""`backburner conversations`: all of them, or one with what was said last."""

from typing import Any

import click

from backburner.cli import id_prefix
from backburner.cli.client import Server
from backburner.cli.output import brief, clean, say_facts, say_json, say_table, short, when
from backburner.cli.server_options import shows, talks

#: Of one conversation, so many messages are shown.
LAST_FEW = 10


@click.command("conversations")
@click.argument("which", required=False)
@click.option("--status", help="Only active, background, waiting_input or archived ones.")
@click.option("--kind", help="Only chats, tasks, jobs or discovery: chat, task, job, discovery.")
@click.option("--search", metavar="TEXT", help="Only those in which this was said.")
@click.option("--archived", is_flag=True, help="Those that are archived.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True)
@shows
@talks
def command(
    server: Server, *, which: str | None, limit: int, in_json: bool, search: str | None, **only: Any
) -> None:
    """List conversations, or show one: any beginning of its id will do."""
    if which is not None:
        show_one(server, id_prefix.conversation(server, which), in_json=in_json)
        return
    archived = only.pop("archived") or None
    found = list(
        server.items("/api/conversations", limit=limit, q=search, archived=archived, **only)
    )
    if in_json:
        say_json(found)
        return
    rows = [
        (short(one["id"]), state(one), one["kind"], when(one["next_run_at"]), brief(one["title"]))
        for one in found
    ]
    say_table([("ID", "STATUS", "KIND", "NEXT", "TITLE"), *rows], empty="There are none.")


def show_one(server: Server, which: str, *, in_json: bool) -> None:
    found = server.get(f"/api/conversations/{which}")
    said = list(server.items(f"/api/conversations/{which}/messages", limit=LAST_FEW))[::-1]
    if in_json:
        say_json({**found, "messages": said})
        return
    say_facts(
        {
            "id": found["id"],
            "title": found["title"],
            "status": state(found),
            "schedule": found["schedule_in_words"],
            "next": ", ".join(when(one) for one in found["next_times"]),
            "step": found["state"]["step"],
            "waits for": "; ".join(f"{short(q['id'])} {q['prompt']}" for q in found["questions"]),
        }
    )
    for message in said:
        click.echo(
            f"\n{message['role']}, {when(message['created_at'])}\n{clean(message['content'])}"
        )


def state(found: Any) -> str:
    """Say in a word or two how a conversation stands."""
    if found["pause_reason"] and found["status"] == "active":
        return f"paused ({found['pause_reason']})"
    return str(found["status"])
