"""Files of users: their facts, their bytes in pieces, and what names them."""

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
)
from sqlalchemy.schema import SchemaItem

from backburner.store.tables.base import (
    conversation_reference,
    metadata,
    owner,
    owner_of_conversation,
    partial_index,
)
from backburner.store.types import Id, Time


def _file_reference() -> tuple[SchemaItem, ...]:
    return (
        Column("digest", Id, primary_key=True),
        ForeignKeyConstraint(
            ["user_id", "digest"], ["files.user_id", "files.digest"], ondelete="CASCADE"
        ),
    )


#: The bytes are apart, so that lists do not read them.
files = Table(
    "files",
    metadata,
    owner(),
    Column("digest", Id, primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("media_type", Text, nullable=False),
    Column("name", Text, nullable=False),
    #: What it came from first, which may have been deleted; empty: its user uploaded it.
    Column("conversation_id", Id, nullable=False),
    Column("run_id", Id),
    Column("call_id", Id),
    Column("created_at", Time, nullable=False),
    #: Nothing has named it since then; none: something names it.
    Column("unused_since", Time),
    #: Its bytes are being deleted; nobody finds it any more.
    Column("deleted_at", Time),
    Index("ix_files_of_user", "user_id", "created_at", "digest"),
)
is_deleted = files.c.deleted_at.is_not(None)
is_unused = files.c.unused_since.is_not(None)
partial_index("ix_files_unused", files.c.unused_since, where=is_unused)

file_pieces = Table(
    "file_pieces",
    metadata,
    owner_of_conversation(),
    *_file_reference(),
    Column("piece", Integer, primary_key=True),
    Column("data", LargeBinary, nullable=False),
)

#: A file is deleted with the last of its uses.
file_uses = Table(
    "file_uses",
    metadata,
    owner_of_conversation(),
    *_file_reference(),
    #: The id of a tool call, or of a message.
    Column("used_by", Id, primary_key=True),
    *conversation_reference(),
    Column("run_id", Id),
    Index("ix_file_uses_of_conversation", "user_id", "conversation_id", "digest"),
    Index("ix_file_uses_of_run", "user_id", "run_id"),
)
