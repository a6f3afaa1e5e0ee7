"""All tables on one page.

A row that belongs to somebody has its owner in its key, and whatever a conversation owns goes with
it. JSON is kept as text: both databases read and write it whole.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    and_,
    false,
    text,
)
from sqlalchemy.schema import SchemaItem

from backburner.store.types import Counter, Length, Time

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _of_a_conversation() -> tuple[SchemaItem, ...]:
    """Make what every row has that belongs to a conversation, and so to its owner."""
    return (
        Column("user_id", Text, nullable=False),
        Column("conversation_id", Text, nullable=False),
        ForeignKeyConstraint(
            ["user_id", "conversation_id"],
            ["conversations.user_id", "conversations.id"],
            ondelete="CASCADE",
        ),
    )


users = Table(
    "users",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False, server_default=""),
    Column("zone", Text, nullable=False, server_default="UTC"),
    Column("paused", Boolean, nullable=False, server_default=false()),
    #: When background work of theirs was last taken up: whoever has waited longest comes first.
    Column("served_at", Time, nullable=False),
    Column("created_at", Time, nullable=False),
    #: What they sign in with; the owner of a fresh install has neither.
    Column("login", Text),
    Column("password", Text),
    Column("role", Text, nullable=False, server_default="member"),
    Column("disabled_at", Time),
    #: What happened since then they have not been told yet.
    Column("away_since", Time),
    Index("uq_users_login", "login", unique=True),
)

credentials = Table(
    "credentials",
    metadata,
    #: Of the secret, which is not kept.
    Column("digest", Text, primary_key=True),
    Column("id", Text, nullable=False),
    Column("user_id", Text, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False, server_default=""),
    Column("scopes", Text, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("expires_at", Time),
    Column("used_at", Time),
    Column("ended_at", Time),
    Index("uq_credentials_id", "user_id", "id", unique=True),
)

#: How often somebody has tried in vain to sign in, by account and by address.
attempts = Table(
    "attempts",
    metadata,
    Column("key", Text, primary_key=True),
    Column("count", Integer, nullable=False),
    Column("since", Time, nullable=False),
)

#: What was answered to requests that carry a key, so that one that comes again is not done again.
answers = Table(
    "answers",
    metadata,
    Column("user_id", Text, ForeignKey("users.id", ondelete="CASCADE")),
    Column("key", Text),
    Column("request", Text, nullable=False),
    Column("status", Integer),
    Column("body", Text),
    Column("created_at", Time, nullable=False),
    PrimaryKeyConstraint("user_id", "key"),
    Index("ix_answers_created_at", "created_at"),
)
Index("ix_users_served_at", users.c.served_at)

conversations = Table(
    "conversations",
    metadata,
    Column("user_id", Text, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    Column("id", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time, nullable=False),
    Column("parent_id", Text),
    Column("batch", Text),
    Column("schedule", Text),
    Column("schedule_revision", Integer, nullable=False),
    #: The conversation that this one comes after, taken from its schedule.
    Column("after_id", Text),
    Column("next_run_at", Time),
    Column("settled_until", Time),
    Column("pause_reason", Text),
    Column("context", Text, nullable=False),
    Column("step", Text, nullable=False),
    Column("data", Text, nullable=False),
    Column("session_engine", Text),
    Column("session_id", Text),
    Column("ended_as", Text),
    Column("ended_at", Time),
    Column("resuming", Boolean, nullable=False),
    Column("resume_count", Integer, nullable=False),
    Column("retrieved_at", Time),
    Column("failures", Integer, nullable=False),
    Column("crashes", Integer, nullable=False),
    Column("again_count", Integer, nullable=False),
    Column("again_since", Time),
    Column("unattended_replies", Integer, nullable=False),
    Column("run_count", Integer, nullable=False),
    Column("max_runs", Integer),
    Column("last_run_at", Time),
    Column("run_timeout", Length),
    Column("tools", Text),
    Column("profile", Text),
    Column("on_repeated_failure", Text, nullable=False),
    Column("notify", Text, nullable=False),
    Column("last_result_hash", Text),
    Column("reports_to", Text, nullable=False),
    #: The turn: who has it, until when by the clock of leases, and its fencing number.
    Column("turn_run", Text),
    Column("turn_until", BigInteger),
    Column("epoch", BigInteger, nullable=False, server_default=text("0")),
    #: The name of the profile it works under; empty: the default where it runs.
    Column("engine", Text, nullable=False, server_default=""),
    Column("session_tokens", Integer, nullable=False, server_default=text("0")),
    Column("outside_read", Boolean, nullable=False, server_default=false()),
    CheckConstraint(
        "status IN ('active', 'background', 'waiting_input', 'archived')", name="status"
    ),
    CheckConstraint("(turn_run IS NULL) = (turn_until IS NULL)", name="turn"),
)
_free = conversations.c.turn_run.is_(None)
is_due_some_time = and_(
    conversations.c.status == text("'background'"),
    conversations.c.next_run_at.is_not(None),
    _free,
)
for _name, _columns in {
    "ix_conversations_due": (conversations.c.next_run_at,),
    "ix_conversations_due_of_user": (conversations.c.user_id, conversations.c.next_run_at),
}.items():
    Index(_name, *_columns, postgresql_where=is_due_some_time, sqlite_where=is_due_some_time)
Index(
    "ix_conversations_turn",
    conversations.c.turn_until,
    postgresql_where=conversations.c.turn_run.is_not(None),
    sqlite_where=conversations.c.turn_run.is_not(None),
)
Index(
    "ix_conversations_listed",
    conversations.c.user_id,
    conversations.c.updated_at,
    conversations.c.id,
)
for _column in (conversations.c.parent_id, conversations.c.after_id):
    Index(
        f"ix_conversations_{_column.name}",
        conversations.c.user_id,
        _column,
        postgresql_where=_column.is_not(None),
        sqlite_where=_column.is_not(None),
    )

_is_parked = conversations.c.pause_reason == text("'allowance'")
Index(
    "ix_conversations_parked",
    conversations.c.user_id,
    postgresql_where=_is_parked,
    sqlite_where=_is_parked,
)

messages = Table(
    "messages",
    metadata,
    Column("number", Counter, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    *_of_a_conversation(),
    Column("role", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("outside", Boolean, nullable=False),
    Column("run_id", Text),
    Column("created_at", Time, nullable=False),
    #: When the user took it back and said something else instead.
    Column("replaced_at", Time),
    Index("ix_messages_of_conversation", "user_id", "conversation_id", "number"),
    # A number that was given away never comes back, also not after a deletion.
    sqlite_autoincrement=True,
)

inbox = Table(
    "inbox",
    metadata,
    Column("id", Text, primary_key=True),
    *_of_a_conversation(),
    Column("kind", Text, nullable=False),
    Column("run_kind", Text, nullable=False),
    #: Somebody is waiting for the reply: it comes before everything else.
    Column("from_person", Boolean, nullable=False),
    Column("at_once", Boolean, nullable=False),
    Column("content", Text, nullable=False),
    #: Names an event of the outside world, so that it is taken once however often it is sent.
    Column("dedupe_key", Text),
    Column("arrived_at", Time, nullable=False),
    #: By whom: a run, or nobody where the work it was for is over.
    Column("served_at", Time),
    Column("served_by", Text),
    UniqueConstraint("user_id", "dedupe_key"),
)
unserved = inbox.c.served_at.is_(None)
for _name, _columns, _more in (
    ("ix_inbox_unserved", (inbox.c.user_id, inbox.c.conversation_id, inbox.c.arrived_at), None),
    ("ix_inbox_people", (inbox.c.arrived_at,), inbox.c.from_person),
    ("ix_inbox_work", (inbox.c.user_id, inbox.c.arrived_at), ~inbox.c.from_person),
):
    _where = unserved if _more is None else and_(unserved, _more)
    Index(_name, *_columns, postgresql_where=_where, sqlite_where=_where)

questions = Table(
    "questions",
    metadata,
    Column("id", Text, primary_key=True),
    *_of_a_conversation(),
    Column("purpose", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("prompt", Text, nullable=False),
    Column("options", Text, nullable=False),
    Column("binds_to", Text, nullable=False),
    Column("run_id", Text),
    Column("run_kind", Text, nullable=False),
    Column("asked_at", Time, nullable=False),
    Column("remind_at", Time),
    Column("reminders", Integer, nullable=False),
    Column("expires_at", Time),
    Column("default_answer", Text),
    #: Answered, or withdrawn where there is no answer.
    Column("closed_at", Time),
    Column("answer", Text),
    # For what goes when a conversation goes.
    Index("ix_questions_of_conversation", "user_id", "conversation_id"),
)
is_open = questions.c.closed_at.is_(None)
for _name, _columns in {
    "ix_questions_open": (questions.c.user_id, questions.c.conversation_id, questions.c.asked_at),
    "ix_questions_remind_at": (questions.c.remind_at,),
    "ix_questions_expires_at": (questions.c.expires_at,),
}.items():
    Index(_name, *_columns, postgresql_where=is_open, sqlite_where=is_open)

runs = Table(
    "runs",
    metadata,
    Column("id", Text, primary_key=True),
    *_of_a_conversation(),
    Column("kind", Text, nullable=False),
    Column("status", Text, nullable=False),
    #: It takes one of the places that background work may have.
    Column("unattended", Boolean, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("schedule_revision", Integer, nullable=False),
    Column("slot_at", Time),
    Column("started_at", Time, nullable=False),
    Column("ended_at", Time),
    #: A queued one goes on from then; none: it waits for something else.
    Column("wait_until", Time),
    Column("cancel_requested_at", Time),
    Column("worker", Text),
    Column("failure_kind", Text),
    Column("failure_message", Text),
    Column("result", Text),
    Column("tokens", BigInteger, nullable=False),
    #: What has been said so far, for those who watch from another process.
    Column("draft", Text),
    #: Of a skipped one: the slots it stands for.
    Column("skip_reason", Text),
    Column("gap_count", Integer),
    Column("gap_first_at", Time),
    Column("gap_last_at", Time),
    Column("gap_or_more", Boolean),
    #: Which profile did it, and in place of which.
    Column("profile", Text),
    Column("escalated_from", Text),
    CheckConstraint(
        "status IN ('queued', 'running', 'success', 'failure', 'skipped', 'cancelled')",
        name="status",
    ),
    Index("ix_runs_of_conversation", "user_id", "conversation_id", "started_at"),
    Index("ix_runs_ended_at", "ended_at"),
)
is_running, is_queued = runs.c.status == text("'running'"), runs.c.status == text("'queued'")
Index(
    "uq_runs_running",
    runs.c.user_id,
    runs.c.conversation_id,
    unique=True,
    postgresql_where=is_running,
    sqlite_where=is_running,
)
Index(
    "uq_runs_queued",
    runs.c.user_id,
    runs.c.conversation_id,
    runs.c.kind,
    unique=True,
    postgresql_where=is_queued,
    sqlite_where=is_queued,
)
# Only of those that have: whoever looks for what is under way has better ones.
_has_ended = runs.c.ended_at.is_not(None)
Index(
    "ix_runs_of_user",
    runs.c.user_id,
    runs.c.ended_at,
    postgresql_where=_has_ended,
    sqlite_where=_has_ended,
)
for _name, _columns in {
    "ix_runs_queued": (runs.c.wait_until,),
    "ix_runs_queued_of_user": (runs.c.user_id, runs.c.wait_until),
}.items():
    Index(_name, *_columns, postgresql_where=is_queued, sqlite_where=is_queued)

#: The proof that a run committed under an epoch.
outcomes = Table(
    "outcomes",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("epoch", BigInteger, primary_key=True),
    Column("committed_at", Time, nullable=False),
)

tool_calls = Table(
    "tool_calls",
    metadata,
    Column("id", Text, primary_key=True),
    *_of_a_conversation(),
    Column("run_id", Text, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("server", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("arguments", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("read_only", Boolean, nullable=False),
    Column("state", Text, nullable=False),
    Column("grant_id", Text),
    Column("result", Text),
    Column("started_at", Time, nullable=False),
    Column("ended_at", Time),
    #: Digest of how the tool was described to the agent.
    Column("definition", Text, nullable=False, server_default=""),
    #: It was made and went wrong.
    Column("failed", Boolean, nullable=False, server_default=false()),
    CheckConstraint("state IN ('started', 'done', 'unknown')", name="state"),
    Index("ix_tool_calls_of_run", "user_id", "run_id"),
)

#: The calls of conversations that were deleted, apart from those that only read.
receipts = Table(
    "receipts",
    metadata,
    Column("id", Text, primary_key=True),
    Column("user_id", Text, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("conversation_id", Text, nullable=False),
    Column("run_id", Text, nullable=False),
    Column("server", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("arguments", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("failed", Boolean, nullable=False),
    Column("grant_id", Text),
    Column("result", Text),
    Column("started_at", Time, nullable=False),
    Column("ended_at", Time),
    Index("ix_receipts_of_user", "user_id", "started_at"),
)

grants = Table(
    "grants",
    metadata,
    Column("id", Text, primary_key=True),
    *_of_a_conversation(),
    Column("server", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("definition", Text, nullable=False),
    Column("call", Text),
    Column("words", Text, nullable=False),
    Column("whole", Boolean, nullable=False),
    Column("expires_at", Time),
    Column("given_at", Time, nullable=False),
    #: Used up, or revoked.
    Column("ended_at", Time),
    Index("ix_grants_of_conversation", "user_id", "conversation_id"),
)

notices = Table(
    "notices",
    metadata,
    Column("number", Counter, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    *_of_a_conversation(),
    Column("run_id", Text),
    Column("kind", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("question_id", Text),
    Column("created_at", Time, nullable=False),
    Column("seen_at", Time),
    Index("ix_notices_of_user", "user_id", "number"),
    # A number that was given away never comes back, also not after a deletion.
    sqlite_autoincrement=True,
)

#: One row for each part that goes out on a channel.
deliveries = Table(
    "deliveries",
    metadata,
    Column("number", Counter, primary_key=True),
    #: The same part of the same notice is never put in twice.
    Column("key", Text, nullable=False, unique=True),
    *_of_a_conversation(),
    Column("notice_id", Text, nullable=False),
    Column("channel", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("part", Integer, nullable=False),
    Column("text", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("not_before", Time, nullable=False),
    Column("leased_until", BigInteger),
    Column("lease", BigInteger, nullable=False),
    Column("provider_id", Text),
    Column("error", Text),
    CheckConstraint("state IN ('waiting', 'sending', 'sent', 'failed')", name="state"),
    # For what goes when a conversation goes.
    Index("ix_deliveries_of_conversation", "user_id", "conversation_id"),
)
to_send = text("state IN ('waiting', 'sending')")
Index(
    "ix_deliveries_to_send",
    deliveries.c.not_before,
    postgresql_where=to_send,
    sqlite_where=to_send,
)

#: What was spent, for ever: receipts outlive the conversation they are for.
spend = Table(
    "spend",
    metadata,
    Column("number", Counter, primary_key=True),
    Column("user_id", Text, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("conversation_id", Text, nullable=False),
    #: The conversation at the top of the tree, whose allowance counts.
    Column("root_id", Text, nullable=False),
    Column("run_id", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("micros", BigInteger, nullable=False),
    Column("tokens", BigInteger, nullable=False),
    Column("priced", Boolean, nullable=False),
    Column("spent_at", Time, nullable=False),
    Index("ix_spend_of_user", "user_id", "spent_at"),
    Index("ix_spend_of_root", "user_id", "root_id"),
)

#: The sums of what was spent, by what they are for: the user, one of their days, a conversation
#: with all it handed out, a run. Kept together with the rows they are the sums of.
totals = Table(
    "totals",
    metadata,
    Column("user_id", Text, ForeignKey("users.id", ondelete="CASCADE")),
    Column("what", Text),
    Column("micros", BigInteger, nullable=False),
    Column("tokens", BigInteger, nullable=False),
    PrimaryKeyConstraint("user_id", "what"),
)

#: What may be spent, where it was said; elsewhere the settings say it.
allowances = Table(
    "allowances",
    metadata,
    Column("user_id", Text, ForeignKey("users.id", ondelete="CASCADE")),
    Column("scope", Text),
    #: Of a conversation's; empty for the others.
    Column("root_id", Text),
    Column("micros", BigInteger),
    Column("tokens", BigInteger),
    PrimaryKeyConstraint("user_id", "scope", "root_id"),
)

#: The key in `install` that is there while all background work stands still.
PAUSED = "paused"
#: What is so for everybody here.
install = Table(
    "install",
    metadata,
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

#: The epoch of entries that are known to have been committed, whose run is no longer there.
KEPT = 0
#: An agent's memory of a conversation, entry by entry; those of a run count once it committed.
session_entries = Table(
    "session_entries",
    metadata,
    Column("number", Counter, primary_key=True),
    *_of_a_conversation(),
    Column("session_id", Text, nullable=False),
    Column("run_id", Text, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("entry", Text, nullable=False),
    Index("ix_session_entries_of_session", "user_id", "conversation_id", "session_id", "number"),
)

memories = Table(
    "memories",
    metadata,
    Column("user_id", Text, ForeignKey("users.id", ondelete="CASCADE")),
    Column("key", Text),
    Column("text", Text, nullable=False),
    #: Where it came from, and whether others' words may be in it.
    Column("conversation_id", Text),
    Column("outside", Boolean, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time, nullable=False),
    PrimaryKeyConstraint("user_id", "key"),
)

#: What changed, for those who watch.
events = Table(
    "events",
    metadata,
    Column("number", Counter, primary_key=True),
    Column("user_id", Text, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("conversation_id", Text),
    Column("kind", Text, nullable=False),
    Column("created_at", Time, nullable=False),
    Index("ix_events_of_user", "user_id", "number"),
    Index("ix_events_created_at", "created_at"),
    # A number that was given away never comes back, also not after a deletion.
    sqlite_autoincrement=True,
)
