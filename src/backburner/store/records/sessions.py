"""Sessions: the agent's own record of a conversation, entry by entry.

Entries are written during a run and count once it has committed, so the next run loads nothing of a
holder that died or was fenced.
"""

from collections.abc import Iterable

from sqlalchemy import and_, bindparam, delete, exists, insert, or_, select

from backburner.core.ids import ConversationId, UserId
from backburner.core.run import Turn
from backburner.store.context import Group
from backburner.store.dialect import number_rows
from backburner.store.tables import COMMITTED_EPOCH, outcomes, session_entries

_insert = insert(session_entries)
_is_committed = exists().where(
    outcomes.c.user_id == session_entries.c.user_id,
    outcomes.c.run_id == session_entries.c.run_id,
    outcomes.c.epoch == session_entries.c.epoch,
)
_is_own = and_(
    session_entries.c.run_id == bindparam("run_id"), session_entries.c.epoch == bindparam("epoch")
)
_of_conversation = and_(
    session_entries.c.user_id == bindparam("owner"),
    session_entries.c.conversation_id == bindparam("conversation_id"),
)
_of_session = and_(_of_conversation, session_entries.c.session_id == bindparam("session_id"))
_load = (
    select(session_entries.c.entry)
    .where(_of_session, or_(session_entries.c.epoch == COMMITTED_EPOCH, _is_committed, _is_own))
    .order_by(session_entries.c.number)
)
_select_committed = (
    select(session_entries.c.number)
    .where(_of_conversation, session_entries.c.run_id == bindparam("run_id"), _is_committed)
    .limit(1)
)
_delete = delete(session_entries).where(_of_session)


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
            self._execute(_insert, rows)

    def load(self, turn: Turn, session_id: str) -> tuple[str, ...]:
        """Read the entries that were committed, and those of this run."""
        values = {
            "owner": turn.user_id,
            "conversation_id": turn.conversation_id,
            "session_id": session_id,
            "run_id": turn.run_id,
            "epoch": turn.epoch,
        }
        return tuple(self._execute(_load, values).scalars())

    def has_entries(self, turn: Turn) -> bool:
        """See whether this run committed entries before it was handed back."""
        return self._exists(
            _select_committed,
            {"owner": turn.user_id, "conversation_id": turn.conversation_id, "run_id": turn.run_id},
        )

    def delete(self, user: UserId, conversation_id: ConversationId, session_id: str) -> None:
        values = {"owner": user, "conversation_id": conversation_id, "session_id": session_id}
        self._execute(_delete, values)
