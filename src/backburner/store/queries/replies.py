"""The reply to a message: the run that served it, and its messages."""

from collections.abc import Collection

from sqlalchemy import Text, bindparam, select, text

from backburner.core.conversation import Message
from backburner.core.ids import ConversationId, ItemId, MessageId, UserId
from backburner.core.run import RunStatus
from backburner.ports import Reply
from backburner.store.context import Group
from backburner.store.mapping import to_message, to_run
from backburner.store.tables import inbox, messages, runs

_owner = bindparam("owner", type_=Text())
_conversation_id = bindparam("conversation_id", type_=Text())
_run_ids = bindparam("run_ids", expanding=True, type_=Text())
_select_items = select(inbox.c.served_at, inbox.c.served_by).where(
    inbox.c.user_id == _owner,
    inbox.c.conversation_id == _conversation_id,
    inbox.c.id.in_(bindparam("item_ids", expanding=True, type_=Text())),
)
_select_runs = select(runs).where(runs.c.user_id == _owner, runs.c.id.in_(_run_ids))
_select_message = select(messages).where(
    messages.c.user_id == _owner,
    messages.c.conversation_id == _conversation_id,
    messages.c.id == bindparam("message_id"),
)
_select_answers = (
    select(messages)
    .where(
        messages.c.user_id == _owner,
        messages.c.conversation_id == _conversation_id,
        messages.c.number > bindparam("number"),
        messages.c.replaced_at.is_(None),
        messages.c.run_id.in_(_run_ids),
    )
    .order_by(messages.c.number)
)
#: Stored with a message: of the same transaction, and of no run.
_select_notes = (
    select(messages)
    .where(
        messages.c.user_id == _owner,
        messages.c.conversation_id == _conversation_id,
        messages.c.number > bindparam("number"),
        messages.c.replaced_at.is_(None),
        messages.c.run_id.is_(None),
        messages.c.role == text("'system'"),
        messages.c.created_at == bindparam("at"),
    )
    .order_by(messages.c.number)
)


class Replies(Group):
    def find(
        self,
        user: UserId,
        conversation_id: ConversationId,
        message_id: MessageId,
        items: Collection[ItemId],
    ) -> Reply | None:
        """Find the reply; None: it is not there yet.

        A message without items needs none, such as a yes: what was done with it is stored with it.
        """
        key = {"owner": user, "conversation_id": conversation_id}
        item_rows = self._execute(_select_items, {**key, "item_ids": list(items)}).all()
        if any(item.served_at is None for item in item_rows):
            return None
        run_ids = [item.served_by for item in item_rows if item.served_by is not None]
        run_rows = self._execute(_select_runs, {"owner": user, "run_ids": run_ids})
        served_by = [to_run(row) for row in run_rows]
        # A run that was handed back has served the item, and resumes later.
        in_progress = (RunStatus.QUEUED, RunStatus.RUNNING)
        if any(run.status in in_progress and not run.waits_for_user for run in served_by):
            return None
        message = self._execute(_select_message, {**key, "message_id": message_id}).one_or_none()
        if message is not None and not items:
            values = {**key, "number": message.number, "at": message.created_at}
            notes = self._execute(_select_notes, values)
            return Reply(None, tuple(to_message(row) for row in notes))
        values = {**key, "number": message.number if message else 0, "run_ids": run_ids}
        answers = self._execute(_select_answers, values)
        last = max(served_by, key=lambda run: run.epoch, default=None)
        return Reply(last, tuple(to_message(row) for row in answers))

    def message(
        self, user: UserId, conversation_id: ConversationId, message_id: MessageId
    ) -> Message:
        values = {"owner": user, "conversation_id": conversation_id, "message_id": message_id}
        return to_message(self._read_one(_select_message, values))
