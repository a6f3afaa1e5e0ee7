"""Connections of users to MCP servers, their tools, and which of them work may use."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"

TIME = sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")
ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "connections",
        sa.Column("user_id", ID, nullable=False),
        sa.Column("id", ID, nullable=False),
        sa.Column("name", ID, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("program", sa.Text, nullable=False),
        sa.Column("auth", sa.Text, nullable=False),
        sa.Column("headers", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("catalogue", sa.Text, nullable=False),
        sa.Column("disabled", sa.Boolean, nullable=False),
        sa.Column("in_chats", sa.Boolean, nullable=False),
        sa.Column("sign_in_revision", sa.Integer, nullable=False),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("listed_at", TIME),
        sa.Column("expires_at", TIME),
        sa.Column("last_used_at", TIME),
        sa.Column("last_error", sa.Text, nullable=False),
        sa.Column("last_error_at", TIME),
        sa.PrimaryKeyConstraint("user_id", "id", name=op.f("pk_connections")),
        sa.UniqueConstraint("user_id", "name", name=op.f("uq_connections_user_id_name")),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_connections_user_id"), ondelete="CASCADE"
        ),
    )
    op.create_table(
        "connection_tools",
        sa.Column("user_id", ID, nullable=False),
        sa.Column("connection_id", ID, nullable=False),
        sa.Column("name", ID, nullable=False),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("accepted_definition", sa.Text),
        sa.Column("accepted", sa.Text, nullable=False),
        sa.Column("reported", sa.Text, nullable=False),
        sa.Column("read_only", sa.Boolean, nullable=False),
        sa.Column("repeatable", sa.Boolean, nullable=False),
        sa.Column("discloses", sa.Boolean, nullable=False),
        sa.Column("ticked_read_only", sa.Boolean),
        sa.Column("ticked_repeatable", sa.Boolean),
        sa.Column("gone", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint(
            "user_id", "connection_id", "name", name=op.f("pk_connection_tools")
        ),
        sa.ForeignKeyConstraint(
            ["user_id", "connection_id"],
            ["connections.user_id", "connections.id"],
            name=op.f("fk_connection_tools_user_id_connection_id"),
            ondelete="CASCADE",
        ),
    )
    op.add_column("conversations", sa.Column("connections", sa.Text))
    op.add_column(
        "credentials", sa.Column("connections", sa.Text, nullable=False, server_default="")
    )
