"""Finds a task by its name, id or id prefix, and the parents of a conversation."""

from collections.abc import Iterator
from contextlib import suppress

from backburner.core.conversation import Conversation
from backburner.core.errors import BadRequest, NotFound
from backburner.core.ids import ConversationId, UserId
from backburner.core.validation import normalize_title
from backburner.core.work import lookup, views
from backburner.ports import Tx

#: Scheduled tasks that are searched by name; no user has more.
MAX_TASKS_SEARCHED = 200
#: Candidates named in an error.
_MAX_CANDIDATES = 5


def find(
    tx: Tx, user: UserId, reference: str, *, here: ConversationId | None = None
) -> Conversation:
    """Find one task of a user; `here` is the conversation that "this" refers to."""
    name = normalize_title(reference)
    if not name:
        raise BadRequest("The task is missing.", hint="Give its name or id.")
    scheduled = tx.tasks.scheduled(user, limit=MAX_TASKS_SEARCHED)
    own = next((task for task in scheduled if task.id == here), None)
    tasks = lookup.find_named(name, own, [task for task in scheduled if task is not own]) or [
        task
        for task in tx.tasks.by_title_or_id(user, name, limit=_MAX_CANDIDATES + 1)
        if views.is_listed_as_task(task)
    ]
    if not tasks:
        raise NotFound(
            f"There is no task called {name[:80]!r}.", hint="List the tasks to see their names."
        )
    if len(tasks) > 1:
        names = ", ".join(f"{task.title!r} ({task.id})" for task in tasks[:_MAX_CANDIDATES])
        raise BadRequest(f"Several tasks match: {names}.", hint="Give the id.")
    return tasks[0]


def require(conversation: Conversation) -> Conversation:
    """Return the conversation if it is a task, else raise `NotFound`."""
    if not views.is_listed_as_task(conversation):
        raise NotFound
    return conversation


def ancestry(tx: Tx, conversation: Conversation) -> Iterator[Conversation]:
    """Yield a conversation and its parents, up to the root or a deleted parent."""
    yield conversation
    with suppress(NotFound):
        while conversation.parent_id is not None:
            conversation = tx.conversations.load(conversation.user_id, conversation.parent_id)
            yield conversation
