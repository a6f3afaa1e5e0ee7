"""All tables.

Numbered after the nine revisions of the alpha versions, which no release has: a database that has
one of those is told apart by its revision, and refused.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.schema import SchemaItem

revision = "0010"
down_revision = None

# Types stand here as they were, whatever becomes of those in `types.py`.
TIME = sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")
ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
EXACT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    _create_users()
    _create_install()
    _create_credentials()
    _create_attempts()
    _create_counters()
    _create_answers()
    _create_conversations()
    _create_messages()
    _create_inbox()
    _create_questions()
    _create_runs()
    _create_outcomes()
    _create_waits()
    _create_tool_calls()
    _create_receipts()
    _create_grants()
    _create_session_entries()
    _create_notices()
    _create_deliveries()
    _create_events()
    _create_spend()
    _create_totals()
    _create_allowances()
    _create_memories()
    _create_memory_words()


def _of_a_conversation(table: str) -> tuple[SchemaItem, ...]:
    return (
        sa.Column("conversation_id", ID, nullable=False),
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
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.Text, nullable=False, server_default=""),
        sa.Column("zone", sa.Text, nullable=False, server_default="UTC"),
        sa.Column("paused", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("served_at", TIME, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("login", sa.Text),
        sa.Column("password", sa.Text),
        sa.Column("role", sa.Text, nullable=False, server_default="member"),
        sa.Column("disabled_at", TIME),
        sa.Column("away_since", TIME),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
    )
    op.create_index("uq_users_login", "users", ["login"], unique=True)
    op.create_index("ix_users_served_at", "users", ["served_at"])


def _create_install() -> None:
    op.create_table(
        "install",
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_install")),
    )


def _create_credentials() -> None:
    op.create_table(
        "credentials",
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("id", ID, nullable=False),
        sa.Column("user_id", ID, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False, server_default=""),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME),
        sa.Column("used_at", TIME),
        sa.Column("ended_at", TIME),
        sa.Column("conversation_id", ID),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_credentials")),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_credentials_user_id"), ondelete="CASCADE"
        ),
    )
    op.create_index("uq_credentials_id", "credentials", ["user_id", "id"], unique=True)


def _create_attempts() -> None:
    op.create_table(
        "attempts",
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("count", sa.Integer, nullable=False),
        sa.Column("since", TIME, nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_attempts")),
    )


def _create_counters() -> None:
    op.create_table(
        "counters",
        sa.Column("user_id", ID, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("last", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("user_id", "name", name=op.f("pk_counters")),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_counters_user_id"), ondelete="CASCADE"
        ),
    )


def _create_answers() -> None:
    op.create_table(
        "answers",
        sa.Column("user_id", ID, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("request", sa.Text, nullable=False),
        sa.Column("status", sa.Integer),
        sa.Column("body", sa.Text),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("user_id", "key", name=op.f("pk_answers")),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_answers_user_id"), ondelete="CASCADE"
        ),
    )
    op.create_index("ix_answers_created_at", "answers", ["created_at"])


def _create_conversations() -> None:
    op.create_table(
        "conversations",
        sa.Column("user_id", ID, nullable=False),
        sa.Column("id", ID, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("created_by", sa.Text, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.Column("parent_id", ID),
        sa.Column("batch", ID),
        sa.Column("schedule", sa.Text),
        sa.Column("schedule_revision", sa.Integer, nullable=False),
        sa.Column("after_id", ID),
        sa.Column("next_run_at", TIME),
        sa.Column("settled_until", TIME),
        sa.Column("pause_reason", sa.Text),
        sa.Column("context", sa.Text, nullable=False),
        sa.Column("step", sa.Text, nullable=False),
        sa.Column("data", sa.Text, nullable=False),
        sa.Column("session_profile", sa.Text),
        sa.Column("session_id", ID),
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
        sa.Column("requested_profile", sa.Text),
        sa.Column("on_repeated_failure", sa.Text, nullable=False),
        sa.Column("notify", sa.Text, nullable=False),
        sa.Column("last_result_hash", sa.Text),
        sa.Column("reports_to", sa.Text, nullable=False),
        sa.Column("turn_run", ID),
        sa.Column("turn_until", sa.BigInteger),
        sa.Column("epoch", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        sa.Column("profile", sa.Text, nullable=False, server_default=""),
        sa.Column("session_tokens", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("outside_read", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("parent_run_id", ID),
        sa.Column("parent_message_id", ID),
        sa.Column("root_id", ID),
        sa.Column("keeps_only", sa.Boolean, nullable=False, server_default=sa.false()),
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
        "ix_conversations_at_work",
        "conversations",
        ["user_id", "kind"],
        **_where("schedule IS NOT NULL"),
    )
    op.create_index(
        "ix_conversations_discovery",
        "conversations",
        ["user_id", "id"],
        **_where("kind = 'discovery' AND schedule IS NOT NULL"),
    )
    op.create_index(
        "ix_conversations_dismissed",
        "conversations",
        ["user_id", "ended_at"],
        **_where("ended_as = 'dismissed'"),
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
    op.create_index("ix_conversations_listed", "conversations", ["user_id", "updated_at", "id"])
    op.create_index(
        "ix_conversations_open_jobs",
        "conversations",
        ["user_id", "root_id"],
        **_where("root_id IS NOT NULL AND (schedule IS NOT NULL OR status = 'waiting_input')"),
    )
    op.create_index(
        "ix_conversations_parent_id",
        "conversations",
        ["user_id", "parent_id"],
        **_where("parent_id IS NOT NULL"),
    )
    op.create_index(
        "ix_conversations_parked",
        "conversations",
        ["user_id"],
        **_where("pause_reason = 'allowance'"),
    )
    op.create_index(
        "ix_conversations_titled", "conversations", ["user_id", "title"], **_where("kind = 'task'")
    )
    op.create_index(
        "ix_conversations_turn", "conversations", ["turn_until"], **_where("turn_run IS NOT NULL")
    )
    # Last: of two that fit alike, SQLite takes the one that was made last.
    op.create_index(
        "ix_conversations_jobs",
        "conversations",
        ["user_id", "updated_at", "id"],
        **_where("kind = 'job'"),
    )


def _create_messages() -> None:
    op.create_table(
        "messages",
        sa.Column("user_id", ID, nullable=False),
        sa.Column("number", sa.BigInteger, sa.Identity(), nullable=False),
        sa.Column("id", ID, nullable=False),
        *_of_a_conversation("messages"),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("outside", sa.Boolean, nullable=False),
        sa.Column("run_id", ID),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("replaced_at", TIME),
        sa.PrimaryKeyConstraint("user_id", "number", name=op.f("pk_messages")),
        sa.UniqueConstraint("user_id", "id", name=op.f("uq_messages_user_id_id")),
    )
    op.create_index(
        "ix_messages_heard",
        "messages",
        ["user_id", "number"],
        **_where("role = 'user' AND source = 'chat'"),
    )
    op.create_index(
        "ix_messages_of_conversation", "messages", ["user_id", "conversation_id", "number"]
    )


def _create_inbox() -> None:
    op.create_table(
        "inbox",
        sa.Column("user_id", ID, nullable=False),
        sa.Column("id", ID, nullable=False),
        *_of_a_conversation("inbox"),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("run_kind", sa.Text, nullable=False),
        sa.Column("from_person", sa.Boolean, nullable=False),
        sa.Column("at_once", sa.Boolean, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("dedupe_key", sa.Text),
        sa.Column("arrived_at", TIME, nullable=False),
        sa.Column("served_at", TIME),
        sa.Column("served_by", ID),
        sa.PrimaryKeyConstraint("user_id", "id", name=op.f("pk_inbox")),
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
        sa.Column("user_id", ID, nullable=False),
        sa.Column("id", ID, nullable=False),
        *_of_a_conversation("questions"),
        sa.Column("purpose", sa.Text, nullable=False),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("prompt", sa.Text, nullable=False),
        sa.Column("options", sa.Text, nullable=False),
        sa.Column("binds_to", sa.Text, nullable=False),
        sa.Column("run_id", ID),
        sa.Column("run_kind", sa.Text, nullable=False),
        sa.Column("asked_at", TIME, nullable=False),
        sa.Column("remind_at", TIME),
        sa.Column("reminders", sa.Integer, nullable=False),
        sa.Column("expires_at", TIME),
        sa.Column("default_answer", sa.Text),
        sa.Column("closed_at", TIME),
        sa.Column("answer", sa.Text),
        sa.PrimaryKeyConstraint("user_id", "id", name=op.f("pk_questions")),
    )
    op.create_index(
        "ix_questions_expires_at", "questions", ["expires_at"], **_where("closed_at IS NULL")
    )
    op.create_index("ix_questions_of_conversation", "questions", ["user_id", "conversation_id"])
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
        sa.Column("user_id", ID, nullable=False),
        sa.Column("id", ID, nullable=False),
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
        sa.Column("profile", sa.Text),
        sa.Column("escalated_from", sa.Text),
        sa.Column("drafted_at", TIME),
        sa.PrimaryKeyConstraint("user_id", "id", name=op.f("pk_runs")),
        sa.CheckConstraint(
            "status IN ('queued', 'running', 'success', 'failure', 'skipped', 'cancelled')",
            name=op.f("ck_runs_status"),
        ),
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
    op.create_index("ix_runs_ended_at", "runs", ["ended_at"])
    op.create_index("ix_runs_of_conversation", "runs", ["user_id", "conversation_id", "started_at"])
    op.create_index(
        "ix_runs_of_user", "runs", ["user_id", "ended_at"], **_where("ended_at IS NOT NULL")
    )
    op.create_index("ix_runs_queued", "runs", ["wait_until"], **_where("status = 'queued'"))
    op.create_index(
        "ix_runs_queued_of_user", "runs", ["user_id", "wait_until"], **_where("status = 'queued'")
    )


def _create_outcomes() -> None:
    op.create_table(
        "outcomes",
        sa.Column("user_id", ID, nullable=False),
        sa.Column("run_id", ID, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("committed_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("user_id", "run_id", "epoch", name=op.f("pk_outcomes")),
        sa.ForeignKeyConstraint(
            ["user_id", "run_id"],
            ["runs.user_id", "runs.id"],
            name=op.f("fk_outcomes_user_id_run_id"),
            ondelete="CASCADE",
        ),
    )


def _create_waits() -> None:
    op.create_table(
        "waits",
        sa.Column("user_id", ID, nullable=False),
        sa.Column("run_id", ID, nullable=False),
        sa.Column("job_id", ID, nullable=False),
        *_of_a_conversation("waits"),
        sa.Column("settled_at", TIME),
        sa.PrimaryKeyConstraint("user_id", "run_id", "job_id", name=op.f("pk_waits")),
        sa.ForeignKeyConstraint(
            ["user_id", "run_id"],
            ["runs.user_id", "runs.id"],
            name=op.f("fk_waits_user_id_run_id"),
            ondelete="CASCADE",
        ),
    )
    op.create_index("ix_waits_of_conversation", "waits", ["user_id", "conversation_id"])
    op.create_index("ix_waits_of_job", "waits", ["user_id", "job_id"])


def _create_tool_calls() -> None:
    op.create_table(
        "tool_calls",
        sa.Column("user_id", ID, nullable=False),
        sa.Column("id", ID, nullable=False),
        *_of_a_conversation("tool_calls"),
        sa.Column("run_id", ID, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("server", sa.Text, nullable=False),
        sa.Column("tool", sa.Text, nullable=False),
        sa.Column("arguments", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("read_only", sa.Boolean, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("grant_id", ID),
        sa.Column("result", sa.Text),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("ended_at", TIME),
        sa.Column("definition", sa.Text, nullable=False, server_default=""),
        sa.Column("failed", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.PrimaryKeyConstraint("user_id", "id", name=op.f("pk_tool_calls")),
        sa.CheckConstraint(
            "state IN ('started', 'done', 'unknown')", name=op.f("ck_tool_calls_state")
        ),
    )
    op.create_index(
        "ix_tool_calls_of_conversation", "tool_calls", ["user_id", "conversation_id", "started_at"]
    )
    op.create_index("ix_tool_calls_of_run", "tool_calls", ["user_id", "run_id"])


def _create_receipts() -> None:
    op.create_table(
        "receipts",
        sa.Column("user_id", ID, nullable=False),
        sa.Column("id", ID, nullable=False),
        sa.Column("conversation_id", ID, nullable=False),
        sa.Column("run_id", ID, nullable=False),
        sa.Column("server", sa.Text, nullable=False),
        sa.Column("tool", sa.Text, nullable=False),
        sa.Column("arguments", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("failed", sa.Boolean, nullable=False),
        sa.Column("grant_id", ID),
        sa.Column("result", sa.Text),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("ended_at", TIME),
        sa.PrimaryKeyConstraint("user_id", "id", name=op.f("pk_receipts")),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_receipts_user_id"), ondelete="CASCADE"
        ),
    )
    op.create_index("ix_receipts_of_user", "receipts", ["user_id", "started_at"])


def _create_grants() -> None:
    op.create_table(
        "grants",
        sa.Column("user_id", ID, nullable=False),
        sa.Column("id", ID, nullable=False),
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
        sa.PrimaryKeyConstraint("user_id", "id", name=op.f("pk_grants")),
    )
    op.create_index(
        "ix_grants_good", "grants", ["user_id", "given_at", "id"], **_where("ended_at IS NULL")
    )
    op.create_index("ix_grants_of_conversation", "grants", ["user_id", "conversation_id"])


def _create_session_entries() -> None:
    op.create_table(
        "session_entries",
        sa.Column("user_id", ID, nullable=False),
        sa.Column("number", sa.BigInteger, sa.Identity(), nullable=False),
        *_of_a_conversation("session_entries"),
        sa.Column("session_id", ID, nullable=False),
        sa.Column("run_id", ID, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("entry", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("user_id", "number", name=op.f("pk_session_entries")),
    )
    op.create_index(
        "ix_session_entries_of_session",
        "session_entries",
        ["user_id", "conversation_id", "session_id", "number"],
    )


def _create_notices() -> None:
    op.create_table(
        "notices",
        sa.Column("user_id", ID, nullable=False),
        sa.Column("number", sa.BigInteger, sa.Identity(), nullable=False),
        sa.Column("id", ID, nullable=False),
        *_of_a_conversation("notices"),
        sa.Column("run_id", ID),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("question_id", ID),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("seen_at", TIME),
        sa.PrimaryKeyConstraint("user_id", "number", name=op.f("pk_notices")),
        sa.UniqueConstraint("user_id", "id", name=op.f("uq_notices_user_id_id")),
    )
    op.create_index("ix_notices_of_conversation", "notices", ["user_id", "conversation_id"])
    op.create_index(
        "ix_notices_unseen", "notices", ["user_id", "number"], **_where("seen_at IS NULL")
    )


def _create_deliveries() -> None:
    op.create_table(
        "deliveries",
        sa.Column("user_id", ID, nullable=False),
        sa.Column("number", sa.BigInteger, sa.Identity(), nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        *_of_a_conversation("deliveries"),
        sa.Column("notice_id", ID, nullable=False),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("part", sa.Integer, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("not_before", TIME, nullable=False),
        sa.Column("leased_until", sa.BigInteger),
        sa.Column("lease", sa.BigInteger, nullable=False),
        sa.Column("provider_id", ID),
        sa.Column("error", sa.Text),
        sa.PrimaryKeyConstraint("user_id", "number", name=op.f("pk_deliveries")),
        sa.CheckConstraint(
            "state IN ('waiting', 'sending', 'sent', 'failed')", name=op.f("ck_deliveries_state")
        ),
        sa.UniqueConstraint("user_id", "key", name=op.f("uq_deliveries_user_id_key")),
    )
    op.create_index("ix_deliveries_of_conversation", "deliveries", ["user_id", "conversation_id"])
    op.create_index(
        "ix_deliveries_to_send",
        "deliveries",
        ["not_before"],
        **_where("state IN ('waiting', 'sending')"),
    )


def _create_events() -> None:
    op.create_table(
        "events",
        sa.Column("user_id", ID, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("conversation_id", ID),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("user_id", "number", name=op.f("pk_events")),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_events_user_id"), ondelete="CASCADE"
        ),
    )
    op.create_index("ix_events_created_at", "events", ["created_at"])


def _create_spend() -> None:
    op.create_table(
        "spend",
        sa.Column("user_id", ID, nullable=False),
        sa.Column("number", sa.BigInteger, sa.Identity(), nullable=False),
        sa.Column("conversation_id", ID, nullable=False),
        sa.Column("root_id", ID, nullable=False),
        sa.Column("run_id", ID, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("micros", sa.BigInteger, nullable=False),
        sa.Column("tokens", sa.BigInteger, nullable=False),
        sa.Column("priced", sa.Boolean, nullable=False),
        sa.Column("spent_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("user_id", "number", name=op.f("pk_spend")),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_spend_user_id"), ondelete="CASCADE"
        ),
    )
    op.create_index("ix_spend_of_root", "spend", ["user_id", "root_id"])
    op.create_index("ix_spend_of_run", "spend", ["user_id", "run_id"])
    op.create_index("ix_spend_of_user", "spend", ["user_id", "spent_at"])


def _create_totals() -> None:
    op.create_table(
        "totals",
        sa.Column("user_id", ID, nullable=False),
        sa.Column("what", sa.Text, nullable=False),
        sa.Column("micros", sa.BigInteger, nullable=False),
        sa.Column("tokens", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("user_id", "what", name=op.f("pk_totals")),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_totals_user_id"), ondelete="CASCADE"
        ),
    )


def _create_allowances() -> None:
    op.create_table(
        "allowances",
        sa.Column("user_id", ID, nullable=False),
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("root_id", ID, nullable=False),
        sa.Column("micros", sa.BigInteger),
        sa.Column("tokens", sa.BigInteger),
        sa.PrimaryKeyConstraint("user_id", "scope", "root_id", name=op.f("pk_allowances")),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_allowances_user_id"), ondelete="CASCADE"
        ),
    )


def _create_memories() -> None:
    op.create_table(
        "memories",
        sa.Column("user_id", ID, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("conversation_id", ID),
        sa.Column("outside", sa.Boolean, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("user_id", "key", name=op.f("pk_memories")),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_memories_user_id"), ondelete="CASCADE"
        ),
    )
    op.create_index(
        "ix_memories_newest",
        "memories",
        ["user_id", "updated_at"],
        **_where("NOT outside", sqlite="outside = 0"),
    )


def _create_memory_words() -> None:
    op.create_table(
        "memory_words",
        sa.Column("user_id", ID, nullable=False),
        sa.Column("word", EXACT, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("user_id", "word", "key", name=op.f("pk_memory_words")),
        sa.ForeignKeyConstraint(
            ["user_id", "key"],
            ["memories.user_id", "memories.key"],
            name=op.f("fk_memory_words_user_id_key"),
            ondelete="CASCADE",
        ),
    )
    op.create_index("ix_memory_words_of_memory", "memory_words", ["user_id", "key"])
