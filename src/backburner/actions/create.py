"""New work, started or proposed: the one way in for users, agents and clients."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from backburner.actions import active_limit
from backburner.actions.deps import Deps
from backburner.actions.origin import Origin
from backburner.core import routing, transitions
from backburner.core.conversation import Author, Conversation
from backburner.core.errors import BadRequest, Conflict, LimitReached, NotFound
from backburner.core.ids import ConversationId, UserId
from backburner.core.schedule import After
from backburner.core.transitions import Brief, Step
from backburner.core.work import proposal
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
    """Work as it now is, with what is needed to describe it."""

    work: Conversation
    zone: str
    now: datetime
    #: The title of the work it is scheduled after.
    after: str | None = None


def begin(
    tx: Tx, deps: Deps, user: UserId, conversation_id: ConversationId, brief: Brief
) -> Conversation:
    """Start a task within the limit on active tasks; the caller holds the lock of the user."""
    step = transitions.start_task(conversation_id, user, brief, now=tx.now)
    active_limit.check(deps, tx, step.conversation)
    return _add(tx, deps, step)


def propose(
    tx: Tx, deps: Deps, origin: Origin, conversation_id: ConversationId, brief: Brief, *, why: str
) -> Conversation:
    """Propose a task, unless too many are open or the owner has rejected this one lately."""
    _check_count(tx, origin)
    _check_news(tx, origin.user, brief)
    zone = tx.users.load(origin.user).zone
    step = transitions.propose(conversation_id, origin.user, brief, why=why, now=tx.now, zone=zone)
    # Its text may come from outside, until the owner has approved it.
    proposed = replace(step.conversation, outside_read=origin.hold(tx).outside_read)
    return _add(tx, deps, replace(step, conversation=proposed))


def start(
    tx: Tx,
    deps: Deps,
    origin: Origin,
    conversation_id: ConversationId,
    brief: Brief,
    *,
    proposed_because: str | None = None,
) -> Conversation:
    """Start a task, or propose it where no user can have asked for it; the caller locks the user.

    A reason in `proposed_because` makes it a proposal in any case.
    """
    if proposed_because is None and (origin.is_user or origin.may_start(origin.hold(tx))):
        return begin(tx, deps, origin.user, conversation_id, brief)
    return propose(tx, deps, origin, conversation_id, brief, why=proposed_because or "")


def under(here: Conversation, brief: Brief) -> Brief:
    """Make it a child of a conversation: created by its agent, reporting where that does."""
    return replace(
        brief,
        profile=brief.profile or here.requested_profile,
        reports_to=here.reports_to,
        parent_id=here.id,
        created_by=Author.AGENT,
    )


def find_committed(
    tx: Tx, user: UserId, conversation_id: ConversationId, tried: Sequence[object]
) -> Conversation | None:
    """Find what an earlier try created, if that was committed and only its answer was lost."""
    if tried:
        with suppress(NotFound):
            return tx.conversations.load(user, conversation_id)
    return None


def report(tx: Tx, work: Conversation) -> WorkReport:
    title = None
    if isinstance(work.schedule, After):
        with suppress(NotFound):
            title = tx.conversations.load(work.user_id, work.schedule.conversation).title
    return WorkReport(work=work, zone=tx.users.load(work.user_id).zone, now=tx.now, after=title)


def narrow(tools: Sequence[str] | None, allowed: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Restrict work to tools that the conversation creating it may use itself."""
    if tools is None:
        return allowed
    beyond = [name for name in tools if allowed is not None and name not in allowed]
    if beyond:
        raise BadRequest(
            f"This conversation may not use {', '.join(beyond)} itself.",
            hint=f"It may use: {', '.join(allowed or ()) or 'nothing'}.",
        )
    return tuple(dict.fromkeys(tools))


def _add(tx: Tx, deps: Deps, step: Step) -> Conversation:
    made = routing.assign(step.conversation, deps.routes)
    tx.conversations.add(replace(step, conversation=made))
    return made


def _check_count(tx: Tx, origin: Origin) -> None:
    if origin.turn is None:
        return
    began_at = tx.runs.load(origin.user, origin.turn.run_id).started_at
    made = tx.tasks.count_proposed(origin.user, origin.conversation, since=began_at)
    if made >= MAX_PROPOSALS_PER_RUN:
        raise LimitReached(
            f"This run has proposed {made} tasks, and {MAX_PROPOSALS_PER_RUN} is the limit.",
            hint="Leave it at that; the owner has been asked about them.",
        )


def _check_news(tx: Tx, user: UserId, brief: Brief) -> None:
    """Refuse what is already proposed, and what was rejected within a day."""
    waiting = [
        RejectedProposal(one.title, str(one.state.context.get("prompt", "")), tx.now)
        for one in tx.tasks.scheduled(user, limit=10 * MAX_OPEN_PROPOSALS)
        if task_status(one) is TaskStatus.PROPOSED
    ]
    if proposal.was_rejected_recently(brief.title, brief.prompt, waiting, now=tx.now):
        raise Conflict("This is proposed already, and waits for the owner's answer.")
    if len(waiting) >= MAX_OPEN_PROPOSALS:
        raise LimitReached(
            f"{len(waiting)} proposals wait for the owner's answer already.",
            hint="Propose no more before some are answered.",
        )
    dismissed = tx.tasks.rejected_proposals(user, since=tx.now - REJECTION_COOLDOWN)
    if proposal.was_rejected_recently(brief.title, brief.prompt, dismissed, now=tx.now):
        raise Conflict(
            "The owner said no to this within the last day.",
            hint="Do not propose it again; they can set it up themselves if they want it.",
        )
