"""Conversations, their messages, inbox and questions."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    and_,
    false,
    or_,
    text,
)

from backburner.store.tables.base import (
    conversation_reference,
    metadata,
    number,
    owner,
    owner_of_conversation,
    partial_index,
)
from backburner.store.types import Duration, Id, Time

conversations = Table(
    "conversations",
    metadata,
    owner(),
    Column("id", Id, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time, nullable=False),
    Column("parent_id", Id),
    Column("batch", Id),
    Column("schedule", Text),
    Column("schedule_revision", Integer, nullable=False),
    #: The conversation after which this one is scheduled.
    Column("after_id", Id),
    Column("next_run_at", Time),
    Column("settled_until", Time),
    Column("pause_reason", Text),
    Column("context", Text, nullable=False),
    Column("step", Text, nullable=False),
    Column("data", Text, nullable=False),
    Column("session_profile", Text),
    Column("session_id", Id),
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
    Column("run_timeout", Duration),
    Column("tools", Text),
    #: The profile that was requested by name; none: the routes decide.
    Column("requested_profile", Text),
    Column("on_repeated_failure", Text, nullable=False),
    Column("notify", Text, nullable=False),
    Column("last_result_hash", Text),
    Column("reports_to", Text, nullable=False),
    #: The turn: the run that holds it, the end of its lease by the lease clock, and its epoch.
    Column("turn_run", Id),
    Column("turn_until", BigInteger),
    Column("epoch", BigInteger, nullable=False, server_default=text("0")),
    #: The profile it runs under; empty: the default of the worker.
    Column("profile", Text, nullable=False, server_default=""),
    Column("session_tokens", Integer, nullable=False, server_default=text("0")),
    #: The agent's session has read outside text.
    Column("outside_read", Boolean, nullable=False, server_default=false()),
    #: Of a job: the run and message that started it, and the root of its tree.
    Column("parent_run_id", Id),
    Column("parent_message_id", Id),
    Column("root_id", Id),
    Column("keeps_only", Boolean, nullable=False, server_default=false()),
    #: What of the user's it is restricted to, in words; none: nothing of it is withheld.
    Column("uses", Text),
    #: Where it works, and the id of the machine; empty: all machines share the folder.
    Column("folder", Text),
    Column("folder_machine", Text),
    Column("folder_read_only", Boolean, nullable=False, server_default=false()),
    #: The agent that was requested by name.
    Column("agent", Text),
    #: Messages since then got replies of another profile, and are not in the session.
    Column("session_missed_since", Time),
    #: There is a summary of its earlier session.
    Column("summarized", Boolean, nullable=False, server_default=false()),
    #: Parts of the state with outside text, and until when marked text is left out.
    Column("outside_state", Text, nullable=False, server_default="[]"),
    Column("fresh_at", Time),
    #: The profile of the next reply, and of the next background run, where messages ask for one.
    Column("reply_profile", Text, nullable=False, server_default=""),
    Column("work_profile", Text, nullable=False, server_default=""),
    #: The names of the connections that it may use, as JSON; none: those of its kind.
    Column("connections", Text),
    #: The number of the last message that its owner has seen, and when they looked.
    Column("seen_number", BigInteger, nullable=False, server_default=text("0")),
    Column("seen_at", Time),
    Column("pinned_at", Time),
    #: When its owner deleted it; until it is removed, nothing shows it. And the conversation that
    #: was deleted, with which it goes: itself, or one that it is below.
    Column("deleted_at", Time),
    Column("deleted_with", Id),
    Column("was_archived", Boolean, nullable=False, server_default=false()),
    #: The run whose agent set up its work, and nobody has changed it since.
    Column("set_up_by", Id),
    CheckConstraint(
        "status IN ('active', 'background', 'waiting_input', 'archived')", name="status"
    ),
    CheckConstraint("(turn_run IS NULL) = (turn_until IS NULL)", name="turn"),
)
#: Marks of the owner, which only statements of their own change, and no step.
MARKS = frozenset(
    {"seen_number", "seen_at", "pinned_at", "deleted_at", "deleted_with", "was_archived"}
)
#: Columns that a step leaves as they are.
NEVER_IN_A_STEP = MARKS | {"user_id", "id", "created_at", "turn_run", "turn_until", "epoch"}
is_scheduled = and_(
    conversations.c.status == text("'background'"),
    conversations.c.next_run_at.is_not(None),
    conversations.c.turn_run.is_(None),
)
for _name, _columns in {
    "ix_conversations_due": (conversations.c.next_run_at,),
    "ix_conversations_due_of_user": (conversations.c.user_id, conversations.c.next_run_at),
}.items():
    partial_index(_name, *_columns, where=is_scheduled)
partial_index(
    "ix_conversations_turn", conversations.c.turn_until, where=conversations.c.turn_run.is_not(None)
)
partial_index(
    "ix_conversations_due_in_folder",
    conversations.c.next_run_at,
    where=and_(is_scheduled, conversations.c.folder.is_not(None)),
)
partial_index(
    "ix_conversations_of_folder",
    conversations.c.user_id,
    conversations.c.folder,
    conversations.c.id,
    where=conversations.c.folder.is_not(None),
)
#: One run at a time writes in a folder.
partial_index(
    "uq_conversations_folder_in_use",
    conversations.c.user_id,
    conversations.c.folder,
    conversations.c.folder_machine,
    where=and_(
        conversations.c.turn_run.is_not(None),
        conversations.c.folder.is_not(None),
        ~conversations.c.folder_read_only,
    ),
    unique=True,
)
for _column in (conversations.c.parent_id, conversations.c.after_id):
    partial_index(
        f"ix_conversations_{_column.name}",
        conversations.c.user_id,
        _column,
        where=_column.is_not(None),
    )

for _name, _second, _where in (
    ("at_work", conversations.c.kind, conversations.c.schedule.is_not(None)),
    ("titled", conversations.c.title, conversations.c.kind == text("'task'")),
    ("dismissed", conversations.c.ended_at, conversations.c.ended_as == text("'dismissed'")),
):
    partial_index(f"ix_conversations_{_name}", conversations.c.user_id, _second, where=_where)
is_open_job = and_(
    conversations.c.root_id.is_not(None),
    or_(conversations.c.schedule.is_not(None), conversations.c.status == text("'waiting_input'")),
)
partial_index(
    "ix_conversations_open_jobs",
    conversations.c.user_id,
    conversations.c.root_id,
    where=is_open_job,
)

is_job, is_no_job = conversations.c.kind == text("'job'"), conversations.c.kind != text("'job'")
for _name, _where in {"jobs": is_job, "listed": is_no_job}.items():
    partial_index(
        f"ix_conversations_{_name}",
        conversations.c.user_id,
        conversations.c.updated_at,
        conversations.c.id,
        where=_where,
    )

#: Its owner has not deleted it. One that they have is archived, and without work.
is_shown = conversations.c.deleted_at.is_(None)
partial_index(
    "ix_conversations_deleted",
    conversations.c.deleted_at,
    where=conversations.c.deleted_at.is_not(None),
)
is_pinned = conversations.c.pinned_at.is_not(None)
partial_index(
    "ix_conversations_pinned",
    conversations.c.user_id,
    conversations.c.updated_at,
    conversations.c.id,
    where=is_pinned,
)

_is_parked = conversations.c.pause_reason == text("'allowance'")
partial_index("ix_conversations_parked", conversations.c.user_id, where=_is_parked)

#: Discovery that is switched on.
is_discovery = and_(
    conversations.c.kind == text("'discovery'"), conversations.c.schedule.is_not(None)
)
partial_index(
    "ix_conversations_discovery", conversations.c.user_id, conversations.c.id, where=is_discovery
)

messages = Table(
    "messages",
    metadata,
    owner_of_conversation(),
    number(),
    Column("id", Id, nullable=False),
    *conversation_reference(),
    Column("role", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("outside", Boolean, nullable=False),
    Column("run_id", Id),
    Column("created_at", Time, nullable=False),
    #: When the user replaced it with another message.
    Column("replaced_at", Time),
    #: The question that it shows, in our own words.
    Column("shows", Id),
    #: Something that its owner does not know from what they did themselves.
    Column("news", Boolean, nullable=False, server_default=false()),
    #: The question whose end it records.
    Column("closes", Id),
    #: The files that it has, as JSON.
    Column("files", Text),
    UniqueConstraint("user_id", "id"),
    Index("ix_messages_of_conversation", "user_id", "conversation_id", "number"),
)
partial_index(
    "ix_messages_with_files",
    messages.c.user_id,
    messages.c.conversation_id,
    messages.c.number,
    where=messages.c.files.is_not(None),
)

#: Written by the user.
is_user_message = and_(messages.c.role == text("'user'"), messages.c.source == text("'chat'"))
partial_index("ix_messages_heard", messages.c.user_id, messages.c.number, where=is_user_message)

inbox = Table(
    "inbox",
    metadata,
    owner_of_conversation(),
    Column("id", Id, primary_key=True),
    *conversation_reference(),
    Column("kind", Text, nullable=False),
    Column("run_kind", Text, nullable=False),
    #: The user waits for the reply: it is claimed before everything else.
    Column("from_person", Boolean, nullable=False),
    Column("at_once", Boolean, nullable=False),
    Column("content", Text, nullable=False),
    #: Identifies an external event, so that it is accepted only once.
    Column("dedupe_key", Text),
    Column("arrived_at", Time, nullable=False),
    Column("served_at", Time),
    #: The run that served it; none: the work it was for was stopped.
    Column("served_by", Id),
    UniqueConstraint("user_id", "dedupe_key"),
)
is_unserved = inbox.c.served_at.is_(None)
for _name, _columns, _more in (
    ("ix_inbox_unserved", (inbox.c.user_id, inbox.c.conversation_id, inbox.c.arrived_at), None),
    ("ix_inbox_people", (inbox.c.arrived_at,), inbox.c.from_person),
    ("ix_inbox_work", (inbox.c.user_id, inbox.c.arrived_at), ~inbox.c.from_person),
):
    _where = is_unserved if _more is None else and_(is_unserved, _more)
    partial_index(_name, *_columns, where=_where)

partial_index(
    "ix_inbox_served_by",
    inbox.c.user_id,
    inbox.c.served_by,
    where=inbox.c.served_by.is_not(None),
)

questions = Table(
    "questions",
    metadata,
    owner_of_conversation(),
    Column("id", Id, primary_key=True),
    *conversation_reference(),
    Column("purpose", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("prompt", Text, nullable=False),
    Column("options", Text, nullable=False),
    Column("binds_to", Text, nullable=False),
    Column("run_id", Id),
    Column("run_kind", Text, nullable=False),
    Column("asked_at", Time, nullable=False),
    Column("remind_at", Time),
    Column("reminders", Integer, nullable=False),
    Column("expires_at", Time),
    Column("default_answer", Text),
    #: Answered; or withdrawn, if there is no answer.
    Column("closed_at", Time),
    Column("answer", Text),
    #: The kind, id and name of the credential with which it was answered.
    Column("answered_by", Text),
    Column("outside", Boolean, nullable=False, server_default=false()),
    Index("ix_questions_of_conversation", "user_id", "conversation_id", "asked_at", "id"),
)
is_open = questions.c.closed_at.is_(None)
for _name, _columns in {
    "ix_questions_open": (questions.c.user_id, questions.c.conversation_id, questions.c.asked_at),
    "ix_questions_remind_at": (questions.c.remind_at,),
    "ix_questions_expires_at": (questions.c.expires_at,),
}.items():
    partial_index(_name, *_columns, where=is_open)
