"""The first tables."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.schema import SchemaItem

revision = "0001"
down_revision = None

# Types stand here as they were, whatever becomes of those in `types.py`.
TIME = sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")
COUNTER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _create_users()
    _create_conversations()
    _create_messages()
    _create_inbox()
    _create_questions()
    _create_runs()
    _create_outcomes()
    _create_tool_calls()
    _create_grants()
    _create_notices()
    _create_deliveries()
    _create_spend()
    _create_session_entries()
    _create_memories()
    _create_events()


def _of_a_conversation(table: str) -> tuple[SchemaItem, ...]:
    return (
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("conversation_id", sa.Text, nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id", "conversation_id"],
            ["conversations.user_id", "conversations.id"],
            name=op.f(f"fk_{table}_user_id_conversation_id"),
            ondelete="CASCADE",
        ),
    )


def _where(condition: str, *, sqlite: str = "") -> dict[str, Any]:
    """Limit an index to some rows; SQLite may need other words, for it has no truth values."""
    return {
        "postgresql_where": sa.text(condition),
        "sqlite_where": sa.text(sqlite or condition),
    }


def _create_users() -> None:
    op.create_table(
        "users",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("name", sa.Text, server_default="", nullable=False),
        sa.Column("zone", sa.Text, server_default="UTC", nullable=False),
        sa.Column("paused", sa.Boolean, server_default=sa.false(), nullable=False),
        sa.Column("served_at", TIME, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
    )
    op.create_index("ix_users_served_at", "users", ["served_at"])


def _create_conversations() -> None:
    op.create_table(
        "conversations",
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("created_by", sa.Text, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.Column("parent_id", sa.Text),
        sa.Column("batch", sa.Text),
        sa.Column("schedule", sa.Text),
        sa.Column("schedule_revision", sa.Integer, nullable=False),
        sa.Column("after_id", sa.Text),
        sa.Column("next_run_at", TIME),
        sa.Column("settled_until", TIME),
        sa.Column("pause_reason", sa.Text),
        sa.Column("context", sa.Text, nullable=False),
        sa.Column("step", sa.Text, nullable=False),
        sa.Column("data", sa.Text, nullable=False),
        sa.Column("session_engine", sa.Text),
        sa.Column("session_id", sa.Text),
        sa.Column("ended_as", sa.Text),
        sa.Column("ended_at", TIME),
        sa.Column("resuming", sa.Boolean, nullable=False),
        sa.Column("resume_count", sa.Integer, nullable=False),
        sa.Column("retrieved_at", TIME),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("crashes", sa.Integer, nullable=False),
        sa.Column("again_count", sa.Integer, nullable=False),
        sa.Column("again_since", TIME),
        sa.Column("unattended_replies", sa.Integer, nullable=False),
        sa.Column("run_count", sa.Integer, nullable=False),
        sa.Column("max_runs", sa.Integer),
        sa.Column("last_run_at", TIME),
        sa.Column("run_timeout", sa.BigInteger),
        sa.Column("tools", sa.Text),
        sa.Column("profile", sa.Text),
        sa.Column("on_repeated_failure", sa.Text, nullable=False),
        sa.Column("notify", sa.Text, nullable=False),
        sa.Column("last_result_hash", sa.Text),
        sa.Column("reports_to", sa.Text, nullable=False),
        sa.Column("turn_run", sa.Text),
        sa.Column("turn_until", sa.BigInteger),
        sa.Column("epoch", sa.BigInteger, server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("user_id", "id", name=op.f("pk_conversations")),
        sa.CheckConstraint(
            "status IN ('active', 'background', 'waiting_input', 'archived')",
            name=op.f("ck_conversations_status"),
        ),
        sa.CheckConstraint(
            "(turn_run IS NULL) = (turn_until IS NULL)", name=op.f("ck_conversations_turn")
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_conversations_user_id"), ondelete="CASCADE"
        ),
    )
    op.create_index(
        "ix_conversations_after_id",
        "conversations",
        ["user_id", "after_id"],
        **_where("after_id IS NOT NULL"),
    )
    op.create_index(
        "ix_conversations_due",
        "conversations",
        ["next_run_at"],
        **_where("status = 'background' AND next_run_at IS NOT NULL AND turn_run IS NULL"),
    )
    op.create_index(
        "ix_conversations_due_of_user",
        "conversations",
        ["user_id", "next_run_at"],
        **_where("status = 'background' AND next_run_at IS NOT NULL AND turn_run IS NULL"),
    )
    op.create_index("ix_conversations_listed", "conversations", ["user_id", "updated_at"])
    op.create_index(
        "ix_conversations_parent_id",
        "conversations",
        ["user_id", "parent_id"],
        **_where("parent_id IS NOT NULL"),
    )
    op.create_index(
        "ix_conversations_turn", "conversations", ["turn_until"], **_where("turn_run IS NOT NULL")
    )


def _create_messages() -> None:
    op.create_table(
        "messages",
        sa.Column("number", COUNTER, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        *_of_a_conversation("messages"),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("outside", sa.Boolean, nullable=False),
        sa.Column("run_id", sa.Text),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_messages")),
        sa.UniqueConstraint("id", name=op.f("uq_messages_id")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_messages_of_conversation", "messages", ["user_id", "conversation_id", "number"]
    )


def _create_inbox() -> None:
    op.create_table(
        "inbox",
        sa.Column("id", sa.Text, nullable=False),
        *_of_a_conversation("inbox"),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("run_kind", sa.Text, nullable=False),
        sa.Column("from_person", sa.Boolean, nullable=False),
        sa.Column("at_once", sa.Boolean, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("dedupe_key", sa.Text),
        sa.Column("arrived_at", TIME, nullable=False),
        sa.Column("served_at", TIME),
        sa.Column("served_by", sa.Text),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_inbox")),
        sa.UniqueConstraint("user_id", "dedupe_key", name=op.f("uq_inbox_user_id_dedupe_key")),
    )
    op.create_index(
        "ix_inbox_people",
        "inbox",
        ["arrived_at"],
        **_where(
            "served_at IS NULL AND from_person", sqlite="served_at IS NULL AND from_person = 1"
        ),
    )
    op.create_index(
        "ix_inbox_unserved",
        "inbox",
        ["user_id", "conversation_id", "arrived_at"],
        **_where("served_at IS NULL"),
    )
    op.create_index(
        "ix_inbox_work",
        "inbox",
        ["user_id", "arrived_at"],
        **_where(
            "served_at IS NULL AND NOT from_person", sqlite="served_at IS NULL AND from_person = 0"
        ),
    )


def _create_questions() -> None:
    op.create_table(
        "questions",
        sa.Column("id", sa.Text, nullable=False),
        *_of_a_conversation("questions"),
        sa.Column("purpose", sa.Text, nullable=False),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("prompt", sa.Text, nullable=False),
        sa.Column("options", sa.Text, nullable=False),
        sa.Column("binds_to", sa.Text, nullable=False),
        sa.Column("run_id", sa.Text),
        sa.Column("run_kind", sa.Text, nullable=False),
        sa.Column("asked_at", TIME, nullable=False),
        sa.Column("remind_at", TIME),
        sa.Column("reminders", sa.Integer, nullable=False),
        sa.Column("expires_at", TIME),
        sa.Column("default_answer", sa.Text),
        sa.Column("closed_at", TIME),
        sa.Column("answer", sa.Text),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_questions")),
    )
    op.create_index(
        "ix_questions_expires_at", "questions", ["expires_at"], **_where("closed_at IS NULL")
    )
    op.create_index(
        "ix_questions_open",
        "questions",
        ["user_id", "conversation_id", "asked_at"],
        **_where("closed_at IS NULL"),
    )
    op.create_index(
        "ix_questions_remind_at", "questions", ["remind_at"], **_where("closed_at IS NULL")
    )


def _create_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.Text, nullable=False),
        *_of_a_conversation("runs"),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("unattended", sa.Boolean, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("schedule_revision", sa.Integer, nullable=False),
        sa.Column("slot_at", TIME),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("ended_at", TIME),
        sa.Column("wait_until", TIME),
        sa.Column("cancel_requested_at", TIME),
        sa.Column("worker", sa.Text),
        sa.Column("failure_kind", sa.Text),
        sa.Column("failure_message", sa.Text),
        sa.Column("result", sa.Text),
        sa.Column("tokens", sa.BigInteger, nullable=False),
        sa.Column("draft", sa.Text),
        sa.Column("skip_reason", sa.Text),
        sa.Column("gap_count", sa.Integer),
        sa.Column("gap_first_at", TIME),
        sa.Column("gap_last_at", TIME),
        sa.Column("gap_or_more", sa.Boolean),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
        sa.CheckConstraint(
            "status IN ('queued', 'running', 'success', 'failure', 'skipped', 'cancelled')",
            name=op.f("ck_runs_status"),
        ),
    )
    op.create_index("ix_runs_of_conversation", "runs", ["user_id", "conversation_id", "started_at"])
    op.create_index(
        "ix_runs_queued", "runs", ["user_id", "wait_until"], **_where("status = 'queued'")
    )
    op.create_index(
        "uq_runs_queued",
        "runs",
        ["user_id", "conversation_id", "kind"],
        unique=True,
        **_where("status = 'queued'"),
    )
    op.create_index(
        "uq_runs_running",
        "runs",
        ["user_id", "conversation_id"],
        unique=True,
        **_where("status = 'running'"),
    )


def _create_outcomes() -> None:
    op.create_table(
        "outcomes",
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("committed_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "epoch", name=op.f("pk_outcomes")),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_outcomes_run_id"), ondelete="CASCADE"
        ),
    )


def _create_tool_calls() -> None:
    op.create_table(
        "tool_calls",
        sa.Column("id", sa.Text, nullable=False),
        *_of_a_conversation("tool_calls"),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("server", sa.Text, nullable=False),
        sa.Column("tool", sa.Text, nullable=False),
        sa.Column("arguments", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("read_only", sa.Boolean, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("grant_id", sa.Text),
        sa.Column("result", sa.Text),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("ended_at", TIME),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tool_calls")),
        sa.CheckConstraint(
            "state IN ('started', 'done', 'unknown')", name=op.f("ck_tool_calls_state")
        ),
    )
    op.create_index("ix_tool_calls_of_run", "tool_calls", ["user_id", "conversation_id", "run_id"])


def _create_grants() -> None:
    op.create_table(
        "grants",
        sa.Column("id", sa.Text, nullable=False),
        *_of_a_conversation("grants"),
        sa.Column("server", sa.Text, nullable=False),
        sa.Column("tool", sa.Text, nullable=False),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("call", sa.Text),
        sa.Column("words", sa.Text, nullable=False),
        sa.Column("whole", sa.Boolean, nullable=False),
        sa.Column("expires_at", TIME),
        sa.Column("given_at", TIME, nullable=False),
        sa.Column("ended_at", TIME),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_grants")),
    )
    op.create_index("ix_grants_of_conversation", "grants", ["user_id", "conversation_id"])


def _create_notices() -> None:
    op.create_table(
        "notices",
        sa.Column("number", COUNTER, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        *_of_a_conversation("notices"),
        sa.Column("run_id", sa.Text),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("question_id", sa.Text),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("seen_at", TIME),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_notices")),
        sa.UniqueConstraint("id", name=op.f("uq_notices_id")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_notices_of_user", "notices", ["user_id", "number"])


def _create_deliveries() -> None:
    op.create_table(
        "deliveries",
        sa.Column("number", COUNTER, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        *_of_a_conversation("deliveries"),
        sa.Column("notice_id", sa.Text, nullable=False),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("part", sa.Integer, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("not_before", TIME, nullable=False),
        sa.Column("leased_until", sa.BigInteger),
        sa.Column("lease", sa.BigInteger, nullable=False),
        sa.Column("provider_id", sa.Text),
        sa.Column("error", sa.Text),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_deliveries")),
        sa.CheckConstraint(
            "state IN ('waiting', 'sending', 'sent', 'failed')", name=op.f("ck_deliveries_state")
        ),
        sa.UniqueConstraint("key", name=op.f("uq_deliveries_key")),
    )
    op.create_index(
        "ix_deliveries_to_send",
        "deliveries",
        ["not_before"],
        **_where("state IN ('waiting', 'sending')"),
    )


def _create_spend() -> None:
    op.create_table(
        "spend",
        sa.Column("number", COUNTER, nullable=False),
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("conversation_id", sa.Text, nullable=False),
        sa.Column("root_id", sa.Text, nullable=False),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("micros", sa.BigInteger, nullable=False),
        sa.Column("tokens", sa.BigInteger, nullable=False),
        sa.Column("priced", sa.Boolean, nullable=False),
        sa.Column("spent_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_spend")),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_spend_user_id"), ondelete="CASCADE"
        ),
    )
    op.create_index("ix_spend_of_root", "spend", ["user_id", "root_id"])
    op.create_index("ix_spend_of_user", "spend", ["user_id", "spent_at"])


def _create_session_entries() -> None:
    op.create_table(
        "session_entries",
        sa.Column("number", COUNTER, nullable=False),
        *_of_a_conversation("session_entries"),
        sa.Column("session_id", sa.Text, nullable=False),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("entry", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_session_entries")),
    )
    op.create_index(
        "ix_session_entries_of_session",
        "session_entries",
        ["user_id", "conversation_id", "session_id", "number"],
    )


def _create_memories() -> None:
    op.create_table(
        "memories",
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("conversation_id", sa.Text),
        sa.Column("outside", sa.Boolean, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("user_id", "key", name=op.f("pk_memories")),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_memories_user_id"), ondelete="CASCADE"
        ),
    )


def _create_events() -> None:
    op.create_table(
        "events",
        sa.Column("number", COUNTER, nullable=False),
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("conversation_id", sa.Text),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_events")),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_events_user_id"), ondelete="CASCADE"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_of_user", "events", ["user_id", "number"])
