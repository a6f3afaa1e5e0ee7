"""Summaries: one for each conversation whose agent's session became too long."""

import json

from sqlalchemy import and_, bindparam, delete, insert, select

from backburner.core.ids import ConversationId, MessageId, UserId
from backburner.core.work.summary import CopiedMessage, NewSummary, Summary
from backburner.store.context import Group
from backburner.store.tables import summaries

_of_conversation = and_(
    summaries.c.user_id == bindparam("owner"),
    summaries.c.conversation_id == bindparam("conversation"),
)
_load = select(summaries).where(_of_conversation)
_insert = insert(summaries)
_delete = delete(summaries).where(_of_conversation)


class Summaries(Group):
    def load(self, user: UserId, conversation_id: ConversationId) -> Summary:
        row = self._read_one(_load, {"owner": user, "conversation": conversation_id})
        return Summary(
            session_id=row.session_id,
            text=row.text,
            messages=tuple(
                CopiedMessage(id=MessageId(message_id), text=text)
                for message_id, text in json.loads(row.messages)
            ),
            outside=row.outside,
            created_at=row.created_at,
        )

    def put(
        self, user: UserId, conversation_id: ConversationId, new: NewSummary, *, outside: bool
    ) -> None:
        """Store a summary in place of the one before."""
        self.delete(user, conversation_id)
        row = {
            "user_id": user,
            "conversation_id": conversation_id,
            "session_id": new.session_id,
            "text": new.text,
            "messages": json.dumps([(one.id, one.text) for one in new.messages]),
            "outside": outside,
            "created_at": self.tx.now,
        }
        self._execute(_insert, row)

    def delete(self, user: UserId, conversation_id: ConversationId) -> None:
        self._execute(_delete, {"owner": user, "conversation": conversation_id})
