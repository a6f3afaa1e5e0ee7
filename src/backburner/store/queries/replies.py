"""What became of something that a person said: who served it, and what was said in return."""

from collections.abc import Collection, Sequence

from sqlalchemy import Text, bindparam, select

from backburner.core.conversation import Message
from backburner.core.errors import NotFound
from backburner.core.ids import ConversationId, ItemId, MessageId, UserId
from backburner.core.run import Run, RunStatus
from backburner.ports import Reply
from backburner.store.context import Group
from backburner.store.mapping import to_message, to_run
from backburner.store.tables import inbox, messages, runs

_owner, _which = bindparam("owner", type_=Text()), bindparam("which", type_=Text())
_items = select(inbox.c.served_at, inbox.c.served_by).where(
    inbox.c.user_id == _owner,
    inbox.c.conversation_id == _which,
    inbox.c.id.in_(bindparam("items", expanding=True, type_=Text())),
)
_runs = select(runs).where(
    runs.c.user_id == _owner, runs.c.id.in_(bindparam("runs", expanding=True, type_=Text()))
)
_message = select(messages).where(
    messages.c.user_id == _owner,
    messages.c.conversation_id == _which,
    messages.c.id == bindparam("said"),
)
_said_since = (
    select(messages)
    .where(
        messages.c.user_id == _owner,
        messages.c.conversation_id == _which,
        messages.c.number > bindparam("number"),
        messages.c.replaced_at.is_(None),
        messages.c.run_id.in_(bindparam("runs", expanding=True, type_=Text())),
    )
    .order_by(messages.c.number)
)


class Replies(Group):
    def find(
        self,
        user: UserId,
        conversation_id: ConversationId,
        said: MessageId,
        items: Collection[ItemId],
    ) -> Reply | None:
        key = {"owner": user, "which": conversation_id}
        waiting = self._execute(_items, {**key, "items": list(items)}).all()
        if any(item.served_at is None for item in waiting):
            return None
        served_by = [item.served_by for item in waiting if item.served_by is not None]
        ran = self._runs(user, served_by)
        # One that was handed back has served it, and goes on.
        if any(run.status in (RunStatus.QUEUED, RunStatus.RUNNING) for run in ran):
            return None
        asked = self._execute(_message, {**key, "said": said}).one_or_none()
        number = 0 if asked is None else asked.number
        found = self._execute(_said_since, {**key, "number": number, "runs": served_by})
        last = max(ran, key=lambda run: run.epoch, default=None)
        return Reply(last, tuple(to_message(row) for row in found))

    def message(self, user: UserId, conversation_id: ConversationId, said: MessageId) -> Message:
        values = {"owner": user, "which": conversation_id, "said": said}
        row = self._execute(_message, values).one_or_none()
        if row is None:
            raise NotFound
        return to_message(row)

    def _runs(self, user: UserId, which: Sequence[str]) -> list[Run]:
        found = self._execute(_runs, {"owner": user, "runs": list(which)})
        return [to_run(row) for row in found]
