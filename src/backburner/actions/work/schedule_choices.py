"""Choices for the schedule of a conversation: its times, and the work that it could follow."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from backburner.actions.deps import Deps
from backburner.core.conversation import Conversation, MessageRole
from backburner.core.errors import NotFound
from backburner.core.ids import ConversationId, UserId
from backburner.core.schedule import After
from backburner.core.work.views import TaskStatus, task_status
from backburner.ports import Tx

#: Other work that is offered.
MAX_OTHERS = 50
#: Messages in which the last request of the user is looked for.
_MAX_SEARCHED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleChoices:
    now: datetime
    zone: str
    conversation: Conversation
    #: The title of the work that it runs after; None: it does not, or that is gone.
    after: str | None
    #: Work that it could run after.
    others: Sequence[Conversation]
    #: What its user said last: what it could do, if it has no work.
    last_request: str


async def load_choices(
    deps: Deps, user: UserId, conversation_id: ConversationId
) -> ScheduleChoices:
    def work(tx: Tx) -> ScheduleChoices:
        conversation = tx.conversations.load(user, conversation_id)
        found = tx.tasks.scheduled(user, limit=MAX_OTHERS)
        return ScheduleChoices(
            now=tx.now,
            zone=tx.users.load(user).zone,
            conversation=conversation,
            after=find_predecessor(tx, conversation),
            others=[one for one in found if _can_be_followed(one, by=conversation)],
            last_request="" if conversation.has_work else _find_request(tx, conversation),
        )

    return await deps.store.read(work)


async def load_predecessor(deps: Deps, conversation: Conversation) -> str | None:
    """Return the title of the work that a conversation runs after, if there is such work."""
    if not isinstance(conversation.schedule, After):
        return None
    return await deps.store.read(lambda tx: find_predecessor(tx, conversation))


def find_predecessor(tx: Tx, conversation: Conversation) -> str | None:
    schedule = conversation.schedule
    if not isinstance(schedule, After):
        return None
    with suppress(NotFound):
        return tx.conversations.load(conversation.user_id, schedule.conversation).title
    return None


def _can_be_followed(other: Conversation, *, by: Conversation) -> bool:
    """Return whether work may come before other work; longer circles are refused when it is set."""
    if other.id == by.id or task_status(other) is TaskStatus.PROPOSED:
        return False
    return not (isinstance(other.schedule, After) and other.schedule.conversation == by.id)


def _find_request(tx: Tx, conversation: Conversation) -> str:
    said = tx.messages.recent(conversation.user_id, conversation.id, limit=_MAX_SEARCHED)
    requests = [message.content for message in said if message.role is MessageRole.USER]
    return requests[-1] if requests else ""
