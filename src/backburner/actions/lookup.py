"""Finds a task by its name, its id or an id prefix."""

from backburner.core.conversation import Conversation
from backburner.core.errors import BadRequest, NotFound
from backburner.core.ids import ConversationId, UserId
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
    name = reference.strip()
    if not name:
        raise BadRequest("The task is missing.", hint="Give its name or id.")
    works = tx.tasks.scheduled(user, limit=MAX_TASKS_SEARCHED)
    own = next((work for work in works if work.id == here), None)
    found = lookup.find_named(name, own, [work for work in works if work is not own])
    found = found or [
        one
        for one in tx.tasks.by_title_or_id(user, name, limit=_MAX_CANDIDATES + 1)
        if views.is_listed_as_task(one)
    ]
    if not found:
        raise NotFound(
            f"There is no task called {name[:80]!r}.", hint="List the tasks to see their names."
        )
    if len(found) > 1:
        names = ", ".join(f"{task.title!r} ({task.id})" for task in found[:_MAX_CANDIDATES])
        raise BadRequest(f"Several tasks match: {names}.", hint="Give the id.")
    return found[0]


def require(conversation: Conversation) -> Conversation:
    """Return the conversation if it is a task, else raise `NotFound`."""
    if not views.is_listed_as_task(conversation):
        raise NotFound
    return conversation
