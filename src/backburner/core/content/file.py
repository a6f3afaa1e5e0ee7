"""Files that are kept for a user: their facts, names and limits.

A file is known by the digest of its bytes. Equal bytes of one user are one file; those of two users
are two.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from backburner.core.content.image import RASTER_TYPES, sniff
from backburner.core.errors import BadRequest, LimitReached, TooLarge
from backburner.core.ids import CallId, ConversationId, RunId
from backburner.core.validation import hidden_characters, replace_invalid_characters

#: Bytes are stored and sent in pieces of this size; in base64, pieces can be joined.
PIECE_BYTES = 3 * 2**18
DIGEST_CHARS = 64
#: Digests are shown to agents in short: 64 bits.
SHORT_DIGEST_CHARS = 16
BYTES, TEXT, JSON = "application/octet-stream", "text/plain", "application/json"
MAX_NAME_CHARS = 100
MEGABYTE = 2**20

_DIGEST = re.compile(f"[0-9a-f]{{{DIGEST_CHARS}}}")
_BEGINNING = re.compile(f"[0-9a-f]{{8,{DIGEST_CHARS}}}")
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,60}/[a-z0-9][a-z0-9!#$&^_.+-]{0,60}")
#: Some systems read them as part of a path, or refuse them.
_NOT_IN_NAMES = re.compile(r'[/\\:*?"<>|]')


@dataclass(frozen=True, slots=True)
class FileLimits:
    #: Bytes of one file, and of all files of a user.
    file: int = 20 * MEGABYTE
    user: int = 1000 * MEGABYTE


DEFAULT_LIMITS = FileLimits()


@dataclass(frozen=True, slots=True)
class FileOrigin:
    """The first origin of a file."""

    #: None: its user uploaded it, and no message has named it yet.
    conversation_id: ConversationId | None = None
    run_id: RunId | None = None
    call_id: CallId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """The facts about a file, without its bytes."""

    digest: str
    size: int
    #: By its bytes if it is a raster image, otherwise as its sender says.
    media_type: str
    #: As its sender says, made safe; may be empty.
    name: str
    origin: FileOrigin
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReference:
    """A file as the result or message that it came with names it; it may have been deleted."""

    digest: str
    size: int
    media_type: str
    name: str
    #: The agent was shown it as an image.
    shown: bool = False


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def check_digest(text: str) -> str:
    if not _DIGEST.fullmatch(text):
        raise BadRequest(
            "That is no digest of a file.", hint=f"It has {DIGEST_CHARS} hexadecimal digits."
        )
    return text


def check_beginning(text: str) -> str:
    """Check the beginning of a digest."""
    if not _BEGINNING.fullmatch(text):
        raise BadRequest(f"There is no file {text[:80]!r}.", hint="Give the digits as shown.")
    return text


def choose_media_type(data: bytes, claimed: str) -> str:
    """Return the media type of a file: by its bytes if it is an image, otherwise as claimed."""
    kind = sniff(data)
    if kind is not None:
        return kind
    plain = claimed.partition(";")[0].strip().lower()
    if plain in RASTER_TYPES or not _MEDIA_TYPE.fullmatch(plain):
        return BYTES
    return plain


def clean_name(name: str) -> str:
    """Make a name that is safe to show and to save under: without folders and hidden characters."""
    text = unicodedata.normalize("NFC", replace_invalid_characters(name[-1000:]))
    hidden = hidden_characters(text) | {"\n", "\t"}
    last = "".join(" " if char in hidden else char for char in text).replace("\\", "/")
    plain = " ".join(_NOT_IN_NAMES.sub("_", last.rstrip("/ ").rpartition("/")[2]).split())
    # A leading dot hides a file, and a dash makes it an option of commands.
    plain = plain.lstrip(".- ").rstrip(". ")
    stem, dot, extension = plain.rpartition(".")
    if len(plain) > MAX_NAME_CHARS and dot and len(extension) <= 10:
        return f"{stem[: MAX_NAME_CHARS - len(extension) - 1]}.{extension}"
    return plain[:MAX_NAME_CHARS]


def check_size(name: str, size: int, limits: FileLimits) -> None:
    if size > limits.file:
        raise TooLarge(f"The file {name!r}" if name else "The file", size=size, limit=limits.file)


def check_room(size: int, used: int, limits: FileLimits) -> None:
    """Refuse a file that the limit of its user leaves no room for."""
    if used + size > limits.user:
        raise LimitReached(
            f"Limit reached: {format_size(limits.user)} of files.",
            hint="Delete files or old conversations first.",
        )


def pieces(data: bytes) -> Iterator[bytes]:
    return (data[start : start + PIECE_BYTES] for start in range(0, len(data), PIECE_BYTES))


def piece_count(size: int) -> int:
    return -(-size // PIECE_BYTES)


def format_size(size: int) -> str:
    if size >= MEGABYTE:
        return f"{size / MEGABYTE:,.1f} MB"
    return f"{size / 1024:,.0f} KB" if size >= 1024 else f"{size} bytes"
