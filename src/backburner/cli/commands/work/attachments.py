"""Files of messages that are sent: they are uploaded before."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import urlencode

import click

from backburner.cli.client import Server
from backburner.core.content.attachment import MAX_ATTACHMENTS
from backburner.core.errors import BadRequest

PATH = "/api/files"

attach_option = click.option(
    "--attach",
    "attached",
    metavar="FILE",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, readable=True, path_type=Path),
    help=f"File to send with the message. Can be given {MAX_ATTACHMENTS} times.",
)


def check_files(files: Sequence[Path]) -> None:
    """Refuse what no message can have, before anything is sent."""
    if len(files) > MAX_ATTACHMENTS:
        raise BadRequest(
            f"A message can have {MAX_ATTACHMENTS} files, not {len(files)}.",
            hint="Send several messages, or pack them.",
        )


def upload(server: Server, files: Iterable[Path]) -> list[dict[str, str]]:
    """Upload files; return what a message names them by."""
    return [_upload(server, file) for file in files]


def _upload(server: Server, file: Path) -> dict[str, str]:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise BadRequest(f"{file} cannot be read: {error.strerror}.") from None
    kept = server.upload(f"{PATH}?{urlencode({'name': file.name})}", data)
    return {"digest": kept["digest"], "name": kept["name"]}
