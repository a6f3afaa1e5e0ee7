"""Work that a token hands out uses what the token was given by name.

Tokens that exist were given nothing. What they handed out over MCP is known, and is restricted too.
"""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"

HANDED_OUT = """
    WITH RECURSIVE below (user_id, id) AS (
        SELECT user_id, conversation_id FROM credentials
         WHERE kind = 'token' AND name <> 'command line of this machine'
           AND conversation_id IS NOT NULL
        UNION SELECT c.user_id, c.id FROM conversations c
          JOIN below b ON c.user_id = b.user_id AND c.parent_id = b.id
    ) SELECT user_id, id FROM below
"""


def upgrade() -> None:
    op.add_column("credentials", sa.Column("uses", sa.Text, nullable=False, server_default=""))
    op.add_column("conversations", sa.Column("uses", sa.Text))
    op.execute(f"UPDATE conversations SET uses = '' WHERE (user_id, id) IN ({HANDED_OUT})")  # noqa: S608
