"""Files of users: store, name, read in pieces, list, and delete.

A file that nothing names is kept for a while: it may be about to be named, or its bytes are still
being stored. A file that is deleted is not found any more, and its bytes are deleted step by step.
Whoever names or deletes a file locks its row first.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Row,
    Text,
    bindparam,
    case,
    delete,
    exists,
    func,
    null,
    or_,
    select,
    tuple_,
    update,
)

from backburner.core.content.file import FileOrigin, StoredFile, piece_count
from backburner.core.errors import Conflict, NotFound
from backburner.core.ids import CallId, ConversationId, MessageId, RunId, UserId
from backburner.ports import PageKey
from backburner.store.context import Group
from backburner.store.dialect import insert_if_absent
from backburner.store.tables import (
    conversations,
    file_pieces,
    file_uses,
    files,
    is_deleted,
    is_unused,
)

#: Columns that describe a file, or say that nothing uses it yet.
_OF_FILE = "size media_type name conversation_id run_id call_id created_at unused_since".split()
_TIME = files.c.created_at.type
#: Of bytes that are deleted in one transaction: SQLite takes about 20 ms for 3 MB.
MAX_PIECES_DELETED = 4

_owner, _which = bindparam("owner", type_=Text()), bindparam("which", type_=Text())
_limit = bindparam("limit", type_=BigInteger())
_this = (files.c.user_id == _owner) & (files.c.digest == _which)
_load = select(files).where(_this, ~is_deleted)
_lock = select(files).where(_this).with_for_update()
_renew = (
    update(files)
    .where(_this)
    .values({name: bindparam(f"new_{name}") for name in _OF_FILE} | {"deleted_at": null()})
)
#: A file that was uploaded comes from the first conversation that names it.
_origin = case((files.c.conversation_id == "", bindparam("place")), else_=files.c.conversation_id)
_mark_used = (
    update(files).where(_this, is_unused).values(unused_since=None, conversation_id=_origin)
)
_of_file = (file_pieces.c.user_id == _owner) & (file_pieces.c.digest == _which)
_count_pieces = select(func.count()).select_from(file_pieces).where(_of_file)
_select_piece = select(file_pieces.c.data).where(
    _of_file, file_pieces.c.piece == bindparam("piece")
)
_sum_sizes = select(func.coalesce(func.sum(files.c.size), 0)).where(
    files.c.user_id == _owner, ~is_deleted
)
_page = (
    select(files)
    .where(files.c.user_id == _owner, ~is_unused)
    .order_by(files.c.created_at.desc(), files.c.digest.desc())
    .limit(_limit)
)
_page_after = _page.where(
    tuple_(files.c.created_at, files.c.digest)
    < tuple_(bindparam("at", type_=files.c.created_at.type), _which)
)
_here = bindparam("conversation", type_=Text())
_parent = (
    select(conversations.c.parent_id)
    .where(conversations.c.user_id == _owner, conversations.c.id == _here)
    .scalar_subquery()
)
_children = select(conversations.c.id).where(
    conversations.c.user_id == _owner, conversations.c.parent_id == _here
)
_used_around = (
    select(files)
    .where(
        files.c.user_id == _owner,
        files.c.digest >= bindparam("first", type_=Text()),
        files.c.digest <= bindparam("last", type_=Text()),
        exists().where(
            file_uses.c.user_id == files.c.user_id,
            file_uses.c.digest == files.c.digest,
            or_(
                file_uses.c.conversation_id == _here,
                file_uses.c.conversation_id == _parent,
                file_uses.c.conversation_id.in_(_children),
            ),
        ),
    )
    .limit(2)
)
_named = (file_uses.c.user_id, file_uses.c.digest)
_forget_conversation = (
    delete(file_uses)
    .where(file_uses.c.user_id == _owner, file_uses.c.conversation_id == _here)
    .returning(*_named)
)
_forget_runs = (
    delete(file_uses)
    .where(
        tuple_(file_uses.c.user_id, file_uses.c.run_id).in_(bindparam("run_keys", expanding=True))
    )
    .returning(*_named)
)
_forget_messages = (
    delete(file_uses)
    .where(
        file_uses.c.user_id == _owner,
        file_uses.c.conversation_id == _here,
        file_uses.c.used_by.in_(bindparam("message_ids", expanding=True)),
    )
    .returning(*_named)
)
_forget_file = delete(file_uses).where(file_uses.c.user_id == _owner, file_uses.c.digest == _which)
_keys = tuple_(files.c.user_id, files.c.digest).in_(bindparam("file_keys", expanding=True))
_lock_several = (
    select(files.c.digest).where(_keys).order_by(files.c.user_id, files.c.digest).with_for_update()
)
_delete_unnamed = (
    update(files)
    .where(
        _keys,
        ~exists().where(
            file_uses.c.user_id == files.c.user_id, file_uses.c.digest == files.c.digest
        ),
    )
    .values(unused_since=bindparam("at"), deleted_at=bindparam("at"))
)
_delete_all = (
    update(files)
    .where(files.c.user_id == _owner)
    .values(unused_since=bindparam("at"), deleted_at=bindparam("at"))
)
_forget_all = delete(file_uses).where(file_uses.c.user_id == _owner)
_is_over = or_(is_deleted, files.c.unused_since < bindparam("before", type_=_TIME))
_select_over = (
    select(files.c.user_id, files.c.digest)
    .where(is_unused, _is_over)
    .order_by(files.c.unused_since)
    .limit(1)
)
_select_over_of_user = _select_over.where(files.c.user_id == _owner)
_lock_over = _lock.where(is_unused, _is_over)
_last_pieces = (
    select(file_pieces.c.piece)
    .where(_of_file)
    .order_by(file_pieces.c.piece.desc())
    .limit(_limit)
    .scalar_subquery()
)
_remove_pieces = delete(file_pieces).where(_of_file, file_pieces.c.piece.in_(_last_pieces))
_remove = delete(files).where(_this)


class Files(Group):
    def begin(self, user: UserId, file: StoredFile) -> bool:
        values = {
            "size": file.size,
            "media_type": file.media_type,
            "name": file.name,
            "conversation_id": file.origin.conversation_id or "",
            "run_id": file.origin.run_id,
            "call_id": file.origin.call_id,
            "created_at": self.tx.now,
            "unused_since": self.tx.now,
        }
        # Another process may store the same bytes at this moment: they are the same pieces.
        if insert_if_absent(
            self.connection, files, {**values, "user_id": user, "digest": file.digest}
        ):
            return True
        row = self._execute(_lock, _key(user, file.digest)).one_or_none()
        if row is None:
            # It was deleted between the two statements.
            return self.begin(user, file)
        if row.unused_since is not None:
            # It is stored again: it may not be deleted meanwhile.
            renewed = {f"new_{name}": value for name, value in values.items()}
            self._execute(_renew, {**_key(user, file.digest), **renewed})
        return not self._is_whole(user, row)

    def write(self, user: UserId, digest: str, piece: int, data: bytes) -> None:
        row = {"user_id": user, "digest": digest, "piece": piece, "data": data}
        insert_if_absent(self.connection, file_pieces, row)

    def use(
        self,
        user: UserId,
        digest: str,
        *,
        conversation_id: ConversationId,
        used_by: CallId | MessageId,
        run_id: RunId | None = None,
    ) -> None:
        row = self._execute(_lock, _key(user, digest)).one_or_none()
        if row is None or row.deleted_at is not None:
            raise NotFound
        if row.unused_since is not None:
            if not self._is_whole(user, row):
                raise Conflict("The file has not been stored completely.", hint="Store it again.")
            self._execute(_mark_used, {**_key(user, digest), "place": conversation_id})
        use = {
            "user_id": user,
            "digest": digest,
            "used_by": used_by,
            "conversation_id": conversation_id,
            "run_id": run_id,
        }
        insert_if_absent(self.connection, file_uses, use)

    def load(self, user: UserId, digest: str) -> StoredFile:
        row = self._read_one(_load, _key(user, digest))
        if row.unused_since is not None and not self._is_whole(user, row):
            raise NotFound
        return _to_file(row)

    def piece(self, user: UserId, digest: str, piece: int) -> bytes:
        row = self._read_one(_select_piece, {**_key(user, digest), "piece": piece})
        return bytes(row.data)

    def find(self, user: UserId, beginning: str, conversation_id: ConversationId) -> StoredFile:
        values = {"owner": user, "conversation": conversation_id}
        # Digits come before letters, and `g` after those that are digits.
        values |= {"first": beginning, "last": f"{beginning}g"}
        found = self._execute(_used_around, values).all()
        if not found:
            raise NotFound
        if len(found) > 1:
            raise Conflict("Several files begin like that.", hint="Give more of its digits.")
        return _to_file(found[0])

    def page(self, user: UserId, after: PageKey | None, *, limit: int) -> Sequence[StoredFile]:
        values: dict[str, Any] = {"owner": user, "limit": limit}
        statement = _page
        if after is not None:
            statement, (values["at"], values["which"]) = _page_after, after
        return [_to_file(row) for row in self._execute(statement, values)]

    def total_size(self, user: UserId) -> int:
        return int(self._execute(_sum_sizes, {"owner": user}).scalar_one())

    def remove(self, user: UserId, digest: str) -> None:
        if self._execute(_lock.where(~is_deleted), _key(user, digest)).one_or_none() is None:
            raise NotFound
        self._execute(_forget_file, _key(user, digest))
        self._delete_unnamed([(user, digest)])

    def remove_all(self, user: UserId) -> None:
        """Delete all files of a user."""
        self._execute(_forget_all, {"owner": user})
        self._execute(_delete_all, {"owner": user, "at": self.tx.now})

    def sweep(self, *, before: datetime, user: UserId | None = None) -> bool:
        values = {"before": before, "owner": user}
        left = MAX_PIECES_DELETED
        while left > 0:
            found = _select_over if user is None else _select_over_of_user
            row = self._execute(found, values).first()
            if row is None:
                return False
            left -= self._remove_pieces(UserId(row.user_id), row.digest, before, left)
        return True

    def _remove_pieces(self, user: UserId, digest: str, before: datetime, limit: int) -> int:
        """Delete some pieces of a file, and with the last of them the file; return how many."""
        key = _key(user, digest)
        if self._execute(_lock_over, {**key, "before": before}).one_or_none() is None:
            # It is stored again, or named.
            return 1
        removed = self._execute(_remove_pieces, {**key, "limit": limit}).rowcount
        if removed < limit:
            self._execute(_remove, key)
        return max(removed, 1)

    def forget_conversation(self, user: UserId, conversation_id: ConversationId) -> None:
        """Delete the files that nothing else names than a conversation that is deleted."""
        values = {"owner": user, "conversation": conversation_id}
        self._delete_unnamed(self._execute(_forget_conversation, values).all())

    def forget_messages(
        self, user: UserId, conversation_id: ConversationId, message_ids: Sequence[MessageId]
    ) -> None:
        """Delete the files that nothing else names than messages that are gone."""
        values = {"owner": user, "conversation": conversation_id, "message_ids": message_ids}
        if message_ids:
            self._delete_unnamed(self._execute(_forget_messages, values).all())

    def forget_runs(self, run_keys: Collection[tuple[str, str]]) -> None:
        """Delete the files that nothing else names than runs that are deleted."""
        self._delete_unnamed(self._execute(_forget_runs, {"run_keys": run_keys}).all())

    def _delete_unnamed(self, named: Iterable[Any]) -> None:
        keys = sorted({(user, digest) for user, digest in named})
        if not keys:
            return
        self._execute(_lock_several, {"file_keys": keys}).all()
        # With the locks, in a statement of its own: it sees what others have committed.
        self._execute(_delete_unnamed, {"file_keys": keys, "at": self.tx.now})

    def _is_whole(self, user: UserId, row: Row[Any]) -> bool:
        if row.unused_since is None:
            return True
        count = self._execute(_count_pieces, _key(user, row.digest)).scalar_one()
        return bool(count == piece_count(row.size))


def _key(user: UserId, digest: str) -> dict[str, Any]:
    return {"owner": user, "which": digest}


def _to_file(row: Row[Any]) -> StoredFile:
    return StoredFile(
        digest=row.digest,
        size=row.size,
        media_type=row.media_type,
        name=row.name,
        origin=FileOrigin(
            ConversationId(row.conversation_id) if row.conversation_id else None,
            row.run_id and RunId(row.run_id),
            row.call_id and CallId(row.call_id),
        ),
        created_at=row.created_at,
    )
