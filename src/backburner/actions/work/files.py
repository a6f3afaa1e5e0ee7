"""Files of a user: store, list, read, and delete.

The bytes of a file are written in pieces, each in a transaction of its own: a large one does not
hold up the writer of a SQLite file. Until something uses a file, it may be deleted after a day.
"""

import asyncio
import codecs
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from backburner.actions.browse import Page, make_page
from backburner.actions.deps import Deps
from backburner.core.content import file as files
from backburner.core.content.attachment import Attachment, check_attachments
from backburner.core.content.file import FileLimits, FileOrigin, FileReference, StoredFile
from backburner.core.conversation import Conversation
from backburner.core.errors import BadRequest, NotFound
from backburner.core.ids import ConversationId, UserId
from backburner.ports import PageKey, Store, Tx

#: Before anything is unused.
NEVER = datetime(1970, 1, 1, tzinfo=UTC)
#: With files, of a conversation.
MESSAGES_SEARCHED = 100
#: Bytes that are searched for a zero, which text does not have.
_PROBE_BYTES = 2**13


@dataclass(frozen=True, slots=True)
class TextPart:
    """Part of a text file."""

    text: str
    #: Where the rest begins; None: this is the end.
    next_offset: int | None


async def store_file(
    store: Store,
    user: UserId,
    data: bytes,
    *,
    media_type: str,
    name: str,
    origin: FileOrigin,
    limits: FileLimits,
) -> FileReference:
    """Store bytes as a file, unless the user has it already. Raises `TooLarge`, `LimitReached`."""
    files.check_size(name, len(data), limits)
    digest = await asyncio.to_thread(files.digest_of, data)
    first, *others = list(files.pieces(data)) or [b""]

    def begin(tx: Tx) -> bool:
        file = StoredFile(
            digest=digest,
            size=len(data),
            media_type=media_type,
            name=name,
            origin=origin,
            created_at=tx.now,
        )
        if not tx.files.begin(user, file):
            return False
        # With the new file: a file that was begun before counts once.
        files.check_room(0, tx.files.total_size(user), limits)
        if first:
            tx.files.write(user, digest, 0, first)
        return True

    if await store.transact(begin):
        for number, piece in enumerate(others, 1):
            await store.transact(partial(_write, user, digest, number, piece))
    return FileReference(digest=digest, size=len(data), media_type=media_type, name=name)


async def load_bytes(store: Store, user: UserId, digest: str) -> bytes | None:
    """Read a file as a whole; None: it was deleted."""

    def work(tx: Tx) -> bytes:
        size = tx.files.load(user, digest).size
        pieces = range(files.piece_count(size))
        return b"".join(tx.files.piece(user, digest, piece) for piece in pieces)

    try:
        return await store.read(work)
    except NotFound:
        return None


async def upload(
    deps: Deps, user: UserId, data: bytes, *, name: str, limits: FileLimits
) -> FileReference:
    """Store a file of a user, which a message names soon: else it is deleted after a day."""
    return await store_file(
        deps.store,
        user,
        data,
        media_type=files.choose_media_type(data, ""),
        name=files.clean_name(name),
        origin=FileOrigin(),
        limits=limits,
    )


def attach(tx: Tx, user: UserId, attachments: Sequence[Attachment]) -> tuple[FileReference, ...]:
    """Find the files that a message names, each under the name that the message gives it."""
    found = list[FileReference]()
    for named in check_attachments(attachments):
        try:
            file = tx.files.load(user, files.check_digest(named.digest))
        except (BadRequest, NotFound):
            raise NotFound(
                f"You have no file {named.digest[:16]!r}.", hint="Upload it first."
            ) from None
        found.append(
            FileReference(
                digest=file.digest,
                size=file.size,
                media_type=file.media_type,
                name=named.name or file.name,
            )
        )
    return tuple(found)


async def list_attached(deps: Deps, conversation: Conversation) -> Sequence[FileReference]:
    """List the files of the messages of a conversation and of its parent, newest first."""
    user, parent_id = conversation.user_id, conversation.parent_id

    def work(tx: Tx) -> Sequence[FileReference]:
        found = tx.messages.files_of(user, conversation.id, limit=MESSAGES_SEARCHED)
        if parent_id is not None:
            above = tx.messages.files_of(user, parent_id, limit=MESSAGES_SEARCHED)
            found = [*found, *above]
        return found

    return await deps.store.read(work)


async def page(deps: Deps, user: UserId, after: PageKey | None, *, limit: int) -> Page[StoredFile]:
    """List the files of a user, newest first."""
    rows = await deps.store.read(lambda tx: tx.files.page(user, after, limit=limit + 1))
    return make_page(rows, limit, lambda last: (last.created_at, last.digest))


async def load(deps: Deps, user: UserId, digest: str) -> StoredFile:
    return await deps.store.read(lambda tx: tx.files.load(user, digest))


async def stream(
    deps: Deps, user: UserId, file: StoredFile | FileReference
) -> AsyncIterator[bytes]:
    """Read a file piece by piece. Raises `NotFound` if it is deleted meanwhile."""
    for piece in range(files.piece_count(file.size)):
        yield await deps.store.read(partial(_read, user, file.digest, piece))


async def remove(deps: Deps, user: UserId, digest: str) -> None:
    """Delete a file; what names it stays."""
    await deps.store.transact(lambda tx: tx.files.remove(user, digest))
    await _sweep(deps, user)


async def remove_all(deps: Deps, user: UserId) -> None:
    await deps.store.transact(lambda tx: tx.files.remove_all(user))
    await _sweep(deps, user)


async def _sweep(deps: Deps, user: UserId) -> None:
    """Delete the bytes of deleted files, step by step."""
    while await deps.store.transact(lambda tx: tx.files.sweep(before=NEVER, user=user)):
        pass


async def find(
    deps: Deps, user: UserId, beginning: str, conversation_id: ConversationId
) -> StoredFile:
    """Find a file that a conversation uses, its parent, or one of its children."""
    files.check_beginning(beginning)
    return await deps.store.read(lambda tx: tx.files.find(user, beginning, conversation_id))


async def read_text(
    deps: Deps, user: UserId, file: StoredFile, *, offset: int, limit: int
) -> TextPart:
    """Read part of a text file; offsets are in bytes."""
    if offset >= file.size:
        return TextPart("", None)
    end = min(offset + limit, file.size)
    first, last = offset // files.PIECE_BYTES, (end - 1) // files.PIECE_BYTES
    read = partial(_read_several, user, file.digest, range(first, last + 1))
    data = (await deps.store.read(read))[offset - first * files.PIECE_BYTES :][: end - offset]
    if b"\0" in data[:_PROBE_BYTES]:
        raise BadRequest("The file is not text.", hint="The user can download it.")
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data, final=end == file.size)
    # Bytes of a character that is cut are read next time.
    end -= len(decoder.getstate()[0])
    return TextPart(text, end if end < file.size else None)


def _write(user: UserId, digest: str, number: int, piece: bytes, tx: Tx) -> None:
    tx.files.write(user, digest, number, piece)


def _read(user: UserId, digest: str, piece: int, tx: Tx) -> bytes:
    return tx.files.piece(user, digest, piece)


def _read_several(user: UserId, digest: str, numbers: Iterable[int], tx: Tx) -> bytes:
    return b"".join(tx.files.piece(user, digest, number) for number in numbers)
