"""`backburner say` and `stop`: send a message, stream the reply, stop it."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import click

from backburner.cli import id_prefix
from backburner.cli.client import NoAnswer, Server
from backburner.cli.command_name import name_commands
from backburner.cli.commands.work.attachments import (
    attach_option,
    check_files,
    upload,
)
from backburner.cli.commands.work.new_conversation import new_conversation
from backburner.cli.commands.work.seen import mark_seen
from backburner.cli.current_folder import choose_current_folder, folder_option
from backburner.cli.live.attachment_text import describe_attachments
from backburner.cli.live.question_text import how_to_answer
from backburner.cli.main import INTERRUPTED
from backburner.cli.output import print_json, print_result, printable, short_id
from backburner.cli.server_options import json_option, with_server
from backburner.core.errors import BackburnerError, NotFound
from backburner.core.validation import check_chat_message

#: Where `--continue` looks for the last message of the user.
CHATS_SEARCHED, MESSAGES_SEARCHED = 10, 20


class ReplyGoesOn(BackburnerError):
    """The reply goes on without you."""

    exit_code = INTERRUPTED


@click.command("say")
@click.argument("text", nargs=-1)
@click.option(
    "--in",
    "conversation",
    metavar="CONVERSATION",
    help="Conversation to continue: its title, its id, or the start of it. Default: a new one.",
)
@click.option("-c", "--continue", "is_continued", is_flag=True, help="Continue the last one.")
@click.option("--here", is_flag=True, help="Work in the current folder, in a new conversation.")
@folder_option
@click.option(
    "--model",
    metavar="NAME",
    help="Model of the reply, or of the run that this answers. The conversation keeps its own.",
)
@click.option(
    "--replace",
    "is_replacement",
    is_flag=True,
    help="Replace your last message, and remove everything after it; does not wait for the reply.",
)
@attach_option
@click.option("--no-wait", is_flag=True, help="Do not wait for the reply.")
@json_option
@with_server
def say(
    server: Server,
    *,
    text: tuple[str, ...],
    conversation: str | None,
    is_continued: bool,
    **options: Any,
) -> None:
    """Send a message and print the reply.

    With - as TEXT, the message is read from standard input. Files need no TEXT.
    """
    if is_continued and conversation is not None:
        raise click.UsageError("Pass either --in or --continue.")
    here, folder, as_json = options["here"], options["folder"], options["as_json"]
    is_new = conversation is None and not is_continued
    if (here or folder) and (not is_new or (here and folder)):
        raise click.UsageError("Pass --here or --folder for a new conversation only, and only one.")
    is_replacement, model = options["is_replacement"], options["model"]
    if is_replacement and is_new:
        raise click.UsageError("With --replace, pass --in or --continue.")
    content = sys.stdin.read() if text == ("-",) else " ".join(text)
    attached = options["attached"]
    if not text and not attached:
        raise click.UsageError("Pass a text, or a file with --attach.")
    # Before a conversation is created for it.
    check_files(attached)
    if not attached:
        check_chat_message(content)
    found = _find_last(server) if is_continued else conversation
    place = choose_current_folder(server) if here else folder
    body: dict[str, Any] = {"content": content}
    if model is not None:
        body["profile"] = model
    if attached:
        body["attachments"] = upload(server, attached)
    with _find_or_create(server, found, place) as conversation_id:
        path = f"/api/conversations/{conversation_id}/messages"
        if options["no_wait"] or is_replacement:
            message = (
                server.put(f"{path}/last", body) if is_replacement else server.post(path, body)
            )
            result = {"conversation_id": conversation_id, "message": message}
            _print_end(result, conversation_id, as_json=as_json)
            return
        reply, end = _follow_reply(server, conversation_id, body, echo=not as_json)
    _print_end({"conversation_id": conversation_id, **end}, conversation_id, as_json=as_json)
    if reply.failed:
        raise BackburnerError(end.get("detail", "The reply failed."))


def _follow_reply(
    server: Server, conversation_id: str, body: dict[str, Any], *, echo: bool
) -> tuple["Reply", dict[str, Any]]:
    reply, short = Reply(echo=echo), short_id(conversation_id)
    try:
        path = f"/api/conversations/{conversation_id}/messages"
        end = reply.follow(server.stream(path, body))
    except NoAnswer as error:
        raise BackburnerError(
            f"{error.message} The conversation goes on.",
            hint=f"Follow it with `backburner watch {short}`.",
        ) from None
    except KeyboardInterrupt:
        raise ReplyGoesOn(
            "The reply goes on without you.",
            hint=f"Read it with `backburner conversations {short}`, or stop it with"
            f" `backburner stop {short}`.",
        ) from None
    if echo:
        mark_seen(server, conversation_id, end.get("messages", ()))
    return reply, end


@click.command("stop")
@click.argument("conversation")
@json_option
@with_server
def stop(server: Server, *, conversation: str, as_json: bool) -> None:
    """Stop a reply. What was written so far is kept.

    CONVERSATION is a title, an id, or the start of an id. To stop background work, use the command
    cancel.
    """
    conversation_id = id_prefix.find_conversation(server, conversation)
    stopped = server.post(f"/api/conversations/{conversation_id}/stop")
    print_result(stopped, f"Stopped the reply in {stopped['title']!r}.", as_json=as_json)


def _find_last(server: Server) -> str:
    """Find the conversation that the user wrote to last."""
    last = ("", "")
    for chat in server.items("/api/conversations", limit=CHATS_SEARCHED, kind="chat"):
        path = f"/api/conversations/{chat['id']}/messages"
        messages = server.items(path, limit=MESSAGES_SEARCHED)
        written = (one["created_at"] for one in messages if one["role"] == "user")
        last = max(last, (next(written, ""), str(chat["id"])))
    if not last[0]:
        raise NotFound("There is no conversation to continue.", hint="Leave out -c.")
    return last[1]


def _find_or_create(
    server: Server, conversation: str | None, folder: str | None
) -> AbstractContextManager[str]:
    if conversation is not None:
        return nullcontext(id_prefix.find_conversation(server, conversation))
    return new_conversation(server, {"folder": folder} if folder else {})


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
            elif name == "waiting" and self._echo:
                # On stderr, so that stdout holds the reply alone.
                click.echo(data["detail"], err=True)
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
        # The reason of a failure is printed once, as the error.
        left_out = ("user", "system") if name == "error" else ("user",)
        texts = [message["content"] for message in messages if message["role"] not in left_out]
        self._print("\n" if self._text else "")
        for text in texts:
            if text.strip() != self._text.strip():
                self._print(f"{text}\n")
        for message in messages:
            if message["role"] != "user" and self._echo:
                for line in describe_attachments(message):
                    # On stderr, so that stdout holds the reply alone.
                    click.echo(line, err=True)
        for question in data.get("questions", ()):
            if not any(question["prompt"] in text for text in texts):
                how = how_to_answer(question)
                self._print(f"{question['prompt']}\n{how[0].upper()}{how[1:]}.\n")
        if name == "later":
            self._print(f"{name_commands(data['detail'])}\n")

    def _print(self, text: str) -> None:
        if self._echo:
            click.echo(printable(text), nl=False)
