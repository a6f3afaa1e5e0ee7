"""Commands that change a conversation, added to `backburner conversations`."""

import click

from backburner.cli import id_prefix
from backburner.cli.client import Server
from backburner.cli.confirmation import confirm, yes_option
from backburner.cli.output import print_line, print_result
from backburner.cli.server_options import json_option, with_server


def add_changes(group: click.Group) -> None:
    for command in (rename, notify, archive, reopen, delete):
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
@yes_option
@with_server
def delete(server: Server, *, conversation: str, is_sure: bool) -> None:
    """Delete a conversation with its messages, jobs and child tasks."""
    path = _path(server, conversation)
    title = server.get(path)["title"]
    confirm(f"Delete {title!r} with all its messages, jobs and tasks?", is_sure=is_sure)
    server.delete(path)
    print_line("Deleted.")


def _path(server: Server, conversation: str) -> str:
    return f"/api/conversations/{id_prefix.find_conversation(server, conversation)}"
