"""Finds the task that is meant: by its name, its id, or the beginning of that."""

from backburner.core.conversation import Conversation
from backburner.core.errors import BadRequest, NotFound
from backburner.core.ids import ConversationId, UserId
from backburner.core.work import lookup, views
from backburner.ports import Tx

#: Looked at by name: more tasks with a schedule nobody has.
MAX_TASKS_SEARCHED = 200
#: Named where several could be meant.
_FEW = 5


def find(tx: Tx, user: UserId, called: str, *, here: ConversationId | None = None) -> Conversation:
    """Find one task of a user, anywhere; `here` is the conversation that `this` means."""
    name = called.strip()
    if not name:
        raise BadRequest("Say which task.", hint="Give its name or id.")
    works = tx.tasks.scheduled(user, limit=MAX_TASKS_SEARCHED)
    own = next((work for work in works if work.id == here), None)
    found = lookup.find_named(name, own, [work for work in works if work is not own])
    found = found or [
        one
        for one in tx.tasks.by_title_or_id(user, name, limit=_FEW + 1)
        if views.is_listed_as_task(one)
    ]
    if not found:
        raise NotFound(
            f"There is no task called {name[:80]!r}.", hint="List the tasks to see what there is."
        )
    if len(found) > 1:
        names = ", ".join(f"{one.title!r} ({one.id})" for one in found[:_FEW])
        raise BadRequest(f"That could be any of these: {names}.", hint="Give the id.")
    return found[0]


def require(found: Conversation) -> Conversation:
    """Take a conversation for a task; one that is none is not found."""
    if not views.is_listed_as_task(found):
        raise NotFound
    return found
