"""Creates tasks and proposals, of changes too, for users, agents and clients."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from backburner.actions import active_limit, steps
from backburner.actions.deps import Deps
from backburner.actions.models.changes import forget_session
from backburner.actions.origin import Origin
from backburner.actions.waits import shown
from backburner.core import routing, transitions
from backburner.core.conversation import Author, Conversation, Status, Use, common_uses, mark_brief
from backburner.core.errors import BackburnerError, BadRequest, Conflict, LimitReached, NotFound
from backburner.core.ids import ConnectionId, ConversationId, UserId
from backburner.core.question import Purpose, Question
from backburner.core.schedule import After
from backburner.core.transitions import Brief, Step, Terms, change
from backburner.core.transitions.change import MAX_OPEN_CHANGES, Verb, WorkChange
from backburner.core.transitions.step import system_message
from backburner.core.work import proposal
from backburner.core.work.agents import Agent, allow_both
from backburner.core.work.proposal import (
    MAX_PROPOSALS_PER_RUN,
    REJECTION_COOLDOWN,
    RejectedProposal,
)
from backburner.core.work.views import TaskStatus, task_status
from backburner.ports import Tx

#: Proposals of one user that wait for an answer.
MAX_OPEN_PROPOSALS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkReport:
    """Work, with the facts needed to describe it."""

    work: Conversation
    zone: str
    now: datetime
    #: The title of the work it is scheduled after.
    after: str | None = None
    #: The change of it that the owner is asked about; None: it was made.
    proposed: Question | None = None
    #: What becomes of it because it names connections that it cannot use now.
    warnings: Sequence[str] = ()


def start(
    tx: Tx,
    deps: Deps,
    origin: Origin,
    conversation_id: ConversationId,
    brief: Brief,
    *,
    proposed_because: str | None = None,
) -> Conversation:
    """Start a task, or propose it where no user can have asked for it.

    The caller holds the user lock. A reason in `proposed_because` makes it a proposal in any case.
    A proposal is the agent's idea; anything else the user has asked for, perhaps through an agent.
    """
    brief = replace(brief, uses=common_uses(brief.uses, origin.uses), set_up_by=origin.run_id)
    if proposed_because is None and (origin.is_user or origin.may_start(origin.hold(tx))):
        brief = replace(brief, created_by=Author.USER)
        step = transitions.start_task(conversation_id, origin.user, brief, now=tx.now)
        active_limit.check(deps, tx, step.conversation)
    else:
        brief = replace(brief, created_by=Author.AGENT)
        step = _propose(tx, origin, conversation_id, brief, why=proposed_because or "")
    conversation = routing.assign(step.conversation, deps.routes)
    tx.conversations.add(replace(step, conversation=conversation))
    return conversation


def with_agent(deps: Deps, brief: Brief, agent: Agent | None) -> Brief:
    """Give work an agent: its name, its profile, and of the tools those that it may use."""
    if agent is None:
        return brief
    return replace(
        brief,
        agent=agent.name if agent.name in deps.agents else None,
        tools=allow_both(brief.tools, agent.tools),
        profile=agent.profile or brief.profile,
    )


def as_child(here: Conversation, brief: Brief) -> Brief:
    """Make a brief a child of a conversation, with its destinations and rights."""
    return replace(
        brief,
        agent=brief.agent or here.agent,
        profile=brief.profile or here.requested_profile,
        folder=brief.folder or (here.folder if here.may_use(Use.FOLDERS) else None),
        uses=here.uses,
        reports_to=here.reports_to,
        parent_id=here.id,
    )


def find_committed(
    tx: Tx, user: UserId, conversation_id: ConversationId, attempts: Sequence[object]
) -> Conversation | None:
    """Find the conversation of an attempt that was committed although its result was lost."""
    if attempts:
        with suppress(NotFound):
            return tx.conversations.load(user, conversation_id)
    return None


def report(tx: Tx, work: Conversation) -> WorkReport:
    title = None
    if isinstance(work.schedule, After):
        with suppress(NotFound):
            title = tx.conversations.load(work.user_id, work.schedule.conversation).title
    warnings = shown.warnings_for(tx, work.user_id, [work])
    return WorkReport(
        work=work,
        zone=tx.users.load(work.user_id).zone,
        now=tx.now,
        after=title,
        warnings=warnings.get(work.id, ()),
    )


def narrow(tools: Sequence[str] | None, allowed: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Restrict work to tools that its parent may use."""
    if tools is None:
        return allowed
    refused = [name for name in tools if allowed is not None and name not in allowed]
    if refused:
        raise BadRequest(
            f"This conversation may not use {', '.join(refused)} itself.",
            hint=f"It may use: {', '.join(allowed or ()) or 'nothing'}.",
        )
    return tuple(dict.fromkeys(tools))


def propose_change(
    tx: Tx, origin: Origin, here: Conversation, work: Conversation, wanted: WorkChange
) -> Question:
    """Ask the owner about a change, in the conversation whose agent wants it."""
    opened = [asked for asked in here.questions if asked.purpose is Purpose.CHANGE]
    if len(opened) >= MAX_OPEN_CHANGES:
        raise LimitReached(
            f"Limit reached: {MAX_OPEN_CHANGES} open proposals of changes.",
            hint="Propose no more until the owner has answered some.",
        )
    zone = tx.users.load(origin.user).zone
    question = change.change_question(
        work,
        wanted,
        run_id=None if origin.turn is None else origin.turn.run_id,
        now=tx.now,
        zone=zone,
        existing=_connection_ids(tx, origin.user),
    )
    steps.save(tx, transitions.ask_owner(here, question))
    return question


def apply_change(tx: Tx, deps: Deps, here: Conversation, question: Question) -> None:
    """Make a change that was approved, if the work is still as it was shown; say how it went."""
    wanted = change.from_data(question.binds_to["change"])
    try:
        work = tx.conversations.lock(here.user_id, wanted.work_id)
        if change.digest(work) != question.binds_to["before"]:
            text = f"Not changed: {work.title!r} has changed since this was proposed."
        elif lost := _lost_connections(tx, work, question):
            text = (
                f"Not changed: a connection was removed since this was proposed: {', '.join(lost)}."
            )
        else:
            text = _make_change(tx, deps, work, wanted)
    except NotFound:
        text = "Not changed: the work no longer exists."
    asked_in = tx.conversations.lock(here.user_id, here.id)
    tx.conversations.save(Step(conversation=asked_in, messages=(system_message(text),)))


def _propose(
    tx: Tx, origin: Origin, conversation_id: ConversationId, brief: Brief, *, why: str
) -> Step:
    """Propose a task, unless too many proposals are open or it was rejected recently."""
    _check_run_limit(tx, origin)
    _refuse_duplicate(tx, origin.user, brief)
    zone = tx.users.load(origin.user).zone
    step = transitions.propose(conversation_id, origin.user, brief, why=why, now=tx.now, zone=zone)
    # The text may be outside text until the owner has approved it.
    outside = origin.hold(tx).outside_read
    return replace(step, conversation=mark_brief(step.conversation, outside=outside))


def _check_run_limit(tx: Tx, origin: Origin) -> None:
    if origin.turn is None:
        return
    started_at = tx.runs.load(origin.user, origin.turn.run_id).started_at
    count = tx.tasks.count_proposed(origin.user, origin.conversation, since=started_at)
    if count >= MAX_PROPOSALS_PER_RUN:
        raise LimitReached(
            f"Limit reached: {MAX_PROPOSALS_PER_RUN} proposals per run.",
            hint="Propose no more; the owner has been asked about these.",
        )


def _refuse_duplicate(tx: Tx, user: UserId, brief: Brief) -> None:
    """Refuse a proposal that is open already or was rejected within a day."""
    waiting = [
        RejectedProposal(task.title, str(task.state.context.get("prompt", "")), tx.now)
        for task in tx.tasks.scheduled(user, limit=10 * MAX_OPEN_PROPOSALS)
        if task_status(task) is TaskStatus.PROPOSED
    ]
    if proposal.was_rejected_recently(brief.title, brief.prompt, waiting, now=tx.now):
        raise Conflict("This is proposed already, and waits for the owner's answer.")
    if len(waiting) >= MAX_OPEN_PROPOSALS:
        raise LimitReached(
            f"Limit reached: {MAX_OPEN_PROPOSALS} open proposals.",
            hint="Propose no more until the owner has answered some.",
        )
    rejected = tx.tasks.rejected_proposals(user, since=tx.now - REJECTION_COOLDOWN)
    if proposal.was_rejected_recently(brief.title, brief.prompt, rejected, now=tx.now):
        raise Conflict(
            "The owner rejected this within the last day.",
            hint="Do not propose it again; they can set it up themselves if they want it.",
        )


def _make_change(tx: Tx, deps: Deps, work: Conversation, wanted: WorkChange) -> str:
    try:
        step = _change_step(tx, deps, work, wanted)
        active_limit.check(deps, tx, step.conversation, before=work)
    except BackburnerError as error:
        return f"Not changed: {error}"
    save_change(tx, work, step)
    return f"Approved. Done: {wanted.verb.value} {step.conversation.title!r}."


def save_change(tx: Tx, before: Conversation, step: Step) -> None:
    """Save a change of work, with what it means for its children and its session."""
    after = step.conversation
    if after.status is Status.ARCHIVED and before.status is not Status.ARCHIVED:
        for child in tx.conversations.open_children(before.user_id, before.id):
            steps.stop_all(tx, child)
    forget_session(tx, before, after)
    steps.save(tx, step)


def _lost_connections(tx: Tx, work: Conversation, question: Question) -> Sequence[str]:
    named = change.named_connections(question)
    if not named:
        return ()
    tx.connections.hold(work.user_id, named)
    return change.lost_connections(question, work, _connection_ids(tx, work.user_id))


def _connection_ids(tx: Tx, user: UserId) -> Mapping[str, ConnectionId]:
    return {connection.name: connection.id for connection in tx.connections.list(user)}


def _change_step(tx: Tx, deps: Deps, work: Conversation, wanted: WorkChange) -> Step:
    match wanted.verb:
        case Verb.PAUSE:
            return transitions.pause(work)
        case Verb.RESUME:
            return transitions.resume(work, now=tx.now)
        case Verb.RUN_NOW:
            return transitions.run_now(work)
        case Verb.CANCEL:
            running = steps.is_running(tx, work)
            return transitions.cancel_and_archive(work, "", now=tx.now, running=running)
        case Verb.UPDATE:
            terms = wanted.terms or Terms.of(work)
            moved = None
            if wanted.has_model:
                moved = transitions.with_model(work, deps.routes, wanted.profile)
            step = transitions.edit_terms(
                work, terms, now=tx.now, schedule=wanted.schedule, moved=moved
            )
            note = transitions.model_note(work, moved or work)
            return replace(step, messages=(*step.messages, *note))
