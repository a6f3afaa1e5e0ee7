"""The input of a run, read in the transaction that claims it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from backburner.actions import spending, steps
from backburner.actions.deps import Deps
from backburner.actions.work import jobs
from backburner.core import prompt, routing
from backburner.core.allowance import Allowance
from backburner.core.connections import sign_in
from backburner.core.conversation import Conversation, Kind, Message, Session, Use
from backburner.core.errors import NotFound
from backburner.core.ids import ConversationId
from backburner.core.memory import Memory, topic_words
from backburner.core.question import Purpose
from backburner.core.run import Item, ItemKind, Run, RunKind, RunStatus, Turn
from backburner.core.tool_journal import JournalEntry
from backburner.core.work import facts
from backburner.core.work.facts import NO_FACTS, WorkFacts
from backburner.core.work.summary import Summary
from backburner.core.work.views import JobView
from backburner.ports import Claim, Tx
from backburner.runs.budget import Budget, BudgetVerdict, open_all

#: Memories considered for a prompt.
_MAX_RECALLED = 20
#: Runs searched for earlier attempts at the same work.
_MAX_RUNS_SEARCHED = 20

SESSION_OF_OTHER_MODEL = "The model was changed; I continued from the messages."
SESSION_LOST = "My memory of this conversation was lost; I continued from its messages."
SESSION_RENEWED = (
    "This conversation had grown too long for me to keep in full; I continued from a summary of it."
)
SESSION_CUT = (
    "This conversation had grown too long for me to keep in full, and I could not write a summary;"
    " I continued from its last messages."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRun:
    """Everything a run knows when it starts."""

    conversation: Conversation
    #: The profile to use, and whether messages asked for it: then it is for this run only.
    profile: str
    is_for_one_run: bool
    #: The agent's session to resume, if there is one.
    session: Session | None
    #: Why the previous session was not resumed, in words for the user.
    session_note: str | None
    zone: str
    now: datetime
    recent: Sequence[Message]
    #: The inbox items to serve, and those of earlier attempts at the same work.
    items: Sequence[Item]
    repeated: Sequence[Item]
    #: Items that this run served before it was handed back.
    served: Sequence[Item]
    #: Tool calls of earlier attempts, and of this run before it was handed back.
    past_calls: Sequence[JournalEntry]
    #: The jobs that it waited for, and the ids of those that were deleted.
    awaited: Sequence[JobView]
    missing_jobs: Collection[ConversationId]
    session_entries: Sequence[str]
    #: Memories of the user that fit.
    memories: Sequence[Memory]
    #: Of a reply: the work of the conversation and of its children.
    work: WorkFacts
    #: The agent was interrupted in this run, and its session knows what it is about.
    resumed: bool
    #: The conversation whose allowance counts, and an allowance that is used up.
    root: ConversationId
    over: Allowance | None
    #: All that is left to spend is reserved by other runs.
    must_wait: bool
    #: The summary of an earlier session.
    summary: Summary | None = None
    #: What became of the sign-in that it waited for, for its agent.
    sign_in: str = ""
    #: A prompt for a new session would contain outside text.
    marks_new_session: bool = False


def prepare(deps: Deps, tx: Tx, claims: Sequence[Claim]) -> Sequence[PreparedRun]:
    """Read everything that runs need and reserve their budgets, in the transaction of their claims.

    They are of different users, so that one read is enough for some of it.
    """
    if not claims:
        return ()
    conversations = [claim.conversation for claim in claims]
    recent = tx.messages.recent_of_each(conversations, limit=prompt.MAX_PROMPT_MESSAGES)
    zones = [claim.zone or tx.users.load(claim.turn.user_id).zone for claim in claims]
    budgets = [
        Budget(deps, claim.turn, spending.find_root(tx, claim.conversation)) for claim in claims
    ]
    verdicts = open_all(tx, budgets, zones)
    return [
        _prepare(tx, claim, budget, verdict, zone=zone, recent=recent[claim.conversation.id])
        for claim, budget, verdict, zone in zip(claims, budgets, verdicts, zones, strict=True)
    ]


def _prepare(
    tx: Tx,
    claim: Claim,
    budget: Budget,
    verdict: BudgetVerdict,
    *,
    zone: str,
    recent: Sequence[Message],
) -> PreparedRun:
    deps, turn, conversation = budget.deps, claim.turn, claim.conversation
    user, conversation_id = turn.user_id, turn.conversation_id
    served = tx.inbox.served_by(user, conversation_id, turn.run_id) if claim.resumed else ()
    waiting = tx.inbox.waiting(user, conversation_id, turn.kind) if claim.has_items else ()
    items = prompt.select_items(waiting)
    is_requested = bool(routing.request_for(conversation, turn.kind))
    profile = claim.profile or deps.default_profile
    resumed = not is_requested and claim.resumed and tx.sessions.has_entries(turn)
    summary = tx.summaries.load(user, conversation_id) if conversation.summarized else None
    session, session_note = None, None
    if not is_requested:
        session, session_note = _choose_session(tx, deps, claim, summary, resumed=resumed)
    session_entries = () if session is None else tx.sessions.load(turn, session.id)
    recent = prompt.without_outside(recent, conversation.fresh_at)
    attempts = _earlier_attempts(tx, claim, items)
    repeated = [
        item for run in attempts for item in tx.inbox.served_by(user, conversation_id, run.id)
    ]
    if claim.resumed:
        attempts, repeated = [*attempts, claim.run], [*repeated, *served]
    awaited = jobs.retrieve_awaited(tx, user, claim.awaited_jobs)
    shown = [*repeated, *items]
    work = _read_work(tx, claim, items if claim.resumed else shown)
    past_calls = [entry for run in attempts for entry in tx.tool_calls.of_run(user, run.id)]
    memories: Sequence[Memory] = ()
    if not resumed and _may_recall(deps, claim, profile):
        memories = _recall(tx, conversation, shown, fresh=not session_entries)
    prepared = PreparedRun(
        conversation=conversation,
        profile=profile,
        is_for_one_run=is_requested,
        session=session,
        session_note=session_note,
        zone=zone,
        now=tx.now,
        recent=recent,
        items=items,
        repeated=repeated,
        served=served,
        awaited=awaited,
        missing_jobs=set(claim.awaited_jobs).difference(job.id for job in awaited),
        past_calls=past_calls,
        session_entries=session_entries,
        memories=memories,
        work=work,
        resumed=resumed,
        root=budget.root,
        over=verdict.over,
        must_wait=verdict.is_reserved and turn.kind is RunKind.BACKGROUND,
        summary=summary,
        sign_in=_describe_sign_in(tx, claim),
    )
    return _mark_session(tx, deps, turn, prepared) if deps.can_be_injected(profile) else prepared


def _describe_sign_in(tx: Tx, claim: Claim) -> str:
    connection_id = claim.run.connection
    if connection_id is None:
        return ""
    try:
        return sign_in.describe_return(tx.connections.load(claim.turn.user_id, connection_id))
    except NotFound:
        return sign_in.describe_return(None)


def _mark_session(tx: Tx, deps: Deps, turn: Turn, prepared: PreparedRun) -> PreparedRun:
    """Mark the session if it is given outside text; a new one that is given none has no mark."""
    conversation = prepared.conversation
    reads = _reads_outside_text(prepared)
    # Where an agent cannot be injected, tools do not record the outside text that they return.
    is_unrecorded = not deps.can_be_injected(conversation.profile)
    marks_new_session = reads or is_unrecorded or _repeats_outside_text(prepared)
    # Every prompt of background work repeats the state and the last messages.
    repeats = turn.kind is RunKind.BACKGROUND and not prepared.resumed
    marked = marks_new_session if repeats or not prepared.session_entries else reads
    # A run of another model leaves the session as it is.
    if prepared.session_entries or prepared.is_for_one_run:
        marked = marked or conversation.outside_read
    if marked != conversation.outside_read:
        tx.turns.mark_outside_text(turn, marked=marked)
        conversation = replace(conversation, outside_read=marked)
    return replace(prepared, conversation=conversation, marks_new_session=marks_new_session)


def _reads_outside_text(prepared: PreparedRun) -> bool:
    """Whether any prompt of this run contains outside text, in an old session too."""
    session, missed = prepared.session, list[Message]()
    if session is not None and (since := session.missed_since) is not None:
        missed = [message for message in prepared.recent if message.created_at >= since]
    return (
        prepared.conversation.kind is Kind.DISCOVERY
        or prompt.has_outside_text(missed, prepared.items, prepared.memories)
        or any(job.outside for job in prepared.awaited)
    )


def _repeats_outside_text(prepared: PreparedRun) -> bool:
    """Whether the prompt of a new session repeats outside text from before."""
    conversation, summary = prepared.conversation, prepared.summary
    return (
        prompt.has_outside_text(prepared.recent, [*prepared.repeated, *prepared.items])
        or bool(conversation.state.outside)
        or (summary is not None and summary.outside)
        or _may_quote_results(conversation, prepared.past_calls)
    )


def _may_quote_results(conversation: Conversation, past_calls: Sequence[JournalEntry]) -> bool:
    """Whether results of earlier attempts may be outside text; the journal does not say."""
    was_marked = conversation.outside_read or conversation.fresh_at is not None
    return bool(past_calls) and was_marked


def _may_recall(deps: Deps, claim: Claim, profile: str) -> bool:
    """Whether the user has memories, and the run may use them."""
    may_use = claim.conversation.may_use(Use.MEMORIES)
    return deps.can_be_injected(profile) and claim.has_memories and may_use


def _read_work(tx: Tx, claim: Claim, items: Sequence[Item]) -> WorkFacts:
    """Read how the work of a conversation is going, for a reply to a message of its user.

    Where there is no work, nothing is read.
    """
    turn = claim.turn
    has_own = facts.has_own_work(claim.conversation)
    if not (claim.has_children or has_own):
        return NO_FACTS
    if not any(item.kind is ItemKind.MESSAGE for item in items):
        return NO_FACTS
    work = tx.browse.work_facts(turn.user_id, turn.conversation_id, limit=facts.MAX_CHILDREN)
    return work if has_own else replace(work, own=None)


def _recall(
    tx: Tx, conversation: Conversation, items: Sequence[Item], *, fresh: bool
) -> Sequence[Memory]:
    """Find memories that fit; for a new session also the newest ones."""
    words = topic_words(prompt.topic_of(conversation, items))
    look = tx.memories.recall if fresh else tx.memories.search
    return prompt.select_memories(look(conversation.user_id, words, limit=_MAX_RECALLED))


def _choose_session(
    tx: Tx, deps: Deps, claim: Claim, summary: Summary | None, *, resumed: bool
) -> tuple[Session | None, str | None]:
    """Choose the session to resume; if the previous one is not resumed, say why."""
    conversation = claim.conversation
    session = conversation.session
    if session is None:
        return None, None
    if session.profile != (conversation.profile or deps.default_profile):
        return None, SESSION_OF_OTHER_MODEL
    is_too_long = session.tokens > deps.limits.context_of(conversation.kind)
    # A run that was interrupted continues in its session, also after a reply in between.
    if is_too_long and not resumed and not _is_interrupted(tx, claim):
        is_summarized = summary is not None and summary.session_id == session.id
        return None, SESSION_RENEWED if is_summarized else SESSION_CUT
    return session, None


def _is_interrupted(tx: Tx, claim: Claim) -> bool:
    conversation = claim.conversation
    return steps.has_run(tx, conversation, RunKind.BACKGROUND, RunStatus.QUEUED)


def _earlier_attempts(tx: Tx, claim: Claim, items: Sequence[Item]) -> Sequence[Run]:
    """Find the runs of the same kind that failed since the last one that did not, oldest first."""
    turn, failed = claim.turn, list[Run]()
    troubles = claim.conversation.failures + claim.conversation.crashes
    is_retry = any(
        item.kind is ItemKind.ANSWER and item.content.get("purpose") == Purpose.FAILURE
        for item in items
    )
    if turn.kind is RunKind.BACKGROUND and not (troubles or is_retry):
        return ()
    for other in tx.runs.history(turn.user_id, turn.conversation_id, limit=_MAX_RUNS_SEARCHED):
        stands_for_none = other.status is RunStatus.SKIPPED
        if other.id == turn.run_id or other.kind is not turn.kind or stands_for_none:
            continue
        if other.status is not RunStatus.FAILURE:
            break
        failed.insert(0, other)
    return failed
