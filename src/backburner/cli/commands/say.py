"""`backburner say`: one message, and the reply as it is being given."""

import sys
from collections.abc import Iterator
from typing import Any

import click

from backburner.cli import id_prefix
from backburner.cli.client import Server
from backburner.cli.output import clean, say_json, short
from backburner.cli.server_options import shows, talks
from backburner.core.errors import BackburnerError


@click.command("say")
@click.argument("words", nargs=-1, required=True)
@click.option("--in", "conversation", metavar="CONVERSATION", help="Without it, in a new one.")
@click.option("--no-wait", is_flag=True, help="Do not wait for the reply.")
@shows
@talks
def command(
    server: Server,
    *,
    words: tuple[str, ...],
    conversation: str | None,
    no_wait: bool,
    in_json: bool,
) -> None:
    """Say something, and see the reply as it comes; `-` reads it from the input."""
    text = sys.stdin.read() if words == ("-",) else " ".join(words)
    which = _find_or_begin(server, conversation)
    path, body = f"/api/conversations/{which}/messages", {"content": text}
    if no_wait:
        said = server.post(path, body)
        _end({"conversation_id": which, "message": said}, which, in_json=in_json)
        return
    reply = Reply(aloud=not in_json)
    ended = reply.follow(server.stream(path, body))
    _end({"conversation_id": which, **ended}, which, in_json=in_json)
    if reply.failed:
        raise BackburnerError(ended.get("detail", "The reply failed."))


def _find_or_begin(server: Server, conversation: str | None) -> str:
    if conversation is not None:
        return id_prefix.conversation(server, conversation)
    return str(server.post("/api/conversations", {})["id"])


def _end(ended: Any, which: str, *, in_json: bool) -> None:
    if in_json:
        say_json(ended)
    else:
        # Not among the words of the agent, which may be kept in a file.
        click.echo(f"[in {short(which)}]", err=True)


class Reply:
    """A reply as far as it has come, shown while it does."""

    def __init__(self, *, aloud: bool) -> None:
        self._aloud = aloud
        self._text = ""
        self.failed = False

    def follow(self, events: Iterator[tuple[str, Any]]) -> dict[str, Any]:
        """Show all that is said; give what the end of it says."""
        for name, data in events:
            if name == "delta":
                self._add(data["text"], data["at"])
            elif name in ("done", "error", "later", "answer"):
                self.failed = name == "error"
                self._finish(name, data)
                return dict(data)
        raise BackburnerError(
            "The server went away before the reply was there.",
            hint="It goes on when the server is back: see `backburner conversations`.",
        )

    def _add(self, text: str, at: int) -> None:
        if at != len(self._text):
            # It was begun again.
            self._show("\n" if self._text else "")
            self._text = ""
        self._text += text
        self._show(text)

    def _finish(self, name: str, data: Any) -> None:
        said = [one["content"] for one in data.get("messages", ()) if one["role"] != "user"]
        self._show("\n" if self._text else "")
        for text in said:
            if text.strip() != self._text.strip():
                self._show(f"{text}\n")
        if name == "later":
            self._show(f"{data['detail']}\n")

    def _show(self, text: str) -> None:
        if self._aloud:
            click.echo(clean(text), nl=False)
