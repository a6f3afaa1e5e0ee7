"""What agents do with tasks: add, propose, list, change, pause, resume, cancel, run, look back.

Tasks are made under the conversation that an agent is in, and found wherever they are. What may be
done to which from where stands in decision 0016.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from backburner.actions import active_limit, conversations, create, lookup, schedules, steps
from backburner.actions.create import WorkCreated
from backburner.actions.deps import Deps
from backburner.actions.origin import Origin
from backburner.actions.schedules import Timing
from backburner.actions.steps import save
from backburner.core import transitions
from backburner.core.conversation import (
    Author,
    Conversation,
    Destination,
    Notify,
    PauseReason,
    Status,
)
from backburner.core.errors import Conflict
from backburner.core.ids import ConversationId, UserId, new_conversation_id
from backburner.core.run import ItemKind, Run, RunKind
from backburner.core.schedule import Schedule
from backburner.core.transitions import Brief, Step, Terms
from backburner.core.work.views import TaskStatus, task_status
from backburner.ports import ConversationFilter, Tx, View

#: Shown to an agent.
MAX_TASKS_LISTED = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTask:
    """What is asked for."""

    name: str
    prompt: str
    timing: Timing
    description: str = ""
    #: None: as the conversation tells it.
    notify: Notify | None = None
    max_runs: int | None = None
    run_timeout: timedelta | None = None
    #: None: what the conversation may use.
    tools: Sequence[str] | None = None
    profile: str | None = None
    #: Where the owner wants to hear of it; under a conversation it reports where that does.
    reports_to: tuple[Destination, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskListing:
    tasks: Sequence[WorkCreated]
    #: There are more.
    cut: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskChanges:
    """What becomes of the terms of some work, and when it is done if that changes."""

    terms: Callable[[Terms], Terms] = lambda terms: terms
    timing: Timing | None = None


async def add(deps: Deps, origin: Origin, new: NewTask) -> WorkCreated:
    """Set up a task under the conversation; what nobody there has asked for is only proposed."""
    return await _make(deps, origin, new, why=None)


async def propose(deps: Deps, origin: Origin, new: NewTask, *, why: str) -> WorkCreated:
    """Suggest a task to the owner, and say why."""
    return await _make(deps, origin, new, why=why)


async def listed(deps: Deps, origin: Origin, status: TaskStatus | None) -> TaskListing:
    """List the tasks of a user, those that changed last first; ended ones only if asked for."""
    user = origin.user

    def work(tx: Tx) -> TaskListing:
        wanted = ConversationFilter(
            view=View.TASKS, task=status, archived=False if status is None else None
        )
        found = tx.browse.conversations(user, wanted, None, limit=MAX_TASKS_LISTED)
        if any(_is_unvetted(seen.conversation) for seen in found.conversations):
            origin.note_outside(tx, deps)
        zone = tx.users.load(user).zone
        tasks = [
            WorkCreated(work=seen.conversation, zone=zone, now=tx.now)
            for seen in found.conversations
        ]
        return TaskListing(tasks=tasks, cut=found.mark is not None)

    return await deps.store.transact(work)


async def update(deps: Deps, origin: Origin, called: str, changes: TaskChanges) -> WorkCreated:
    """Give a task other terms or another time."""

    def changing(found: Conversation, tx: Tx) -> Step:
        return rework(tx, found, changes, within=origin.hold(tx).tools)

    return await _steer(deps, origin, called, changing, needs_say="changed")


async def pause(deps: Deps, origin: Origin, called: str) -> WorkCreated:
    def pausing(found: Conversation, _: Tx) -> Step:
        return transitions.pause(found)

    return await _steer(
        deps, origin, called, pausing, is_so=lambda found: found.pause_reason is PauseReason.USER
    )


async def resume(deps: Deps, origin: Origin, called: str) -> WorkCreated:
    """Let a task go on; like beginning one, that takes somebody who may."""

    def resuming(found: Conversation, tx: Tx) -> Step:
        return transitions.resume(found, now=tx.now)

    return await _steer(
        deps,
        origin,
        called,
        resuming,
        is_so=lambda found: found.status is Status.BACKGROUND,
        needs_say="resumed",
    )


async def run_now(deps: Deps, origin: Origin, called: str) -> WorkCreated:
    """Let a task run at once; if it is about to because of that already, that will do."""

    def running(found: Conversation, tx: Tx) -> Step:
        step = transitions.run_now(found)
        waiting = tx.inbox.waiting(found.user_id, found.id, RunKind.BACKGROUND)
        is_asked_for = any(item.kind is ItemKind.RUN_NOW for item in waiting)
        return Step(conversation=found) if is_asked_for else step

    return await _steer(deps, origin, called, running)


async def cancel(deps: Deps, origin: Origin, called: str, *, reason: str) -> WorkCreated:
    """Stop a task for good and put it away, with the reason; a chat that had work stays."""

    def cancelling(found: Conversation, tx: Tx) -> Step:
        return stop(tx, found, reason, by=origin.conversation)

    return await _steer(
        deps, origin, called, cancelling, is_so=lambda found: found.status is Status.ARCHIVED
    )


async def history(
    deps: Deps, user: UserId, called: str, *, limit: int
) -> tuple[Conversation, Sequence[Run]]:
    """Read the last runs of a task, newest first."""

    def work(tx: Tx) -> tuple[Conversation, Sequence[Run]]:
        found = lookup.find(tx, user, called)
        return found, tx.browse.runs(user, found.id, None, limit=limit)

    return await deps.store.transact(work)


def rework(
    tx: Tx, found: Conversation, changes: TaskChanges, *, within: tuple[str, ...] | None = None
) -> Step:
    """Work out what changes mean for a task; `within`: the tools that may be given to it."""
    timed = changes.timing
    schedule = None if timed is None else schedules.read(tx, found.user_id, timed, of=found.id)
    terms = changes.terms(Terms.of(found))
    if terms.tools != found.tools:
        terms = replace(terms, tools=create.narrow(terms.tools, within))
    return transitions.edit_terms(found, terms, now=tx.now, schedule=schedule)


def stop(tx: Tx, found: Conversation, reason: str, *, by: ConversationId | None = None) -> Step:
    """Work out what follows when a task is cancelled; what it handed out is stopped with it."""
    user = found.user_id
    step = transitions.cancel_and_archive(
        found,
        reason,
        now=tx.now,
        by_parent=by is not None and by == found.parent_id,
        running=conversations.is_running(tx, user, found.id),
    )
    if step.conversation.status is Status.ARCHIVED:
        for child in tx.conversations.open_children(user, found.id):
            steps.stop_all(tx, child)
    return step


def _is_unvetted(found: Conversation) -> bool:
    """See whether others may have put the words there, and its owner has not said yes to them."""
    return found.outside_read and task_status(found) is TaskStatus.PROPOSED


async def _make(deps: Deps, origin: Origin, new: NewTask, *, why: str | None) -> WorkCreated:
    which, tried = new_conversation_id(), list[bool]()

    def work(tx: Tx) -> WorkCreated:
        tx.users.lock(origin.user)
        here = origin.hold(tx)
        made = create.find_made(tx, origin.user, which, tried)
        tried.append(True)
        if made is None:
            brief = _brief(here, new, schedules.read(tx, origin.user, new.timing))
            if why is None and origin.may_start(here):
                made = create.begin(tx, deps, origin.user, which, brief)
            else:
                made = create.propose(tx, deps, origin, which, brief, why=why or "")
        return create.tell(tx, made)

    return await deps.store.transact(work)


def _brief(here: Conversation, new: NewTask, timed: Schedule) -> Brief:
    return Brief(
        title=new.name,
        prompt=new.prompt,
        schedule=timed,
        description=new.description,
        notify=new.notify or here.notify,
        max_runs=new.max_runs,
        run_timeout=new.run_timeout,
        tools=create.narrow(new.tools, here.tools),
        profile=new.profile or here.requested_profile,
        # It reports where the conversation does in which it was asked for.
        reports_to=here.reports_to,
        parent_id=here.id,
        created_by=Author.AGENT,
    )


async def _steer(
    deps: Deps,
    origin: Origin,
    called: str,
    transition: Callable[[Conversation, Tx], Step],
    *,
    is_so: Callable[[Conversation], bool] = lambda _: False,
    needs_say: str = "",
) -> WorkCreated:
    """Let something happen to a task; `is_so` tells whether an earlier try has done it.

    `needs_say` names what only happens where somebody can have asked for it.
    """
    tried = list[ConversationId]()

    def work(tx: Tx) -> WorkCreated:
        tx.users.lock(origin.user)
        here = origin.hold(tx)
        found = tx.conversations.lock(origin.user, tried[0]) if tried else _find(tx, origin, called)
        if tried and is_so(found):
            return create.tell(tx, found)
        tried.append(found.id)
        _require_reach(origin, here, found, needs_say)
        step = transition(found, tx)
        active_limit.check(deps, tx, step.conversation, before=found)
        save(tx, step)
        return create.tell(tx, step.conversation)

    return await deps.store.transact(work)


def _find(tx: Tx, origin: Origin, called: str) -> Conversation:
    found = lookup.find(tx, origin.user, called, here=origin.conversation)
    return tx.conversations.lock(origin.user, found.id)


def _require_reach(origin: Origin, here: Conversation, found: Conversation, needs_say: str) -> None:
    """Refuse what nobody in the chat can have asked for, unless it concerns a task of its own."""
    if origin.may_start(here):
        return
    if needs_say:
        raise Conflict(
            f"Tasks cannot be {needs_say} from here: what was read may have put the idea there.",
            hint="Tell the user, who can do it; or propose a new task with task_propose.",
        )
    if found.id == here.id:
        raise Conflict(
            "A run cannot steer the work it belongs to.", hint="End it with complete and final."
        )
    if found.parent_id != here.id:
        raise Conflict(
            f"{found.title!r} is not a task of this conversation, and what was read here may have"
            " put the idea there.",
            hint="Tell the user, who can do it.",
        )
