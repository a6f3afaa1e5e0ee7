"""Files that users attach to messages: what is accepted, and how agents are told of them.

Their names and contents are outside text: users pass on what others wrote.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from backburner.core.content.file import FileReference, clean_name, format_size
from backburner.core.errors import BadRequest

MAX_ATTACHMENTS = 10
#: Of what an inbox item says about a message.
FILES = "files"
#: The folder in which commands and file tools find them, as agents write it.
FOLDER = "$ATTACHMENTS"
#: Of a text that the agent is given with the message, and of all of them.
MAX_TEXT_BYTES, MAX_TEXTS_BYTES = 32_000, 64_000
#: For file systems that allow 255 bytes.
_MAX_STEM_BYTES, _MAX_ENDING_CHARS = 120, 10
_SHORT, _LONG = 8, 16
_TAB, _RETURN, _NEWLINE = "\t\r\n"


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that a message names. Without a name it keeps that of the file."""

    digest: str
    name: str = ""


def check_attachments(attachments: Sequence[Attachment]) -> Sequence[Attachment]:
    """Make the names safe, and leave out those that are named twice."""
    if len(attachments) > MAX_ATTACHMENTS:
        raise BadRequest(
            f"A message can have {MAX_ATTACHMENTS} files, not {len(attachments)}.",
            hint="Send several messages.",
        )
    cleaned = (Attachment(one.digest, clean_name(one.name)) for one in attachments)
    return list(dict.fromkeys(cleaned))


def dump_files(files: Iterable[FileReference]) -> Mapping[str, Any]:
    """Return what an inbox item says about the files of its message; nothing if it has none."""
    dumped = [asdict(file) for file in files]
    return {FILES: dumped} if dumped else {}


def load_files(content: Mapping[str, Any]) -> tuple[FileReference, ...]:
    """Read the files of the message that an inbox item is for."""
    return tuple(FileReference(**file) for file in content.get(FILES, ()))


def folder_name(file: FileReference, *, digits: int = _SHORT) -> str:
    """Name a file in the folder of attachments: the same in every run of a conversation.

    Commands need no quotes for it.
    """
    plain = "".join(char if char.isalnum() or char in "._-" else "_" for char in file.name)
    # A leading dot hides a file, and a dash makes it an option.
    plain = plain.lstrip(".-")
    stem, dot, ending = plain.rpartition(".")
    if not (dot and stem and ending.isalnum() and len(ending) <= _MAX_ENDING_CHARS):
        stem, ending = plain, ""
    stem = stem.encode()[:_MAX_STEM_BYTES].decode(errors="ignore") or "file"
    ending = f".{ending}" if ending.isascii() and ending else ""
    return f"{stem}-{file.digest[:digits]}{ending}"


def name_in_folder(files: Iterable[FileReference]) -> Mapping[str, FileReference]:
    """Give each file a name of its own in the folder of attachments."""
    named = dict[str, FileReference]()
    for file in files:
        name = folder_name(file)
        if named.setdefault(name, file).digest != file.digest:
            named[folder_name(file, digits=_LONG)] = file
    return named


def describe_files(files: Iterable[FileReference]) -> str:
    """List the files of a message, a line each."""
    return "\n".join(
        f"{folder_name(file)} ({file.media_type}, {format_size(file.size)})" for file in files
    )


def read_text(data: bytes) -> str | None:
    """Return the text of a file that is text; None: it is something else."""
    try:
        text = data.decode("utf-8-sig")
    except ValueError:
        return None
    plain = text.replace(_TAB, "").replace(_RETURN, "").replace(_NEWLINE, "")
    return None if any(char < " " or char == "\x7f" for char in plain) else text
