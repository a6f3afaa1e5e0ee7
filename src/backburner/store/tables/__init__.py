"""All tables. The key of a row that belongs to a user begins with its owner.

That column will tell in which of several databases a user lives. The exceptions are the tables of
the install as a whole: users, credentials, sign-in attempts and the settings of the install.

Rows of a conversation are deleted with it. JSON is stored as text: both databases read and write it
as a whole.
"""

from backburner.store.tables.base import metadata
from backburner.store.tables.conversations import (
    conversations,
    inbox,
    is_discovery,
    is_due_some_time,
    is_heard,
    is_open,
    is_open_job,
    messages,
    questions,
    unserved,
)
from backburner.store.tables.people import (
    PAUSED,
    answers,
    attempts,
    counters,
    credentials,
    install,
    memories,
    memory_words,
    users,
)
from backburner.store.tables.spending import allowances, spend, totals
from backburner.store.tables.telling import deliveries, events, notices, to_send, unseen
from backburner.store.tables.work import (
    KEPT,
    grants,
    is_good,
    is_queued,
    is_running,
    outcomes,
    receipts,
    runs,
    session_entries,
    tool_calls,
    waits,
)

#: Tables whose rows are numbered per user.
numbered = (messages, notices, deliveries, events, spend, session_entries)

__all__ = [
    "KEPT",
    "PAUSED",
    "allowances",
    "answers",
    "attempts",
    "conversations",
    "counters",
    "credentials",
    "deliveries",
    "events",
    "grants",
    "inbox",
    "install",
    "is_discovery",
    "is_due_some_time",
    "is_good",
    "is_heard",
    "is_open",
    "is_open_job",
    "is_queued",
    "is_running",
    "memories",
    "memory_words",
    "messages",
    "metadata",
    "notices",
    "numbered",
    "outcomes",
    "questions",
    "receipts",
    "runs",
    "session_entries",
    "spend",
    "to_send",
    "tool_calls",
    "totals",
    "unseen",
    "unserved",
    "users",
    "waits",
]
