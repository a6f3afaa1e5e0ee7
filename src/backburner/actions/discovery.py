"""Discovery: a conversation of the user that finds work to propose, while switched on."""

from dataclasses import replace

from backburner.actions.deps import Deps
from backburner.actions.steps import save
from backburner.core import routing, transitions
from backburner.core.errors import Conflict
from backburner.core.ids import UserId, new_conversation_id
from backburner.core.work import discovery
from backburner.core.work.views import TaskStatus, task_status
from backburner.ports import ConversationFilter, Tx, View


def switch(deps: Deps, tx: Tx, user: UserId, *, on: bool) -> None:
    """Switch discovery on or off; discovery that is on and not paused is left unchanged."""
    if on and not deps.discovery.allowed:
        raise Conflict(
            "Discovery is disabled on this server.",
            hint="Its operator can set `discovery_enabled = true`.",
        )
    tx.users.lock(user)
    found = [tx.conversations.lock(user, which) for which in tx.discovery.conversation_ids(user)]
    if on and any(one.pause_reason is None for one in found):
        return
    for one in found:
        save(tx, transitions.archive(one, now=tx.now))
    if on:
        step = transitions.start_discovery(
            new_conversation_id(), user, every=deps.discovery.every, now=tx.now
        )
        tx.conversations.add(
            replace(step, conversation=routing.assign(step.conversation, deps.routes))
        )


def describe_surroundings(tx: Tx, user: UserId, *, zone: str, repository: str) -> str:
    """Describe recent messages, open tasks and the repository for a discovery run."""
    filters = ConversationFilter(view=View.TASKS, archived=False)
    page = tx.browse.conversations(user, filters, None, limit=discovery.MAX_SHOWN_TASKS)
    tasks = [row.conversation for row in page.conversations]
    return discovery.format_surroundings(
        tx.discovery.recent_snippets(user, limit=discovery.MAX_SNIPPETS),
        [task for task in tasks if task_status(task) is not TaskStatus.DONE],
        repository,
        zone=zone,
    )
