"""Export or erase all of a user's data."""

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from backburner.actions.deps import Deps
from backburner.actions.work import files
from backburner.core.content.file import piece_count
from backburner.core.errors import BadRequest, Conflict, NotFound
from backburner.core.ids import ConversationId, UserId
from backburner.ports import ExportPage, Hint, HintKind, PageKey, Tx

FORMAT, VERSION = "backburner", 1
#: The part whose rows have bytes.
FILES = "files"
#: The text that confirms an erasure.
ERASE_CONFIRMATION = "erase everything of mine"
#: Rows per transaction, so that an export does not block other transactions.
EXPORT_BATCH = 100
#: How often an erasure checks for running runs, and the seconds between two checks.
MAX_IDLE_CHECKS, IDLE_CHECK_SECONDS = 150, 0.1


async def export(deps: Deps, user: UserId) -> AsyncIterator[str]:
    """Stream all data of a user as one JSON document."""
    profile, parts, now = await deps.store.read(
        lambda tx: (tx.personal_data.profile(user), tx.personal_data.parts, tx.now)
    )
    head = {"format": FORMAT, "version": VERSION, "exported_at": _time(now), "profile": profile}
    yield _dump(head).removesuffix("}")
    for part in parts:
        yield f', "{part}": ['
        async for piece in _rows(deps, user, part):
            yield piece
        yield "]"
    yield "}\n"


async def erase(deps: Deps, user: UserId, confirmation: str) -> None:
    """Delete a user and all their data, after their runs have stopped.

    Files go first: should that fail, the account is there to try again with.
    """
    if confirmation.strip().lower() != ERASE_CONFIRMATION:
        raise BadRequest(
            "Nothing was erased: erasing cannot be undone and needs a confirmation.",
            hint=f'Confirm with "{ERASE_CONFIRMATION}".',
        )
    await deps.store.transact(partial(_stop, user))
    await _wait_until_idle(deps, user)
    await deps.remove_files(user)
    await files.remove_all(deps, user)
    await deps.store.transact(partial(_erase, user))
    # Once more: a run that did not stop in time may have written since.
    await deps.remove_files(user)


async def _rows(deps: Deps, user: UserId, part: str) -> AsyncIterator[str]:
    comma, after, is_over = "", None, False
    while not is_over:
        page = await deps.store.read(partial(_read, user, part, after))
        for row in page.rows:
            yield comma
            if part == FILES:
                async for piece in _file(deps, user, row):
                    yield piece
            else:
                yield _dump(row)
            comma = ",\n"
        after, is_over = page.next_key, page.next_key is None


async def _file(deps: Deps, user: UserId, row: Mapping[str, Any]) -> AsyncIterator[str]:
    """Write a file with its bytes in base64, piece by piece."""
    yield _dump(row).removesuffix("}") + ', "content": "'
    for number in range(piece_count(row["size"])):
        try:
            piece = await deps.store.read(partial(_read_piece, user, row["digest"], number))
        except NotFound:
            # It was deleted meanwhile.
            break
        yield b64encode(piece).decode()
    yield '"}'


def _read_piece(user: UserId, digest: str, number: int, tx: Tx) -> bytes:
    return tx.files.piece(user, digest, number)


def _read(user: UserId, part: str, after: PageKey | None, tx: Tx) -> ExportPage:
    return tx.personal_data.page(user, part, after, limit=EXPORT_BATCH)


def _stop(user: UserId, tx: Tx) -> Sequence[ConversationId]:
    if tx.personal_data.is_last_operator(user):
        raise Conflict(
            "You are the only operator, and there are other users.",
            hint="Make another user an operator first.",
        )
    stopped = tx.personal_data.stop_runs(user)
    tx.hint(*(Hint(HintKind.CANCEL, user, conversation_id) for conversation_id in stopped))
    return stopped


def _erase(user: UserId, tx: Tx) -> None:
    # Checked again: users may have been added or removed meanwhile.
    _stop(user, tx)
    tx.personal_data.erase(user)
    tx.hint(Hint(HintKind.CHANGED, user))


async def _wait_until_idle(deps: Deps, user: UserId) -> None:
    """Wait for runs to stop, so that none writes files that are about to be deleted.

    A run that does not stop in time loses its turn with the data, and can store nothing.
    """
    for _ in range(MAX_IDLE_CHECKS):
        if not await deps.store.transact(partial(_stop, user)):
            return
        await asyncio.sleep(IDLE_CHECK_SECONDS)


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _time(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
