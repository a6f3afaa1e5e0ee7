"""Commands that change a conversation, added to `backburner conversations`."""

import click

from backburner.cli import id_prefix
from backburner.cli.client import Server
from backburner.cli.command_name import name_commands
from backburner.cli.confirmation import confirm, yes_option
from backburner.cli.output import print_line, print_result
from backburner.cli.server_options import json_option, with_server


def add_changes(group: click.Group) -> None:
    for command in (rename, notify, pin, unpin, archive, reopen, delete, undelete):
        group.add_command(command)


@click.command("rename")
@click.argument("conversation")
@click.argument("title")
@json_option
@with_server
def rename(server: Server, *, conversation: str, title: str, as_json: bool) -> None:
    """Rename a conversation."""
    changed = server.patch(_path(server, conversation), {"title": title})
    print_result(changed, f"Renamed: {changed['title']}.", as_json=as_json)


@click.command("notify")
@click.argument("conversation")
@click.argument(
    "when", metavar="WHEN", type=click.Choice(["always", "on_change", "on_failure", "never"])
)
@json_option
@with_server
def notify(server: Server, *, conversation: str, when: str, as_json: bool) -> None:
    """Set when the work of a conversation sends a notice.

    WHEN is always, on_change, on_failure or never.
    """
    changed = server.patch(_path(server, conversation), {"notify": when})
    print_result(changed, f"{changed['title']}: notify {changed['notify']}.", as_json=as_json)


@click.command("pin")
@click.argument("conversation")
@json_option
@with_server
def pin(server: Server, *, conversation: str, as_json: bool) -> None:
    """Pin a conversation above the others."""
    changed = server.patch(_path(server, conversation), {"pinned": True})
    print_result(changed, f"Pinned: {changed['title']}.", as_json=as_json)


@click.command("unpin")
@click.argument("conversation")
@json_option
@with_server
def unpin(server: Server, *, conversation: str, as_json: bool) -> None:
    """Unpin a conversation."""
    changed = server.patch(_path(server, conversation), {"pinned": False})
    print_result(changed, f"Unpinned: {changed['title']}.", as_json=as_json)


@click.command("archive")
@click.argument("conversation")
@json_option
@with_server
def archive(server: Server, *, conversation: str, as_json: bool) -> None:
    """Archive a conversation and stop its work."""
    changed = server.post(f"{_path(server, conversation)}/archive")
    print_result(changed, f"Archived: {changed['title']}.", as_json=as_json)


@click.command("reopen")
@click.argument("conversation")
@json_option
@with_server
def reopen(server: Server, *, conversation: str, as_json: bool) -> None:
    """Reopen an archived conversation. Its work stays stopped."""
    changed = server.post(f"{_path(server, conversation)}/reopen")
    print_result(changed, f"Reopened: {changed['title']}.", as_json=as_json)


@click.command("delete")
@click.argument("conversation")
@click.option("--now", is_flag=True, help="Remove it at once: this cannot be undone.")
@yes_option
@with_server
def delete(server: Server, *, conversation: str, now: bool, is_sure: bool) -> None:
    """Delete a conversation with its messages, jobs and child tasks.

    For 30 seconds, `undelete` restores it.
    """
    path = _path(server, conversation)
    title = server.get(path)["title"]
    confirm(f"Delete {title!r} with all its messages, jobs and tasks?", is_sure=is_sure)
    server.delete(f"{path}?now=true" if now else path)
    undo = name_commands(f"`backburner conversations undelete {path.rpartition('/')[2]}`")
    print_line("Deleted." if now else f"Deleted. To undo it within 30 seconds: {undo}.")


@click.command("undelete")
@click.argument("conversation")
@json_option
@with_server
def undelete(server: Server, *, conversation: str, as_json: bool) -> None:
    """Restore a conversation that was deleted in the last 30 seconds.

    CONVERSATION is its id. Its work stays stopped.
    """
    restored = server.post(f"/api/conversations/{conversation}/restore")
    print_result(restored, f"Restored: {restored['title']}.", as_json=as_json)


def _path(server: Server, conversation: str) -> str:
    return f"/api/conversations/{id_prefix.find_conversation(server, conversation)}"
