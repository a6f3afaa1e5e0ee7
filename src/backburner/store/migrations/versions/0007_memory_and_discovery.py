"""The words of memories, by which they are found, and what discovery is found by.

The words of the memories that are there are written down too.
"""

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

from backburner.core.memory import index_words

revision = "0007"
down_revision = "0006"

EXACT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
IS_HEARD = sa.text("role = 'user' AND source = 'chat'")
IS_DISCOVERY = sa.text("kind = 'discovery' AND schedule IS NOT NULL")
IS_TRUSTED = sa.text("NOT outside")
#: Memories that are read at a time.
BATCH = 200


def upgrade() -> None:
    for name, table, columns, where in (
        ("ix_messages_heard", "messages", ["user_id", "number"], IS_HEARD),
        ("ix_conversations_discovery", "conversations", ["user_id", "id"], IS_DISCOVERY),
    ):
        op.create_index(name, table, columns, postgresql_where=where, sqlite_where=where)
    op.create_index(
        "ix_memories_newest",
        "memories",
        ["user_id", "updated_at"],
        postgresql_where=IS_TRUSTED,
        sqlite_where=sa.text("outside = 0"),
    )
    words = op.create_table(
        "memory_words",
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("word", EXACT, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id", "key"],
            ["memories.user_id", "memories.key"],
            name=op.f("fk_memory_words_user_id_key"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("user_id", "word", "key", name=op.f("pk_memory_words")),
    )
    op.create_index("ix_memory_words_of_memory", "memory_words", ["user_id", "key"])
    for found in _memories(op.get_bind()):
        rows = [
            {"user_id": row.user_id, "word": word, "key": row.key}
            for row in found
            # Whoever changes how words are told apart has to write them all anew.
            for word in index_words(f"{row.key}\n{row.text}")
        ]
        if rows:
            op.bulk_insert(words, rows)


def _memories(connection: sa.Connection) -> Iterator[Any]:
    """Read all memories, some at a time."""
    table = sa.table("memories", *(sa.column(name, sa.Text) for name in ("user_id", "key", "text")))
    asked = sa.select(table.c.user_id, table.c.key, table.c.text)
    ordered = asked.order_by(table.c.user_id, table.c.key).limit(BATCH)
    found = connection.execute(ordered).all()
    while found:
        yield found
        last = sa.tuple_(table.c.user_id, table.c.key) > sa.tuple_(found[-1][0], found[-1][1])
        found = connection.execute(ordered.where(last)).all()
