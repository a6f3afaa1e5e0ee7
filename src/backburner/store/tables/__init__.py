"""All tables. The key of a row that belongs to a user begins with its owner.

That column will tell in which of several databases a user lives. The exceptions are the tables of
the install as a whole: users, credentials, sign-in attempts, outages, workers and settings.

Rows of a conversation are deleted with it. JSON is stored as text: both databases read and write it
as a whole.
"""

from backburner.store.tables.base import metadata
from backburner.store.tables.connections import connection_tools, connections
from backburner.store.tables.conversations import (
    MARKS,
    NEVER_IN_A_STEP,
    conversations,
    inbox,
    is_discovery,
    is_job,
    is_no_job,
    is_open,
    is_open_job,
    is_pinned,
    is_scheduled,
    is_shown,
    is_unserved,
    is_user_message,
    messages,
    questions,
)
from backburner.store.tables.files import file_pieces, file_uses, files, is_deleted, is_unused
from backburner.store.tables.notices import (
    deliveries,
    events,
    is_unseen,
    is_unsent,
    notices,
    outage_reports,
)
from backburner.store.tables.push import push_subscriptions
from backburner.store.tables.runs import (
    COMMITTED_EPOCH,
    connection_calls,
    grants,
    is_queued,
    is_running,
    is_unended,
    outcomes,
    receipts,
    runs,
    session_entries,
    summaries,
    tool_calls,
    waits,
)
from backburner.store.tables.secrets import data_keys, install_secrets, secrets
from backburner.store.tables.sign_ins import started_sign_ins, token_leases
from backburner.store.tables.spending import CEILING, allowances, spend, totals
from backburner.store.tables.users import (
    PAUSED,
    answers,
    attempts,
    audit,
    counters,
    credentials,
    folders,
    install,
    memories,
    memory_words,
    outages,
    users,
)
from backburner.store.tables.workers import workers

#: Tables whose rows are numbered per user.
numbered = (messages, notices, deliveries, events, spend, session_entries)

__all__ = [
    "CEILING",
    "COMMITTED_EPOCH",
    "MARKS",
    "NEVER_IN_A_STEP",
    "PAUSED",
    "allowances",
    "answers",
    "attempts",
    "audit",
    "connection_calls",
    "connection_tools",
    "connections",
    "conversations",
    "counters",
    "credentials",
    "data_keys",
    "deliveries",
    "events",
    "file_pieces",
    "file_uses",
    "files",
    "folders",
    "grants",
    "inbox",
    "install",
    "install_secrets",
    "is_deleted",
    "is_discovery",
    "is_job",
    "is_no_job",
    "is_open",
    "is_open_job",
    "is_pinned",
    "is_queued",
    "is_running",
    "is_scheduled",
    "is_shown",
    "is_unended",
    "is_unseen",
    "is_unsent",
    "is_unserved",
    "is_unused",
    "is_user_message",
    "memories",
    "memory_words",
    "messages",
    "metadata",
    "notices",
    "numbered",
    "outage_reports",
    "outages",
    "outcomes",
    "push_subscriptions",
    "questions",
    "receipts",
    "runs",
    "secrets",
    "session_entries",
    "spend",
    "started_sign_ins",
    "summaries",
    "token_leases",
    "tool_calls",
    "totals",
    "users",
    "waits",
    "workers",
]
