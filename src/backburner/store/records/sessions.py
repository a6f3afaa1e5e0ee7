"""An agent's own memory of a conversation, entry by entry.

Entries are written while a run goes on, and count once it has committed: a holder that died or was
fenced off leaves no trace in what the next one loads.
"""

from collections.abc import Iterable

from sqlalchemy import and_, bindparam, delete, exists, insert, or_, select

from backburner.core.ids import ConversationId, UserId
from backburner.core.run import Turn
from backburner.store.context import Group
from backburner.store.dialect import number_rows
from backburner.store.tables import KEPT, outcomes, session_entries

_insert = insert(session_entries)
_is_committed = exists().where(
    outcomes.c.user_id == session_entries.c.user_id,
    outcomes.c.run_id == session_entries.c.run_id,
    outcomes.c.epoch == session_entries.c.epoch,
)
_is_own = and_(
    session_entries.c.run_id == bindparam("run"), session_entries.c.epoch == bindparam("held")
)
_load = (
    select(session_entries.c.entry)
    .where(
        session_entries.c.user_id == bindparam("owner"),
        session_entries.c.conversation_id == bindparam("which"),
        session_entries.c.session_id == bindparam("session"),
        or_(session_entries.c.epoch == KEPT, _is_committed, _is_own),
    )
    .order_by(session_entries.c.number)
)


_own = select(session_entries.c.number).where(
    session_entries.c.user_id == bindparam("owner"),
    session_entries.c.conversation_id == bindparam("which"),
    session_entries.c.run_id == bindparam("run"),
    _is_committed,
)


_forget = delete(session_entries).where(
    session_entries.c.user_id == bindparam("owner"),
    session_entries.c.conversation_id == bindparam("which"),
    session_entries.c.session_id == bindparam("session"),
)


class Sessions(Group):
    def append(self, turn: Turn, session_id: str, entries: Iterable[str]) -> None:
        rows = [
            {
                "user_id": turn.user_id,
                "conversation_id": turn.conversation_id,
                "session_id": session_id,
                "run_id": turn.run_id,
                "epoch": turn.epoch,
                "entry": entry,
            }
            for entry in entries
        ]
        if rows:
            number_rows(self.connection, session_entries, rows)
            self.connection.execute(_insert, rows)

    def load(self, turn: Turn, session_id: str) -> tuple[str, ...]:
        """Read what a run may know: what others committed, and what it wrote itself."""
        values = {
            "owner": turn.user_id,
            "which": turn.conversation_id,
            "session": session_id,
            "run": turn.run_id,
            "held": turn.epoch,
        }
        return tuple(self.connection.execute(_load, values).scalars())

    def has_entries(self, turn: Turn) -> bool:
        """See whether anything was committed of this run before it was handed back."""
        values = {"owner": turn.user_id, "which": turn.conversation_id, "run": turn.run_id}
        return self.connection.execute(_own.limit(1), values).first() is not None

    def delete(self, user: UserId, conversation_id: ConversationId, session_id: str) -> None:
        """Remove all of a session that nobody goes on with."""
        self.connection.execute(
            _forget, {"owner": user, "which": conversation_id, "session": session_id}
        )
