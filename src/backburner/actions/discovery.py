"""Discovery: a conversation of the user that finds work to propose, while switched on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from backburner.actions.deps import Deps
from backburner.actions.steps import save
from backburner.actions.work import folders
from backburner.core import routing, transitions
from backburner.core.conversation import Conversation, Use, Uses
from backburner.core.errors import Conflict, NotAllowed
from backburner.core.ids import ConversationId, UserId, new_conversation_id
from backburner.core.work import discovery
from backburner.core.work.views import TaskStatus, task_status
from backburner.ports import ConversationFilter, Tx, View


@dataclass(frozen=True, slots=True)
class LookedAt:
    """The project that discovery looks at."""

    #: A folder that was added, by its path or name; None: the private workspace.
    folder: str | None = None
    #: As owner/name on the server of gh: its CI and pull requests are listed.
    repository: str | None = None
    #: What of the user's whoever names it may use.
    uses: Uses = None


def switch(deps: Deps, tx: Tx, user: UserId, *, on: bool, project: LookedAt | None = None) -> None:
    """Switch discovery on or off; what is on and not paused stays, unless a project is named."""
    if on and not deps.discovery.allowed:
        raise Conflict(
            "Discovery is disabled on this server.",
            hint="Its operator can set `discovery_enabled = true`.",
        )
    tx.users.lock(user)
    found = [tx.conversations.lock(user, which) for which in tx.discovery.conversation_ids(user)]
    if on and project is None and any(one.pause_reason is None for one in found):
        return
    for one in found:
        save(tx, transitions.archive(one, now=tx.now))
    if on:
        project = project or LookedAt()
        name, uses = project.repository, project.uses
        if name is not None and uses is not None and Use.SIGN_INS not in uses:
            raise NotAllowed(
                "Work of this token may not use sign-ins.", hint="Use the command line instead."
            )
        step = transitions.start_discovery(
            new_conversation_id(),
            user,
            every=deps.discovery.every,
            now=tx.now,
            folder=folders.choose(tx, deps, user, project.folder, here=None, uses=uses),
            params={} if name is None else {discovery.REPOSITORY: discovery.check_repository(name)},
        )
        tx.conversations.add(
            replace(
                step,
                conversation=replace(routing.assign(step.conversation, deps.routes), uses=uses),
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryStatus:
    """Discovery that is on."""

    conversation_id: ConversationId
    #: It looks for work only while its user is idle, so this may be later.
    next_run_at: datetime | None
    last_run_at: datetime | None
    is_paused: bool
    folder: str | None
    repository: str


def find_status(tx: Tx, user: UserId) -> DiscoveryStatus | None:
    """Describe the discovery of a user; None: it is off."""
    ids = tx.discovery.conversation_ids(user)
    if not ids:
        return None
    conversation = tx.conversations.load(user, ids[0])
    runs = tx.runs.history(user, conversation.id, limit=1)
    return DiscoveryStatus(
        conversation_id=conversation.id,
        next_run_at=conversation.next_run_at,
        last_run_at=runs[0].started_at if runs else None,
        is_paused=conversation.pause_reason is not None,
        folder=conversation.folder_path,
        repository=str(conversation.state.context.get(discovery.REPOSITORY, "")),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectAccess:
    """The parts of its project that discovery may use."""

    may_look: bool
    #: Sign-ins are for installs with one account.
    may_sign_in: bool
    #: All folders of the user.
    folders: Sequence[str]


def check_project(tx: Tx, deps: Deps, conversation: Conversation) -> ProjectAccess:
    user, folder = conversation.user_id, conversation.folder
    is_alone = len(tx.accounts.page(limit=2)) == 1
    return ProjectAccess(
        may_look=folder is None or folders.is_usable(tx, deps, user, folder),
        may_sign_in=is_alone and conversation.may_use(Use.SIGN_INS),
        folders=[one.path for one in folders.usable(tx, deps, user)],
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
