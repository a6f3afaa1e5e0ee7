"""Files of users, and the files that calls of tools returned."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"

TIME = sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")
ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("tool_calls", sa.Column("files", sa.Text))
    _create_files()
    op.create_table(
        "file_pieces",
        *_key(),
        sa.Column("piece", sa.Integer, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("user_id", "digest", "piece", name=op.f("pk_file_pieces")),
        _reference("file_pieces"),
    )
    if op.get_bind().dialect.name == "postgresql":
        # Images and archives are compressed already: trying again takes time only.
        op.execute("ALTER TABLE file_pieces ALTER COLUMN data SET STORAGE EXTERNAL")
    _create_uses()


def _create_files() -> None:
    op.create_table(
        "files",
        *_key(),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("media_type", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("conversation_id", ID, nullable=False),
        sa.Column("run_id", ID),
        sa.Column("call_id", ID),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("unused_since", TIME),
        sa.Column("deleted_at", TIME),
        sa.PrimaryKeyConstraint("user_id", "digest", name=op.f("pk_files")),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_files_user_id"), ondelete="CASCADE"
        ),
    )
    op.create_index("ix_files_of_user", "files", ["user_id", "created_at", "digest"])
    op.create_index(
        "ix_files_unused",
        "files",
        ["unused_since"],
        postgresql_where=sa.text("unused_since IS NOT NULL"),
        sqlite_where=sa.text("unused_since IS NOT NULL"),
    )


def _create_uses() -> None:
    op.create_table(
        "file_uses",
        *_key(),
        sa.Column("used_by", ID, nullable=False),
        sa.Column("conversation_id", ID, nullable=False),
        sa.Column("run_id", ID),
        sa.PrimaryKeyConstraint("user_id", "digest", "used_by", name=op.f("pk_file_uses")),
        _reference("file_uses"),
        sa.ForeignKeyConstraint(
            ["user_id", "conversation_id"],
            ["conversations.user_id", "conversations.id"],
            name=op.f("fk_file_uses_user_id_conversation_id"),
            ondelete="CASCADE",
        ),
    )
    op.create_index(
        "ix_file_uses_of_conversation", "file_uses", ["user_id", "conversation_id", "digest"]
    )
    op.create_index("ix_file_uses_of_run", "file_uses", ["user_id", "run_id"])


def _key() -> tuple[sa.Column[str], ...]:
    return (
        sa.Column("user_id", ID, nullable=False),
        sa.Column("digest", ID, nullable=False),
    )


def _reference(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["user_id", "digest"],
        ["files.user_id", "files.digest"],
        name=op.f(f"fk_{table}_user_id_digest"),
        ondelete="CASCADE",
    )
