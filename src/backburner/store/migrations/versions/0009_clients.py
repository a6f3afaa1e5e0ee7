"""The conversation of a token, under which all hangs that is handed out with it over MCP."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.add_column("credentials", sa.Column("conversation_id", sa.Text))
