"""What a run knows when it begins: read together with its claim, in one transaction."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from backburner.actions import spending
from backburner.actions.deps import Deps
from backburner.actions.work import jobs
from backburner.core import prompt
from backburner.core.allowance import Allowance
from backburner.core.conversation import Conversation, Kind, Message, Session
from backburner.core.ids import ConversationId
from backburner.core.memory import Memory, topic_words
from backburner.core.run import Item, Run, RunKind, RunStatus
from backburner.core.tool_journal import JournalEntry
from backburner.core.work.views import JobView
from backburner.ports import Claim, Tx
from backburner.runs.budget import Budget

#: Memories that are looked at for a prompt.
_MOST_RECALLED = 20
#: How far back an earlier attempt at the same work may lie.
_MOST_ATTEMPTS = 20

SESSION_LOST = "What I remembered of this was gone; I went on from what is here."
SESSION_RENEWED = "What I remembered of this had become long; I went on from what matters of it."


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRun:
    """What a run knows when it begins."""

    conversation: Conversation
    #: The agent's session that is gone on with, if there is one.
    session: Session | None
    #: Why one that there was is not.
    renewed: str | None
    zone: str
    now: datetime
    recent: Sequence[Message]
    #: What it is to serve; what earlier attempts at it were to, and this run until it was handed
    #: back.
    items: Sequence[Item]
    repeated: Sequence[Item]
    #: Of that, what this run itself served.
    served: Sequence[Item]
    #: What those did.
    before: Sequence[JournalEntry]
    #: How the jobs stand that it waited for, and those of them that are gone.
    awaited: Sequence[JobView]
    gone: Collection[ConversationId]
    #: What the agent's session holds, and what is remembered for its user that fits.
    memory: Sequence[str]
    memories: Sequence[Memory]
    #: The agent was interrupted in this run and remembers what it is about.
    goes_on: bool
    root: ConversationId
    over: Allowance | None
    #: There is only left what other runs may be about to spend.
    waits: bool


def prepare(deps: Deps, tx: Tx, claim: Claim) -> PreparedRun:
    """Read what the run is about, and set aside what it may spend: together with its claim."""
    turn = claim.turn
    user, which = turn.user_id, turn.conversation_id
    conversation = claim.conversation
    root = spending.find_root(tx, conversation)
    goes_on = claim.goes_on and tx.sessions.has_entries(turn)
    session, renewed = _choose_session(deps, claim, goes_on=goes_on)
    memory = () if session is None else tx.sessions.load(turn, session.id)
    attempts = _earlier_attempts(tx, claim)
    repeated = [item for run in attempts for item in tx.inbox.served_by(user, which, run.id)]
    served = tx.inbox.served_by(user, which, turn.run_id) if claim.goes_on else ()
    if claim.goes_on:
        attempts, repeated = [*attempts, claim.run], [*repeated, *served]
    awaited = jobs.read(tx, user, claim.awaited)
    recent = tx.messages.recent(user, which, limit=prompt.MAX_PROMPT_MESSAGES)
    items = prompt.select_items(tx.inbox.waiting(user, which, turn.kind)) if claim.has_items else ()
    sways = deps.can_be_injected(conversation.profile)
    shown = [*repeated, *items]
    recalls = sways and not goes_on and claim.remembers
    memories = _recall(tx, conversation, shown, fresh=not memory) if recalls else ()
    is_new = sways and not conversation.outside_read
    looks_around = conversation.kind is Kind.DISCOVERY
    if is_new and (looks_around or prompt.has_outside_text(recent, shown, memories)):
        tx.turns.mark_outside_text(turn)
    zone = claim.zone or tx.users.load(user).zone
    purse = Budget(deps, turn, root).open(tx, zone)
    return PreparedRun(
        conversation=conversation,
        session=session,
        renewed=renewed,
        zone=zone,
        now=tx.now,
        recent=recent,
        items=items,
        repeated=repeated,
        served=served,
        awaited=awaited,
        gone=set(claim.awaited).difference(job.id for job in awaited),
        before=[entry for run in attempts for entry in tx.tool_calls.of_run(user, run.id)],
        memory=memory,
        memories=memories,
        goes_on=goes_on,
        root=root,
        over=purse.over,
        waits=purse.waits and turn.kind is RunKind.BACKGROUND,
    )


def _recall(
    tx: Tx, conversation: Conversation, items: Sequence[Item], *, fresh: bool
) -> Sequence[Memory]:
    """Find what is remembered that fits; for one who knows nothing yet, the newest as well."""
    words = topic_words(prompt.topic_of(conversation, items))
    look = tx.memories.recall if fresh else tx.memories.search
    return prompt.select_memories(look(conversation.user_id, words, limit=_MOST_RECALLED))


def _choose_session(
    deps: Deps, claim: Claim, *, goes_on: bool
) -> tuple[Session | None, str | None]:
    """Choose the agent's session to go on with; where it is not the one there was, say why."""
    conversation, limits = claim.conversation, deps.limits
    session = conversation.session
    if session is None:
        return None, None
    if session.profile != (conversation.profile or deps.default_profile):
        return None, SESSION_LOST
    # What is asked of a job once more is about what it remembers, all of it.
    is_work = claim.turn.kind is RunKind.BACKGROUND and not conversation.resuming
    if not goes_on and session.tokens > (limits.context if is_work else limits.context_chat):
        return None, SESSION_RENEWED
    return session, None


def _earlier_attempts(tx: Tx, claim: Claim) -> Sequence[Run]:
    """Find the runs of the same kind that failed since the last one that did not, oldest first."""
    turn, failed = claim.turn, list[Run]()
    troubles = claim.conversation.failures + claim.conversation.crashes
    if turn.kind is RunKind.BACKGROUND and not troubles:
        return ()
    for other in tx.runs.history(turn.user_id, turn.conversation_id, limit=_MOST_ATTEMPTS):
        stands_for_none = other.status is RunStatus.SKIPPED
        if other.id == turn.run_id or other.kind is not turn.kind or stands_for_none:
            continue
        if other.status is not RunStatus.FAILURE:
            break
        failed.insert(0, other)
    return failed
