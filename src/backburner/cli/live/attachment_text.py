"""Files of messages where one is shown, with the command that gets them."""

from collections.abc import Iterator
from typing import Any

from backburner.cli.command_name import name_commands
from backburner.cli.output import printable
from backburner.core.content.file import format_size

DIGEST_CHARS_SHOWN = 12


def describe_attachments(message: Any) -> Iterator[str]:
    """Say which files a message has, and how to get them, a line each."""
    for file in message.get("attachments", ()):
        facts = f"{file['media_type']}, {format_size(file['size'])}"
        name = printable(file["name"]) or "no name"
        get = name_commands(f"`backburner files get {file['digest'][:DIGEST_CHARS_SHOWN]}`")
        yield f"[File: {name}, {facts}. Get it with {get}.]"
