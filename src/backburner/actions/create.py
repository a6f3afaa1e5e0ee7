"""New work: begun, or only proposed. Every way to ask for some comes together here."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from backburner.actions import active_limit
from backburner.actions.deps import Deps
from backburner.actions.origin import Origin
from backburner.core import routing, transitions
from backburner.core.conversation import Conversation
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
class WorkCreated:
    """A piece of work as it now is, for those who tell of it."""

    work: Conversation
    zone: str
    now: datetime
    #: The title of what it comes after, if it comes after something.
    after: str | None = None


def begin(
    tx: Tx, deps: Deps, user: UserId, conversation_id: ConversationId, brief: Brief
) -> Conversation:
    """Let a task begin, if there is room for it; whoever calls this holds the lock of the user."""
    step = transitions.start_task(conversation_id, user, brief, now=tx.now)
    active_limit.check(deps, tx, step.conversation)
    return _add(tx, deps, step)


def propose(
    tx: Tx, deps: Deps, origin: Origin, conversation_id: ConversationId, brief: Brief, *, why: str
) -> Conversation:
    """Suggest a task, unless there are enough suggestions, or the owner has said no to this."""
    _check_count(tx, origin)
    _check_news(tx, origin.user, brief)
    zone = tx.users.load(origin.user).zone
    step = transitions.propose(conversation_id, origin.user, brief, why=why, now=tx.now, zone=zone)
    # Its words may be those of others, until the owner has said yes to them.
    proposed = replace(step.conversation, outside_read=origin.hold(tx).outside_read)
    return _add(tx, deps, replace(step, conversation=proposed))


def find_made(
    tx: Tx, user: UserId, conversation_id: ConversationId, tried: Sequence[object]
) -> Conversation | None:
    """Find what an earlier try has made of which only the answer was lost."""
    if tried:
        with suppress(NotFound):
            return tx.conversations.load(user, conversation_id)
    return None


def tell(tx: Tx, work: Conversation) -> WorkCreated:
    after = work.schedule
    title = None
    if isinstance(after, After):
        with suppress(NotFound):
            title = tx.conversations.load(work.user_id, after.conversation).title
    return WorkCreated(work=work, zone=tx.users.load(work.user_id).zone, now=tx.now, after=title)


def narrow(tools: Sequence[str] | None, allowed: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Hold work to tools that whoever hands it out may use itself."""
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
    """Refuse what waits for an answer already, and what was dismissed within a day."""
    waiting = [
        RejectedProposal(one.title, str(one.state.context.get("prompt", "")), tx.now)
        for one in tx.tasks.open(user, limit=10 * MAX_OPEN_PROPOSALS)
        if task_status(one) is TaskStatus.PROPOSED
    ]
    if proposal.was_rejected_recently(brief.title, brief.prompt, waiting, now=tx.now):
        raise Conflict("This is proposed already, and waits for the owner's answer.")
    if len(waiting) >= MAX_OPEN_PROPOSALS:
        raise LimitReached(
            f"{len(waiting)} proposals wait for the owner's answer already.",
            hint="Propose no more before some are answered.",
        )
    dismissed = tx.tasks.dismissed(user, since=tx.now - REJECTION_COOLDOWN)
    if proposal.was_rejected_recently(brief.title, brief.prompt, dismissed, now=tx.now):
        raise Conflict(
            "The owner said no to this within the last day.",
            hint="Do not propose it again; they can set it up themselves if they want it.",
        )
