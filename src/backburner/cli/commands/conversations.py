"""`backburner conversations` and `summary`."""

from collections.abc import Iterator, Mapping
from typing import Any

import click

from backburner.cli import id_prefix
from backburner.cli.client import PAGE_SIZE, Server
from backburner.cli.command_name import name_commands
from backburner.cli.commands.work.conversation_changes import add_changes
from backburner.cli.commands.work.seen import mark_seen
from backburner.cli.confirmation import confirm, yes_option
from backburner.cli.list_group import LIST, ListOrShowGroup
from backburner.cli.live.attachment_text import describe_attachments
from backburner.cli.output import (
    local_time,
    local_times,
    print_fields,
    print_items,
    print_json,
    print_result,
    printable,
    short_id,
    truncate,
)
from backburner.cli.server_options import json_option, limit_option, with_server
from backburner.core.conversation import Kind, MessageRole, PauseReason, Status
from backburner.core.question import Purpose
from backburner.core.work.list_states import ListState

#: Messages shown of one conversation.
MESSAGES_SHOWN = 10
#: Before the titles of children.
INDENT = "  "
#: The other columns of lines that are no conversation.
_NOTHING = dict.fromkeys(("ID", "STATUS", "KIND", "NEXT RUN", "NOW", "NEW"), "")


@click.group("conversations", cls=ListOrShowGroup)
def conversations() -> None:
    """Manage conversations. Without a command, list them, or show the one that is named.

    CONVERSATION is a title, an id, or the start of an id. One with the name of a command is shown
    with `list`.
    """


add_changes(conversations)


@conversations.command(LIST)
@click.argument("conversation", required=False)
@click.option("--status", type=click.Choice([*map(str, Status)]), help="Filter by status.")
@click.option("--kind", type=click.Choice([*map(str, Kind)]), help="Filter by kind.")
@click.option(
    "--state",
    type=click.Choice([*map(str, ListState)]),
    help="Filter by what it does: it needs you, works now, and so on.",
)
@click.option("--pinned", is_flag=True, help="List pinned conversations.")
@click.option("--unread", is_flag=True, help="List conversations with news.")
@click.option(
    "--search", "q", metavar="TEXT", help="Words in titles and recent messages, which are shown."
)
@click.option("--archived", is_flag=True, help="List archived conversations.")
@click.option("--all", is_flag=True, help="List jobs and child tasks as well.")
@click.option("--parent", metavar="CONVERSATION", help="List the jobs and tasks of a conversation.")
@limit_option(50)
@json_option
@with_server
def list_conversations(
    server: Server,
    *,
    conversation: str | None,
    limit: int,
    as_json: bool,
    parent: str | None,
    **options: Any,
) -> None:
    """List conversations, or show one.

    CONVERSATION is a title, an id, or the start of an id. Jobs and tasks that a conversation
    created stand under it while they have work to do; --all, --kind or --parent lists all of them.
    """
    if conversation is not None:
        conversation_id = id_prefix.find_conversation(server, conversation)
        show_conversation(server, conversation_id, as_json=as_json)
        return
    filters = {name: value for name, value in options.items() if value}
    if parent is not None:
        filters["parent_id"] = id_prefix.find_conversation(server, parent)
    items = list(server.items("/api/conversations", limit=limit, **filters))
    # In a list of everything, children have lines of their own.
    is_nested = not filters.keys() - {"archived"}
    rows = [row for item in items for row in _rows(item, is_nested=is_nested)]
    print_items(items, rows, empty="No conversations.", as_json=as_json)
    if not as_json and is_nested and any(row["ID"] == "" for row in rows):
        hint = "List all jobs and tasks of one with `backburner conversations --parent ID`."
        click.echo(name_commands(hint))


def _rows(item: Any, *, is_nested: bool) -> Iterator[dict[str, Any]]:
    """Make the lines of a conversation: its own, and those of its children with work to do."""
    yield _row(item, "")
    for hit in item["hits"]:
        if hit["role"]:
            text = "".join(part["text"] for part in hit["parts"])
            yield {**_NOTHING, "TITLE": truncate(f"{INDENT}{hit['role']}: {text}")}
    if not is_nested:
        return
    children = item["children"]
    for child in children["open"]:
        yield _row(child, INDENT)
    if more := children["count"] - len(children["open"]):
        yield {**_NOTHING, "TITLE": f"{INDENT}{more} more"}


def _row(item: Any, indent: str) -> dict[str, Any]:
    return {
        "ID": short_id(item["id"]),
        "STATUS": describe_status(item),
        "KIND": item["kind"],
        "NEXT RUN": next_run(item),
        "NOW": "running" if item["running"] else "",
        "NEW": str(item["unread_count"]) if item.get("unread") else "",
        "TITLE": indent + truncate(item["title"]),
    }


def show_conversation(server: Server, conversation_id: str, *, as_json: bool) -> None:
    conversation = server.get(f"/api/conversations/{conversation_id}")
    path = f"/api/conversations/{conversation_id}/messages"
    messages = list(server.items(path, limit=MESSAGES_SHOWN))[::-1]
    if as_json:
        print_json({**conversation, "messages": messages})
        return
    questions = [f"{short_id(item['id'])} {item['prompt']}" for item in conversation["questions"]]
    print_fields(
        {
            "id": conversation["id"],
            "title": conversation["title"],
            "status": describe_status(conversation),
            "running": describe_running(conversation["running"]),
            "pinned": "yes" if conversation["pinned_at"] else "",
            "waits for": conversation["waits_for"],
            "model": conversation["profile"],
            "folder": conversation["folder"],
            "schedule": conversation["schedule_in_words"],
            "next runs": local_times(conversation["next_times"]),
            "step": conversation["state"]["step"] if conversation["schedule"] else "",
            "questions": "; ".join(questions),
        }
    )
    for message in messages:
        text = message["content"]
        # Others may quote commands as they like.
        text = name_commands(text) if message["role"] == MessageRole.SYSTEM else text
        click.echo(f"\n{message['role']}, {local_time(message['created_at'])}\n{printable(text)}")
        for line in describe_attachments(message):
            click.echo(line)
    mark_seen(server, conversation_id, messages)


def describe_running(running: Any) -> str:
    """Say since when something runs and what it is doing; nothing if it does not run."""
    return f"since {local_time(running['started_at'])}: {running['doing']}" if running else ""


def describe_status(conversation: Any) -> str:
    if awaited := describe_awaited_sign_in(conversation):
        return awaited
    if conversation["pause_reason"] and conversation["status"] == "active":
        return f"paused ({conversation['pause_reason'].replace('_', ' ')})"
    return str(conversation["status"])


def describe_awaited_sign_in(item: Any) -> str:
    """Say which sign-in a conversation or a task waits for; nothing if it waits for none."""
    is_asked = any(asked["purpose"] == Purpose.RECONNECT for asked in item.get("questions", ()))
    if not is_asked and item["pause_reason"] != PauseReason.SIGNED_OUT:
        return ""
    # Children in a list come without it.
    what = item.get("waits_for") or "A sign-in"
    return f"waits for: {what[0].lower()}{what[1:].rstrip('.')}"


@click.command("summary")
@click.argument("conversation")
@click.option("--delete", "deletes", is_flag=True, help="Delete the summary.")
@yes_option
@json_option
@with_server
def summary(
    server: Server, *, conversation: str, deletes: bool, is_sure: bool, as_json: bool
) -> None:
    """Show or delete the summary of a long conversation.

    The agent writes it when its session becomes too long, and starts the next one from it.
    CONVERSATION is a title, an id, or the start of an id.
    """
    conversation_id = id_prefix.find_conversation(server, conversation)
    path = f"/api/conversations/{conversation_id}/summary"
    found = server.get(path)
    if deletes:
        title = server.get(f"/api/conversations/{conversation_id}")["title"]
        confirm(f"Delete the summary of {title!r}, which its agent works from?", is_sure=is_sure)
        server.delete(path)
        print_result({"conversation_id": conversation_id}, "Summary deleted.", as_json=as_json)
        return
    if as_json:
        print_json(found)
        return
    click.echo(printable(found["text"]))
    for message in found["messages"]:
        click.echo(f"\nuser, {short_id(message['id'])}\n{printable(message['text'])}")


def next_run(item: Any) -> str:
    """Format the next time of work; none while it waits for an answer."""
    waits = item["status"] == "waiting_input" or (item.get("needs_you") and item["questions"])
    return "" if waits else local_time(item["next_run_at"])


def messages_by_run(server: Server, conversation_id: str) -> dict[str, str]:
    """Read the last messages, and return what each run said first."""
    path = f"/api/conversations/{conversation_id}/messages"
    messages = server.items(path, limit=PAGE_SIZE)
    return {one["run_id"]: one["content"] for one in messages if one["run_id"]}


def describe_result(run: Any, messages: Mapping[str, str]) -> str:
    """Return what a run said or found, the error it failed with, or why it was skipped."""
    if run["failure"]:
        return str(run["failure"]["message"])
    if run["skipped"]:
        return str(run["skipped"]["in_words"])
    return messages.get(run["id"]) or run["result"] or ""
