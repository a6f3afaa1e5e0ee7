"""Settles a database that was restored from a copy, in one transaction.

The work that was done after the copy was made is unknown. So no work in the copy resumes by itself,
no delivery is sent, and all users are signed out.
"""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import (
    Connection,
    Row,
    bindparam,
    delete,
    exists,
    literal,
    or_,
    select,
    text,
    update,
)

from backburner.core import transitions
from backburner.core.ids import ConversationId, UserId
from backburner.core.question import FIRST_REMINDER
from backburner.store.dialect import number_from, upsert
from backburner.store.tables import (
    attempts,
    conversations,
    credentials,
    deliveries,
    grants,
    inbox,
    install,
    is_open,
    is_queued,
    is_unsent,
    is_unserved,
    numbered,
    questions,
    runs,
)
from backburner.store.tx import Tx
from backburner.store.types import to_micros

#: The key in `install` with the time of the last restore.
RESTORED = "restored_at"
_REASON = "The database was put back from a copy."

_has_items = exists().where(
    inbox.c.user_id == conversations.c.user_id,
    inbox.c.conversation_id == conversations.c.id,
    is_unserved,
)
_has_queued_run = exists().where(
    runs.c.user_id == conversations.c.user_id,
    runs.c.conversation_id == conversations.c.id,
    is_queued,
)
_select_active = (
    select(conversations.c.user_id, conversations.c.id, _has_items.label("has_items"))
    .where(
        conversations.c.status != text("'archived'"),
        or_(
            conversations.c.schedule.is_not(None) & conversations.c.pause_reason.is_(None),
            _has_items,
            _has_queued_run,
        ),
    )
    .order_by(conversations.c.user_id, conversations.c.id)
)
_increase_epochs = update(conversations).values(epoch=conversations.c.epoch + 1)
_end_credentials = (
    update(credentials).where(credentials.c.ended_at.is_(None)).values(ended_at=bindparam("at"))
)
_delete_attempts = delete(attempts)
#: A grant for one exact call may have been used after the copy was made.
_end_single_grants = (
    update(grants)
    .where(grants.c.call.is_not(None), grants.c.ended_at.is_(None))
    .values(ended_at=bindparam("at"))
)
_fail_deliveries = (
    update(deliveries)
    .where(is_unsent)
    .values(state="failed", leased_until=None, error=literal(_REASON))
)
#: Questions get no default answers, and users are not reminded of all of them at once.
_stop_expiry = update(questions).where(is_open).values(expires_at=None, default_answer=None)
_remind_later = (
    update(questions)
    .where(is_open, questions.c.remind_at < bindparam("later"))
    .values(remind_at=bindparam("later"))
)


@dataclass(frozen=True, slots=True)
class Restored:
    #: Conversations whose work is paused now.
    paused: int
    #: Sessions and tokens that were ended.
    signed_out: int


def settle(tx: Tx) -> Restored:
    while tx.queue.rescue(all_of_them=True) is not None:
        pass
    rows = tx.connection.execute(_select_active).all()
    paused = sum([_restore(tx, row) for row in rows])
    return Restored(paused, _end_everything(tx.connection, tx.now))


def _restore(tx: Tx, row: Row[tuple[str, str, bool]]) -> bool:
    """Restore one conversation, and return whether its work is paused now."""
    before = tx.conversations.lock(UserId(row.user_id), ConversationId(row.id))
    step = transitions.restore(before, now=tx.now, unserved=bool(row.has_items))
    tx.conversations.save(step)
    return before.pause_reason != step.conversation.pause_reason


def _end_everything(connection: Connection, now: datetime) -> int:
    connection.execute(_increase_epochs)
    connection.execute(_delete_attempts)
    connection.execute(_end_single_grants, {"at": now})
    # After the steps: their notices are shown here, and sent nowhere.
    connection.execute(_fail_deliveries)
    connection.execute(_stop_expiry)
    connection.execute(_remind_later, {"later": now + FIRST_REMINDER})
    # Clients may have seen numbers given after the copy was made: none of them is given again, even
    # if the same copy is restored twice.
    for table in numbered:
        number_from(connection, table, to_micros(now))
    upsert(connection, install, {"key": RESTORED, "value": now.isoformat()})
    return connection.execute(_end_credentials, {"at": now}).rowcount
