"""Files of users, as runs leave them."""

from backburner.core.content.file import (
    FileOrigin,
    StoredFile,
    choose_media_type,
    clean_name,
    digest_of,
    pieces,
)
from backburner.core.ids import ConversationId, UserId, new_call_id, new_run_id
from backburner.store.tx import Tx


def put_file(
    tx: Tx, user: UserId, place: ConversationId, data: bytes, *, name: str = "", claims: str = ""
) -> str:
    """Store a file that a call in a conversation returned; return its digest."""
    origin = FileOrigin(place, new_run_id(), new_call_id())
    file = StoredFile(
        digest=digest_of(data),
        size=len(data),
        media_type=choose_media_type(data, claims),
        name=clean_name(name),
        origin=origin,
        created_at=tx.now,
    )
    tx.files.begin(user, file)
    for number, piece in enumerate(pieces(data)):
        tx.files.write(user, file.digest, number, piece)
    tx.files.use(user, file.digest, conversation_id=place, used_by=new_call_id())
    return file.digest
