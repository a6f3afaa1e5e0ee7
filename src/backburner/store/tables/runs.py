"""Runs, tool calls, grants and sessions."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Index,
    Integer,
    Table,
    Text,
    false,
    text,
)

from backburner.store.tables.base import (
    conversation_reference,
    metadata,
    number,
    owner,
    owner_of_conversation,
    partial_index,
    run_reference,
)
from backburner.store.types import Id, Time

runs = Table(
    "runs",
    metadata,
    owner_of_conversation(),
    Column("id", Id, primary_key=True),
    *conversation_reference(),
    Column("kind", Text, nullable=False),
    Column("status", Text, nullable=False),
    #: It counts towards the cap on runs of its user.
    Column("unattended", Boolean, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("schedule_revision", Integer, nullable=False),
    Column("slot_at", Time),
    Column("started_at", Time, nullable=False),
    Column("ended_at", Time),
    #: A queued run resumes from then; none: it waits for something else.
    Column("wait_until", Time),
    Column("cancel_requested_at", Time),
    Column("worker", Text),
    Column("failure_kind", Text),
    Column("failure_message", Text),
    #: The summary as text, and the bare result as JSON.
    Column("result", Text),
    Column("tokens", BigInteger, nullable=False),
    #: The reply so far, for subscribers in other processes.
    Column("draft", Text),
    #: Of a skipped run: its slots.
    Column("skip_reason", Text),
    Column("gap_count", Integer),
    Column("gap_first_at", Time),
    Column("gap_last_at", Time),
    Column("gap_or_more", Boolean),
    #: The profile that ran it, and the one it was escalated from.
    Column("profile", Text),
    Column("escalated_from", Text),
    Column("drafted_at", Time),
    #: Of a run that was handed back: it meets trouble of its model that others do not.
    Column("own_trouble_since", Time),
    #: Of a run that was handed back: the first trouble since its model last answered it.
    Column("waits_since", Time),
    #: The result as the agent gave it, in JSON.
    Column("data", Text),
    #: Its session had read outside text.
    Column("outside", Boolean, nullable=False, server_default=false()),
    #: What it last said that it was doing.
    Column("progress", Text),
    Column("progress_at", Time),
    #: Of a run that was handed back: the connection that its owner has to sign in to.
    Column("connection_id", Id),
    #: What started it; none: it began before this was stored, or never started.
    Column("started_by", Text),
    #: When it was last taken up again.
    Column("resumed_at", Time),
    CheckConstraint(
        "status IN ('queued', 'running', 'success', 'failure', 'skipped', 'cancelled')",
        name="status",
    ),
    Index("ix_runs_of_conversation", "user_id", "conversation_id", "started_at"),
    Index("ix_runs_ended_at", "ended_at"),
)
is_running, is_queued = runs.c.status == text("'running'"), runs.c.status == text("'queued'")
partial_index(
    "uq_runs_running", runs.c.user_id, runs.c.conversation_id, where=is_running, unique=True
)
partial_index(
    "uq_runs_queued",
    runs.c.user_id,
    runs.c.conversation_id,
    runs.c.kind,
    where=is_queued,
    unique=True,
)
# Ended runs only: queries for active runs have better indexes.
_has_ended = runs.c.ended_at.is_not(None)
partial_index("ix_runs_of_user", runs.c.user_id, runs.c.ended_at, where=_has_ended)
partial_index("ix_runs_failed", runs.c.ended_at, where=text("status = 'failure'"))
for _name, _columns in {
    "ix_runs_queued": (runs.c.wait_until,),
    "ix_runs_queued_of_user": (runs.c.user_id, runs.c.wait_until),
}.items():
    partial_index(_name, *_columns, where=is_queued)

#: The proof that a run committed under an epoch, and what it was told in it.
outcomes = Table(
    "outcomes",
    metadata,
    owner_of_conversation(),
    *run_reference(),
    Column("epoch", BigInteger, primary_key=True),
    Column("committed_at", Time, nullable=False),
    #: When it was taken up; until the commit, it worked.
    Column("began_at", Time),
    #: Its prompt, shortened; none: nothing was asked of a model, or it is not known.
    Column("prompt", Text),
)

tool_calls = Table(
    "tool_calls",
    metadata,
    owner_of_conversation(),
    Column("id", Id, primary_key=True),
    *conversation_reference(),
    Column("run_id", Id, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("server", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("arguments", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("read_only", Boolean, nullable=False),
    Column("state", Text, nullable=False),
    Column("grant_id", Id),
    Column("result", Text),
    Column("started_at", Time, nullable=False),
    Column("ended_at", Time),
    #: Digest of the tool's definition as shown to the agent.
    Column("definition", Text, nullable=False, server_default=""),
    #: It was made and returned an error.
    Column("failed", Boolean, nullable=False, server_default=false()),
    #: What kept a command from reaching anything outside its folder.
    Column("cage", Text),
    #: The files that its result names, in JSON; none: it names no files.
    Column("files", Text),
    #: It may be made again even if it may have been made.
    Column("repeatable", Boolean, nullable=False, server_default=false()),
    #: The connection that it was made on.
    Column("connection_id", Id),
    CheckConstraint("state IN ('started', 'done', 'unknown')", name="state"),
    Index("ix_tool_calls_of_run", "user_id", "run_id"),
    Index("ix_tool_calls_of_conversation", "user_id", "conversation_id", "started_at"),
)

#: Calls that were made on connections; they outlive their runs, conversations and connections.
connection_calls = Table(
    "connection_calls",
    metadata,
    owner(),
    Column("id", Id, primary_key=True),
    Column("connection_id", Id, nullable=False),
    Column("server", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("conversation_id", Id, nullable=False),
    Column("run_id", Id, nullable=False),
    #: Of server, tool, definition and arguments.
    Column("digest", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("started_at", Time, nullable=False),
    Column("ended_at", Time, nullable=False),
    CheckConstraint("outcome IN ('done', 'failed', 'unknown')", name="outcome"),
    Index("ix_connection_calls_started_at", "started_at"),
    Index("ix_connection_calls_of_connection", "user_id", "connection_id", "started_at"),
)

#: The jobs that a queued run waits for, deleted when it resumes.
waits = Table(
    "waits",
    metadata,
    owner_of_conversation(),
    *run_reference(),
    Column("job_id", Id, primary_key=True),
    *conversation_reference(),
    Column("settled_at", Time),
    Index("ix_waits_of_job", "user_id", "job_id"),
    # For the cascade when a conversation is deleted.
    Index("ix_waits_of_conversation", "user_id", "conversation_id"),
)

#: The calls of deleted conversations, except those that only read.
receipts = Table(
    "receipts",
    metadata,
    owner(),
    Column("id", Id, primary_key=True),
    Column("conversation_id", Id, nullable=False),
    Column("run_id", Id, nullable=False),
    Column("server", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("arguments", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("failed", Boolean, nullable=False),
    Column("grant_id", Id),
    Column("result", Text),
    Column("started_at", Time, nullable=False),
    Column("ended_at", Time),
    Index("ix_receipts_of_user", "user_id", "started_at"),
)

grants = Table(
    "grants",
    metadata,
    owner_of_conversation(),
    Column("id", Id, primary_key=True),
    *conversation_reference(),
    Column("server", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("definition", Text, nullable=False),
    Column("call", Text),
    Column("words", Text, nullable=False),
    Column("expires_at", Time),
    Column("given_at", Time, nullable=False),
    #: Used up, or revoked.
    Column("ended_at", Time),
    #: Of its tool. No reference: ended grants stay when it is removed.
    Column("connection_id", Id),
    Index("ix_grants_of_conversation", "user_id", "conversation_id"),
)
is_unended = grants.c.ended_at.is_(None)
partial_index("ix_grants_good", grants.c.user_id, grants.c.given_at, grants.c.id, where=is_unended)

#: The epoch of committed entries whose run has been deleted.
COMMITTED_EPOCH = 0
#: Entries of sessions; those of a run count once it has committed.
session_entries = Table(
    "session_entries",
    metadata,
    owner_of_conversation(),
    number(),
    *conversation_reference(),
    Column("session_id", Id, nullable=False),
    Column("run_id", Id, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("entry", Text, nullable=False),
    Index("ix_session_entries_of_session", "user_id", "conversation_id", "session_id", "number"),
)

#: What the next session of a conversation starts from; JSON in `messages`.
summaries = Table(
    "summaries",
    metadata,
    owner_of_conversation(),
    *conversation_reference(is_key=True),
    Column("session_id", Id, nullable=False),
    Column("text", Text, nullable=False),
    #: Messages of the user that still bind: id and text of each.
    Column("messages", Text, nullable=False),
    #: Its session had read outside text.
    Column("outside", Boolean, nullable=False),
    Column("created_at", Time, nullable=False),
)
