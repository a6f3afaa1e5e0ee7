"""`backburner say`: send a message and stream the reply."""

import sys
from collections.abc import Iterator
from typing import Any

import click

from backburner.cli import id_prefix
from backburner.cli.client import Server
from backburner.cli.output import print_json, printable, short_id
from backburner.cli.server_options import json_option, with_server
from backburner.core.conversation import check_chat_message
from backburner.core.errors import BackburnerError


@click.command("say")
@click.argument("text", nargs=-1, required=True)
@click.option(
    "--in",
    "conversation",
    metavar="CONVERSATION",
    help="Conversation to continue: its id, or the start of it. Default: a new one.",
)
@click.option("--no-wait", is_flag=True, help="Do not wait for the reply.")
@json_option
@with_server
def say(
    server: Server,
    *,
    text: tuple[str, ...],
    conversation: str | None,
    no_wait: bool,
    as_json: bool,
) -> None:
    """Send a message and print the reply.

    With - as TEXT, the message is read from standard input.
    """
    content = sys.stdin.read() if text == ("-",) else " ".join(text)
    # Before a conversation is created for it.
    check_chat_message(content)
    conversation_id = _find_or_create(server, conversation)
    path, body = f"/api/conversations/{conversation_id}/messages", {"content": content}
    if no_wait:
        message = server.post(path, body)
        result = {"conversation_id": conversation_id, "message": message}
        _print_end(result, conversation_id, as_json=as_json)
        return
    reply = Reply(echo=not as_json)
    end = reply.follow(server.stream(path, body))
    _print_end({"conversation_id": conversation_id, **end}, conversation_id, as_json=as_json)
    if reply.failed:
        raise BackburnerError(end.get("detail", "The reply failed."))


def _find_or_create(server: Server, conversation: str | None) -> str:
    if conversation is not None:
        return id_prefix.find_conversation(server, conversation)
    return str(server.post("/api/conversations", {})["id"])


def _print_end(result: Any, conversation_id: str, *, as_json: bool) -> None:
    if as_json:
        print_json(result)
    else:
        # On stderr, so that stdout holds the reply alone.
        click.echo(f"[in {short_id(conversation_id)}]", err=True)


class Reply:
    """A reply that is printed while it arrives."""

    def __init__(self, *, echo: bool) -> None:
        self._echo = echo
        self._text = ""
        self.failed = False

    def follow(self, events: Iterator[tuple[str, Any]]) -> dict[str, Any]:
        """Print the reply as it arrives; return the data of the final event."""
        for name, data in events:
            if name == "delta":
                self._add(data["text"], data["at"])
            elif name in ("done", "error", "later", "answer"):
                self.failed = name == "error"
                self._finish(name, data)
                return dict(data)
        raise BackburnerError(
            "The connection was lost before the reply was complete.",
            hint="The reply continues on the server: see `backburner conversations`.",
        )

    def _add(self, text: str, offset: int) -> None:
        if offset != len(self._text):
            # The server started the reply again.
            self._print("\n" if self._text else "")
            self._text = ""
        self._text += text
        self._print(text)

    def _finish(self, name: str, data: Any) -> None:
        messages = data.get("messages", ())
        texts = [message["content"] for message in messages if message["role"] != "user"]
        self._print("\n" if self._text else "")
        for text in texts:
            if text.strip() != self._text.strip():
                self._print(f"{text}\n")
        if name == "later":
            self._print(f"{data['detail']}\n")

    def _print(self, text: str) -> None:
        if self._echo:
            click.echo(printable(text), nl=False)
