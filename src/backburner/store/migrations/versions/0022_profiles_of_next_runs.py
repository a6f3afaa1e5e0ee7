"""The profiles that messages ask for, on the row of their conversation: claims count seats by it.

Messages that wait while the database is migrated keep what they asked for.
"""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"

#: Waiting messages, and those that a run served which was handed back since.
WAITING = (
    "SELECT inbox.user_id, inbox.conversation_id, inbox.content FROM inbox"
    " LEFT JOIN runs ON runs.user_id = inbox.user_id AND runs.id = inbox.served_by"
    " WHERE inbox.run_kind = 'reply' AND inbox.content LIKE '%\"profile\"%'"
    " AND (inbox.served_at IS NULL OR runs.status = 'queued')"
    " ORDER BY inbox.arrived_at, inbox.id"
)
REQUEST = "UPDATE conversations SET reply_profile = :profile WHERE user_id = :user_id AND id = :id"


def upgrade() -> None:
    for name in ("reply_profile", "work_profile"):
        column: sa.Column[Any] = sa.Column(name, sa.Text, nullable=False, server_default="")
        op.add_column("conversations", column)
    bind = op.get_bind()
    for user_id, conversation_id, content in bind.execute(sa.text(WAITING)).all():
        if profile := json.loads(content).get("profile"):
            values = {"profile": profile, "user_id": user_id, "id": conversation_id}
            bind.execute(sa.text(REQUEST), values)
