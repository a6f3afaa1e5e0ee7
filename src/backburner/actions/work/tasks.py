"""Tasks: create or propose, list, show, approve, reject, delete; `control` has the rest."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from backburner.actions import browse, conversations, create, lookup, questions, schedules, steps
from backburner.actions.browse import DisplayContext, Page
from backburner.actions.create import WorkReport
from backburner.actions.deps import Deps
from backburner.actions.origin import Origin
from backburner.actions.schedules import Timing
from backburner.actions.work import chosen_connections, folders
from backburner.actions.work.control import check_destinations
from backburner.core import transitions
from backburner.core.accounts import Caller
from backburner.core.allowance import Allowance
from backburner.core.conversation import (
    Conversation,
    Destination,
    Kind,
    Notify,
    OnRepeatedFailure,
    common_uses,
    may_contain_outside_text,
)
from backburner.core.errors import Conflict
from backburner.core.ids import ConversationId, QuestionId, UserId, new_conversation_id
from backburner.core.question import NO, YES, Purpose
from backburner.core.run import Run
from backburner.core.schedule import Schedule
from backburner.core.transitions import Brief
from backburner.core.validation import normalize_title
from backburner.core.work.agents import check_tools
from backburner.core.work.timeouts import check_timeout
from backburner.core.work.views import TaskStatus, task_status
from backburner.ports import ConversationFilter, ConversationRow, PageKey, Tx, View

MAX_TASKS_LISTED = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTask:
    name: str
    prompt: str
    timing: Timing
    description: str = ""
    #: None: as in the parent.
    notify: Notify | None = None
    max_runs: int | None = None
    run_timeout: timedelta | None = None
    #: A folder that was added, by its path or name; None: that of the parent.
    folder: str | None = None
    #: None: those of the parent.
    tools: Sequence[str] | None = None
    #: The names of connections, among those of the parent.
    connections: Sequence[str] | None = None
    #: The name of an agent or a profile.
    agent: str | None = None
    profile: str | None = None
    #: Only users name destinations; a child task has those of its parent.
    reports_to: tuple[Destination, ...] = ()
    on_repeated_failure: OnRepeatedFailure = OnRepeatedFailure.PAUSE
    #: What may be spent on it and its jobs; None: the default. Only users set it.
    allowance: Allowance | None = None
    #: It waits for its user to resume it, who may try it before. Only users set it.
    paused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskListing:
    tasks: Sequence[WorkReport]
    truncated: bool


async def add(
    deps: Deps, origin: Origin, new: NewTask, *, proposed_because: str | None = None
) -> WorkReport:
    """Create a task, or propose it where no user can have asked for it.

    A reason in `proposed_because` makes it a proposal in any case.
    """
    check_destinations(deps, new.reports_to)
    check_timeout(new.run_timeout)
    agent = deps.agent(new.agent)
    check_tools(agent, new.tools)
    task_id, attempts = new_conversation_id(), list[bool]()

    def work(tx: Tx) -> WorkReport:
        tx.users.lock(origin.user)
        here = None if origin.is_user else origin.hold_to_start(tx)
        task = create.find_committed(tx, origin.user, task_id, attempts)
        attempts.append(True)
        if task is None:
            _refuse_same_name(tx, origin.user, new.name)
            schedule = schedules.resolve(tx, origin.user, new.timing)
            uses = origin.uses if here is None else common_uses(here.uses, origin.uses)
            folder = folders.choose(tx, deps, origin.user, new.folder, here=here, uses=uses)
            brief = create.with_agent(deps, _brief(new, schedule, here), agent)
            brief = replace(
                brief,
                profile=new.profile or brief.profile,
                folder=folder,
                connections=chosen_connections.choose(tx, origin, new.connections, here=here),
            )
            task = create.start(tx, deps, origin, task_id, brief, proposed_because=proposed_because)
            if new.allowance is not None and here is None:
                tx.spending.set_allowance(origin.user, new.allowance, task_id)
            if new.paused and here is None:
                step = transitions.pause(task)
                steps.save(tx, step)
                task = step.conversation
        return create.report(tx, task)

    return await deps.store.transact(work)


async def show(
    deps: Deps, user: UserId, conversation_id: ConversationId
) -> tuple[ConversationRow, DisplayContext]:
    def work(tx: Tx) -> tuple[ConversationRow, DisplayContext]:
        row = tx.browse.conversation(user, conversation_id)
        lookup.require(row.conversation)
        return row, browse.display_context(tx, deps, user, [row])

    return await deps.store.read(work)


async def list_for_agent(deps: Deps, origin: Origin, status: TaskStatus | None) -> TaskListing:
    """List the tasks of a user, last changed first; ended ones only by status."""
    user = origin.user

    def work(tx: Tx) -> TaskListing:
        filters = ConversationFilter(
            view=View.TASKS, task=status, archived=False if status is None else None
        )
        page = tx.browse.conversations(user, filters, None, limit=MAX_TASKS_LISTED)
        if any(_is_unvetted(row.conversation) for row in page.conversations):
            origin.mark_outside_text(tx, deps)
        zone = tx.users.load(user).zone
        tasks = [
            WorkReport(work=row.conversation, zone=zone, now=tx.now) for row in page.conversations
        ]
        return TaskListing(tasks=tasks, truncated=page.next_key is not None)

    return await deps.store.transact(work)


async def runs(
    deps: Deps, user: UserId, conversation_id: ConversationId, after: PageKey | None, *, limit: int
) -> Page[Run]:
    def work(tx: Tx) -> Page[Run]:
        lookup.require(tx.conversations.load(user, conversation_id))
        return browse.runs_page(tx, user, conversation_id, after, limit=limit)

    return await deps.store.read(work)


async def history(
    deps: Deps, origin: Origin, name: str, *, limit: int
) -> tuple[Conversation, Sequence[Run]]:
    """Find a task by name, and list its last runs, newest first.

    Runs that had read outside text mark the session that reads their results.
    """

    def work(tx: Tx) -> tuple[Conversation, Sequence[Run]]:
        task = lookup.find(tx, origin.user, name)
        runs = tx.browse.runs(origin.user, task.id, None, limit=limit)
        if any(run.outside for run in runs):
            origin.mark_outside_text(tx, deps)
        return task, runs

    return await deps.store.transact(work)


async def approve(
    deps: Deps,
    user: UserId,
    conversation_id: ConversationId,
    *,
    shown: QuestionId | None = None,
    by: Caller | None = None,
) -> Conversation:
    """Approve a proposal; `shown` is the version the user has seen, if known."""
    return await _decide(deps, user, conversation_id, YES, shown, by)


async def reject(
    deps: Deps,
    user: UserId,
    conversation_id: ConversationId,
    *,
    shown: QuestionId | None = None,
    by: Caller | None = None,
) -> Conversation:
    return await _decide(deps, user, conversation_id, NO, shown, by)


async def delete(deps: Deps, user: UserId, conversation_id: ConversationId) -> None:
    """Delete a task with its children."""

    def work(tx: Tx) -> None:
        if lookup.require(tx.conversations.lock(user, conversation_id)).kind is Kind.CHAT:
            raise Conflict(
                "This is a chat that has work.", hint="Cancel the work, or delete the conversation."
            )
        conversations.remove(tx, user, conversation_id)

    await deps.store.transact(work)


async def _decide(
    deps: Deps,
    user: UserId,
    conversation_id: ConversationId,
    answer: str,
    shown: QuestionId | None,
    by: Caller | None,
) -> Conversation:
    def work(tx: Tx) -> Conversation:
        tx.users.lock(user)
        task = lookup.require(tx.conversations.lock(user, conversation_id))
        question = next(
            (asked for asked in task.questions if asked.purpose is Purpose.PROPOSAL), None
        )
        if question is None:
            raise Conflict("This is not a proposal, or it has been answered.")
        if shown is not None and shown != question.id:
            raise Conflict("The proposal was changed since it was shown.", hint="Look at it again.")
        return questions.settle(tx, deps, task, question.id, answer, by=by)

    return await deps.store.transact(work)


def _brief(new: NewTask, schedule: Schedule, here: Conversation | None) -> Brief:
    brief = Brief(
        title=new.name,
        prompt=new.prompt,
        schedule=schedule,
        description=new.description,
        notify=new.notify or (Notify.ON_CHANGE if here is None else here.notify),
        max_runs=new.max_runs,
        run_timeout=new.run_timeout,
        tools=create.narrow(new.tools, None if here is None else here.tools),
        profile=new.profile,
        reports_to=new.reports_to,
        on_repeated_failure=new.on_repeated_failure,
    )
    return brief if here is None else create.as_child(here, brief)


def _refuse_same_name(tx: Tx, user: UserId, name: str) -> None:
    """Refuse a second open task of one name: by name, neither could be reached."""
    plain = normalize_title(name).casefold()
    for task in tx.tasks.scheduled(user, limit=lookup.MAX_TASKS_SEARCHED):
        is_same = task.kind is Kind.TASK and task.title.casefold() == plain
        if is_same and task_status(task) is not TaskStatus.PROPOSED:
            raise Conflict(
                f"There is already a task named {task.title!r} ({task.id}).",
                hint="Choose another name, or change that task.",
            )


def _is_unvetted(conversation: Conversation) -> bool:
    """Check for an open proposal whose text may be outside text."""
    is_proposed = task_status(conversation) is TaskStatus.PROPOSED
    return is_proposed and may_contain_outside_text(conversation)
