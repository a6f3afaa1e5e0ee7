"""Settles a database that was put back from a copy, in one transaction.

Nobody knows what was done after the copy was made. So nothing that the copy holds runs by itself,
nothing goes out, and nobody who was signed in still is.
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
    numbered,
    questions,
    runs,
    to_send,
    unserved,
)
from backburner.store.tx import Tx
from backburner.store.types import to_micros

#: The key in `install` that says when this was last done.
RESTORED = "restored_at"
_WHY = "The database was put back from a copy."

_waits = exists().where(
    inbox.c.user_id == conversations.c.user_id,
    inbox.c.conversation_id == conversations.c.id,
    unserved,
)
_is_handed_back = exists().where(
    runs.c.user_id == conversations.c.user_id,
    runs.c.conversation_id == conversations.c.id,
    is_queued,
)
_concerned = (
    select(conversations.c.user_id, conversations.c.id, _waits.label("waits"))
    .where(
        conversations.c.status != text("'archived'"),
        or_(
            conversations.c.schedule.is_not(None) & conversations.c.pause_reason.is_(None),
            _waits,
            _is_handed_back,
        ),
    )
    .order_by(conversations.c.user_id, conversations.c.id)
)
_new_epochs = update(conversations).values(epoch=conversations.c.epoch + 1)
_end_credentials = (
    update(credentials).where(credentials.c.ended_at.is_(None)).values(ended_at=bindparam("at"))
)
_forget_attempts = delete(attempts)
#: A yes to one exact call may have been used since.
_end_single_grants = (
    update(grants)
    .where(grants.c.call.is_not(None), grants.c.ended_at.is_(None))
    .values(ended_at=bindparam("at"))
)
_send_nothing = (
    update(deliveries).where(to_send).values(state="failed", leased_until=None, error=literal(_WHY))
)
#: Nobody answers but people, and they are not reminded of everything at once.
_expire_nothing = update(questions).where(is_open).values(expires_at=None, default_answer=None)
_remind_later = (
    update(questions)
    .where(is_open, questions.c.remind_at < bindparam("later"))
    .values(remind_at=bindparam("later"))
)


@dataclass(frozen=True, slots=True)
class Restored:
    #: Conversations whose work stands still now.
    paused: int
    #: Sign-ins and tokens that are good no longer.
    signed_out: int


def settle(tx: Tx) -> Restored:
    """Make sure that a database from a copy does nothing again by itself."""
    while tx.queue.rescue(all_of_them=True) is not None:
        pass
    found = tx.connection.execute(_concerned).all()
    paused = sum([_restore(tx, row) for row in found])
    return Restored(paused, _end_everything(tx.connection, tx.now))


def _restore(tx: Tx, row: Row[tuple[str, str, bool]]) -> bool:
    """Let one conversation wake up; say whether it has work that stands still now."""
    before = tx.conversations.lock(UserId(row.user_id), ConversationId(row.id))
    step = transitions.restore(before, now=tx.now, unserved=bool(row.waits))
    tx.conversations.save(step)
    return before.pause_reason != step.conversation.pause_reason


def _end_everything(connection: Connection, now: datetime) -> int:
    connection.execute(_new_epochs)
    connection.execute(_forget_attempts)
    connection.execute(_end_single_grants, {"at": now})
    # After the steps: what they tell is to be seen here, and goes out to nobody.
    connection.execute(_send_nothing)
    connection.execute(_expire_nothing)
    connection.execute(_remind_later, {"later": now + FIRST_REMINDER})
    # What was numbered after the copy was made, clients may have seen: none of it comes again for
    # something else, also if the same copy is put back twice.
    for table in numbered:
        number_from(connection, table, to_micros(now))
    upsert(connection, install, {"key": RESTORED, "value": now.isoformat()})
    return connection.execute(_end_credentials, {"at": now}).rowcount
