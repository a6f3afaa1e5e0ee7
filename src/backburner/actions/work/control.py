"""Control of existing work by users, agents and clients: pause, resume, run now, edit, cancel.

A user gives the id of a conversation. An agent or an MCP client names a task, and may reach only
the tasks that decision 0016 allows.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from backburner.actions import active_limit, create, lookup, schedules, steps
from backburner.actions.create import WorkReport
from backburner.actions.deps import Deps
from backburner.actions.models.changes import ModelChoice
from backburner.actions.origin import Origin
from backburner.actions.schedules import Timing
from backburner.actions.steps import Change
from backburner.actions.waits import reconnection
from backburner.actions.work import chosen_connections, instructions
from backburner.actions.work.chosen_connections import CheckConsent
from backburner.actions.work.instructions import CheckInstructions
from backburner.core import transitions
from backburner.core.channels.push import PUSH
from backburner.core.conversation import Conversation, Destination, PauseReason, Status
from backburner.core.errors import BadRequest, Conflict
from backburner.core.ids import ConversationId, UserId
from backburner.core.question import Question
from backburner.core.run import ItemKind, RunKind
from backburner.core.transitions import Step, Terms
from backburner.core.transitions.change import Verb, WorkChange
from backburner.core.work.agents import allow_both, check_tools
from backburner.core.work.timeouts import check_timeout
from backburner.ports import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskChanges:
    """A function that edits the terms, and a new timing and model if these change."""

    terms: Callable[[Terms], Terms] = lambda terms: terms
    timing: Timing | None = None
    model: ModelChoice | None = None


async def pause(deps: Deps, origin: Origin, work: str, *, task_only: bool = False) -> WorkReport:
    return await _change(
        deps,
        origin,
        work,
        lambda conversation, _: transitions.pause(conversation),
        verb=Verb.PAUSE,
        task_only=task_only,
        is_done=lambda conversation: conversation.pause_reason is PauseReason.USER,
    )


async def resume(deps: Deps, origin: Origin, work: str, *, task_only: bool = False) -> WorkReport:
    """Resume work; an agent proposes that where no user can have asked for it."""

    def transition(conversation: Conversation, tx: Tx) -> Step:
        reconnection.check_not_waiting(tx, conversation)
        return transitions.resume(conversation, now=tx.now)

    return await _change(
        deps,
        origin,
        work,
        transition,
        verb=Verb.RESUME,
        task_only=task_only,
        is_done=lambda conversation: conversation.status is Status.BACKGROUND,
    )


async def run_now(deps: Deps, origin: Origin, work: str, *, task_only: bool = False) -> WorkReport:
    """Run work at once, unless a requested run has not started yet."""

    def transition(conversation: Conversation, tx: Tx) -> Step:
        reconnection.check_not_waiting(tx, conversation)
        step = transitions.run_now(conversation)
        waiting = tx.inbox.waiting(conversation.user_id, conversation.id, RunKind.BACKGROUND)
        is_requested = any(item.kind is ItemKind.RUN_NOW for item in waiting)
        return Step(conversation=conversation) if is_requested else step

    return await _change(deps, origin, work, transition, verb=Verb.RUN_NOW, task_only=task_only)


async def stop_run(deps: Deps, user: UserId, conversation_id: ConversationId) -> None:
    """Stop the background run of recurring work that is in progress; its schedule stays."""

    def work(tx: Tx) -> None:
        conversation = tx.conversations.lock(user, conversation_id)
        if not conversation.is_recurring:
            raise Conflict("Only runs of recurring work can be stopped alone.", hint="Cancel it.")
        if not tx.runs.stop_work(user, conversation_id):
            raise Conflict("There is no background run to stop.")

    await deps.store.transact(work)


async def update(
    deps: Deps,
    origin: Origin,
    work: str,
    changes: TaskChanges,
    *,
    check_consent: CheckConsent | None = None,
    check_instructions: CheckInstructions | None = None,
) -> WorkReport:
    """Change the terms, timing or model of a task; the question of a proposal is asked again.

    `check_consent` refuses a caller who may not give it more, and `check_instructions` one who may
    not tell it what to do.
    """

    def transition(conversation: Conversation, tx: Tx) -> Step:
        timing, schedule = changes.timing, None
        if timing is not None:
            schedule = schedules.reschedule(tx, conversation, timing)
        terms = changes.terms(Terms.of(conversation))
        if terms.run_timeout != conversation.run_timeout:
            check_timeout(terms.run_timeout)
        if terms.tools != conversation.tools:
            allowed = None if origin.is_user else origin.hold(tx).tools
            agent = deps.agents.get(conversation.agent or "")
            check_tools(agent, terms.tools)
            tools = create.narrow(terms.tools, allowed)
            terms = replace(terms, tools=allow_both(tools, agent.tools if agent else None))
        if terms.connections != conversation.connections:
            here = None if origin.is_user else origin.hold(tx)
            chosen = chosen_connections.rechoose(
                tx, origin, conversation, terms.connections, here=here, check_consent=check_consent
            )
            terms = replace(terms, connections=chosen)
        moved = conversation
        if changes.model is not None:
            moved = transitions.with_model(conversation, deps.routes, changes.model.profile)
        step = transitions.edit_terms(
            conversation,
            terms,
            now=tx.now,
            schedule=schedule,
            moved=moved,
            by_run=origin.run_id,
        )
        note = transitions.model_note(conversation, moved)
        step = replace(step, messages=(*step.messages, *note))
        check_destinations(deps, step.conversation.reports_to, known=conversation.reports_to)
        if check_instructions is not None and instructions.are_changed(conversation, step):
            check_instructions(tx, step.conversation)
        return step

    return await _change(deps, origin, work, transition, verb=Verb.UPDATE, task_only=True)


async def cancel(deps: Deps, origin: Origin, work: str) -> WorkReport:
    """Stop work for good; the conversation stays."""

    def transition(conversation: Conversation, tx: Tx) -> Step:
        running = steps.is_running(tx, conversation)
        return transitions.cancel(conversation, now=tx.now, running=running)

    return await _change(deps, origin, work, transition, verb=Verb.CANCEL)


async def cancel_and_archive(
    deps: Deps, origin: Origin, work: str, *, reason: str = ""
) -> WorkReport:
    """Stop a task for good and archive it with the reason; a chat that had work stays open."""

    def transition(conversation: Conversation, tx: Tx) -> Step:
        return transitions.cancel_and_archive(
            conversation,
            reason,
            now=tx.now,
            by_parent=not origin.is_user and origin.conversation == conversation.parent_id,
            running=steps.is_running(tx, conversation),
        )

    return await _change(
        deps,
        origin,
        work,
        transition,
        verb=Verb.CANCEL,
        task_only=True,
        is_done=lambda conversation: conversation.status is Status.ARCHIVED,
    )


def check_destinations(
    deps: Deps, destinations: tuple[Destination, ...], *, known: tuple[Destination, ...] = ()
) -> None:
    """Refuse to report to a channel that does not exist."""
    for destination in destinations:
        if destination.channel == PUSH:
            raise BadRequest(
                "Browsers are no place to report to: those that take push messages always get them."
            )
        if destination.channel not in deps.channels and destination not in known:
            raise BadRequest(
                f"There is no channel {destination.channel[:80]!r}.",
                hint=f"There are: {', '.join(deps.channels.keys() - {PUSH}) or 'none'}.",
            )


async def _change(
    deps: Deps,
    origin: Origin,
    work: str,
    transition: Change,
    *,
    verb: Verb,
    task_only: bool = False,
    is_done: Callable[[Conversation], bool] = lambda _: False,
) -> WorkReport:
    """Apply a transition under the limit on active tasks, or propose it to the owner.

    `is_done` recognises an earlier attempt that was committed although its result was lost.
    """
    attempts, proposed = list[ConversationId](), list[Question]()

    def apply(tx: Tx) -> WorkReport:
        # Locked first, so that two concurrent calls cannot both take the last free place.
        tx.users.lock(origin.user)
        here = None if origin.is_user else origin.hold(tx)
        conversation_id = attempts[0] if attempts else _find(tx, origin, work)
        conversation = tx.conversations.lock(origin.user, conversation_id)
        if task_only or here is not None:
            lookup.require(conversation)
        if attempts and is_done(conversation):
            return create.report(tx, conversation)
        attempts.append(conversation_id)
        needs_yes = here is not None and _needs_yes(origin, here, conversation, verb)
        step = transition(conversation, tx)
        if here is not None and (
            needs_yes or instructions.need_consent(tx, origin, here, conversation, step)
        ):
            if not proposed or not tx.questions.exists(origin.user, proposed[0].id):
                wanted = _describe_change(conversation, step.conversation, verb)
                proposed[:] = [create.propose_change(tx, origin, here, conversation, wanted)]
            return replace(create.report(tx, conversation), proposed=proposed[0])
        active_limit.check(deps, tx, step.conversation, before=conversation)
        create.save_change(tx, conversation, step)
        return create.report(tx, step.conversation)

    return await deps.store.transact(apply)


def _find(tx: Tx, origin: Origin, work: str) -> ConversationId:
    if origin.is_user:
        return ConversationId(work)
    return lookup.find(tx, origin.user, work, here=origin.conversation).id


def _describe_change(before: Conversation, after: Conversation, verb: Verb) -> WorkChange:
    if verb is not Verb.UPDATE:
        return WorkChange(work_id=before.id, verb=verb)
    schedule = None if after.schedule == before.schedule else after.schedule
    return WorkChange(
        work_id=before.id,
        verb=verb,
        terms=Terms.of(after),
        schedule=schedule,
        has_model=after.requested_profile != before.requested_profile,
        profile=after.requested_profile,
    )


def _needs_yes(origin: Origin, here: Conversation, work: Conversation, verb: Verb) -> bool:
    """Check for a change that no user can have asked for, unless it only slows a task of here."""
    if origin.may_start(here):
        return False
    if verb in (Verb.UPDATE, Verb.RESUME):
        return True
    is_background = origin.turn is not None and origin.turn.kind is RunKind.BACKGROUND
    if work.id == here.id and is_background:
        raise Conflict(
            "A run cannot control the work it belongs to.", hint="End it with complete and final."
        )
    return work.parent_id != here.id
