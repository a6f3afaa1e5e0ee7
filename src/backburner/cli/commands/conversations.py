"""`backburner conversations`, `summary` and `runs`."""

from collections.abc import Iterator, Mapping
from typing import Any

import click

from backburner.cli import id_prefix
from backburner.cli.client import PAGE_SIZE, Server
from backburner.cli.command_name import name_commands
from backburner.cli.commands.work.conversation_changes import add_changes
from backburner.cli.commands.work.files import describe_file
from backburner.cli.confirmation import confirm, yes_option
from backburner.cli.list_group import LIST, ListOrShowGroup
from backburner.cli.output import (
    local_time,
    local_times,
    print_fields,
    print_items,
    print_json,
    print_result,
    print_table,
    printable,
    short_id,
    truncate,
)
from backburner.cli.server_options import json_option, limit_option, with_server
from backburner.core.conversation import Kind, MessageRole, PauseReason, Status
from backburner.core.question import Purpose
from backburner.core.tool_policy import OWN_SERVER

#: Messages shown of one conversation.
MESSAGES_SHOWN = 10
#: Before the titles of children.
INDENT = "  "


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
@click.option("--search", "q", metavar="TEXT", help="Filter by the text of the messages.")
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
    if not as_json and any(row["ID"] == "" for row in rows):
        hint = "List all jobs and tasks of one with `backburner conversations --parent ID`."
        click.echo(name_commands(hint))


def _rows(item: Any, *, is_nested: bool) -> Iterator[dict[str, Any]]:
    """Make the lines of a conversation: its own, and those of its children with work to do."""
    yield _row(item, "")
    if not is_nested:
        return
    children = item["children"]
    for child in children["open"]:
        yield _row(child, INDENT)
    if more := children["count"] - len(children["open"]):
        columns = ("ID", "STATUS", "KIND", "NEXT RUN", "NOW")
        yield {**dict.fromkeys(columns, ""), "TITLE": f"{INDENT}{more} more"}


def _row(item: Any, indent: str) -> dict[str, Any]:
    return {
        "ID": short_id(item["id"]),
        "STATUS": describe_status(item),
        "KIND": item["kind"],
        "NEXT RUN": next_run(item),
        "NOW": "running" if item["running"] else "",
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


@click.command("runs")
@click.argument("conversation")
@click.argument("run", required=False)
@limit_option(20)
@json_option
@with_server
def runs(server: Server, *, conversation: str, run: str | None, limit: int, as_json: bool) -> None:
    """List the runs of a conversation, or show one.

    CONVERSATION is a title, an id, or the start of an id; RUN is an id, or the start of it. A
    single run is shown with its tool calls.
    """
    conversation_id = id_prefix.find_conversation(server, conversation)
    if run is not None:
        run_id = id_prefix.find_run(server, conversation_id, run)
        show_run(
            server.get(f"/api/runs/{run_id}"),
            messages_by_run(server, conversation_id),
            as_json=as_json,
        )
        return
    items = list(server.items(f"/api/conversations/{conversation_id}/runs", limit=limit))
    messages = messages_by_run(server, conversation_id)
    rows = [
        {
            "ID": short_id(item["id"]),
            "KIND": item["kind"],
            "STATUS": item["status"],
            "STARTED": local_time(item["started_at"]),
            "RESULT": truncate(describe_result(item, messages)),
        }
        for item in items
    ]
    print_items(items, rows, empty="No runs yet.", as_json=as_json)


def show_run(run: Any, messages: Mapping[str, str], *, as_json: bool) -> None:
    if as_json:
        print_json(run)
        return
    fields = {name: run[name] for name in ("id", "kind", "status", "tokens", "profile")}
    times = {"started": local_time(run["started_at"]), "ended": local_time(run["ended_at"])}
    print_fields({**fields, **times, "result": describe_result(run, messages)})
    rows = [
        {
            "TOOL": _name_tool(call),
            "STATE": call["state"],
            "FAILED": "yes" if call["failed"] else "",
            "RESULT": truncate(call["result"]),
        }
        for call in run["tool_calls"]
    ]
    click.echo()
    print_table(rows, empty="No tool calls.")
    if files := [describe_file(file) for call in run["tool_calls"] for file in call["files"]]:
        click.echo()
        print_table(files, empty="")


def _name_tool(call: Any) -> str:
    # Several connections may have a tool of this name.
    return call["tool"] if call["server"] == OWN_SERVER else f"{call['server']}/{call['tool']}"


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
