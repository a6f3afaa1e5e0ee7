"""One run: what was claimed is prepared, the agent works, and what came of it is committed.

No transaction is open while the agent works. Whatever it did counts once it is committed, all of it
together, and only if the turn is still this run's.
"""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import timedelta

import structlog

from backburner.actions import discovery
from backburner.actions.deps import Deps
from backburner.actions.work import jobs
from backburner.core import prompt, routing, tool_journal
from backburner.core.conversation import MAX_MESSAGE_CHARS, Kind
from backburner.core.errors import BadOutcome, EngineFailed, Fenced, SessionGone
from backburner.core.ids import ConversationId
from backburner.core.outcome import OUTCOME_SCHEMA, Outcome, parse_outcome
from backburner.core.run import Failure, FailureKind, Item, RunKind
from backburner.core.validation import replace_invalid_characters
from backburner.core.work import discovery as discoveries
from backburner.core.work.jobs import summarize_jobs
from backburner.live.drafts import DraftWriter
from backburner.ports import Claim, Offer, SessionEntries, TextDelta, TurnEnded, TurnRequest
from backburner.runs import finish
from backburner.runs.budget import Budget
from backburner.runs.finish import RunResult
from backburner.runs.gate import Gate
from backburner.runs.prepare import SESSION_LOST, PreparedRun
from backburner.runs.retrying_store import with_retries
from backburner.runs.stopping import IMMEDIATE_REASONS, StopReason, StopRequests

NO_MODEL_HINT = "Run `backburner setup`, or name another in the settings."

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class RunAttempt:
    """A run under way."""

    deps: Deps
    claim: Claim
    signals: StopRequests
    gate: Gate
    result: RunResult
    drafts: DraftWriter
    tools: Sequence[Offer] = ()
    #: What the prompt is about.
    shown: Sequence[Item] = ()
    #: What there is to find work in, for one that looks for some.
    around: str = ""
    session_id: str | None = None
    memory: list[str] = field(default_factory=list)


async def perform(deps: Deps, claim: Claim, known: PreparedRun, signals: StopRequests) -> None:
    """Do a run that was claimed and prepared, up to its commit."""
    turn = claim.turn
    deps = with_retries(deps, signals)
    drafts, lost = DraftWriter(deps, turn), False
    try:
        profile = claim.conversation.profile or deps.default_profile
        result = RunResult(items=known.items, zone=known.zone, root=known.root, profile=profile)
        result.session, result.renewed, result.before = known.session, known.renewed, known.served
        earlier = [entry for entry in known.before if entry.run_id != turn.run_id]
        purse = Budget(deps, turn, known.root)
        sways = deps.can_be_injected(profile)
        gate = Gate(deps.store, turn, signals, earlier, purse, sways=sways, over=known.over)
        attempt = RunAttempt(deps, claim, signals, gate, result, drafts)
        if known.over is not None:
            signals.give(StopReason.SPENT)
        elif known.waits:
            signals.give(StopReason.WAITS)
        else:
            await _work(attempt, known)
        lost = signals.reason is StopReason.FENCED
        if not lost:
            await finish.commit(deps, claim, signals, gate, result)
    except Fenced:
        lost = True
    finally:
        await drafts.close()
    if lost:
        _log.warning("another holder has taken over", run=turn.run_id)


async def give_up(deps: Deps, claim: Claim, signals: StopRequests) -> None:
    """End a run that could not be prepared: it failed, as far as its owner is concerned."""
    turn = claim.turn
    deps = with_retries(deps, signals)
    items = await deps.store.transact(
        lambda tx: tx.inbox.waiting(turn.user_id, turn.conversation_id, turn.kind)
    )
    failure = Failure(FailureKind.ENGINE, "Something unexpected went wrong before it began.")
    result = RunResult(items=items, zone="UTC", root=turn.conversation_id, failure=failure)
    gate = Gate(deps.store, turn, signals, (), Budget(deps, turn, result.root))
    await finish.commit(deps, claim, signals, gate, result)


async def _work(attempt: RunAttempt, known: PreparedRun) -> None:
    """Let the agent work until it is done, or there is a reason to end."""
    limit = known.conversation.run_timeout or attempt.deps.limits.run_timeout
    working = asyncio.create_task(_let_agent_work(attempt, known))
    try:
        await _watch(attempt, working, limit)
    finally:
        await _end(attempt, working)
    if not working.done() or working.cancelled():
        return
    error = working.exception()
    if isinstance(error, Fenced):
        raise error
    if error is not None:
        _log.error("the agent failed", run=attempt.claim.run.id, exc_info=error)
        attempt.result.failure = Failure(
            FailureKind.ENGINE, "Something unexpected went wrong in the agent."
        )


async def _watch(attempt: RunAttempt, working: "asyncio.Task[None]", limit: timedelta) -> None:
    """Wait until the agent is done, or has to be stopped."""
    loop = asyncio.get_running_loop()
    signals, patience = attempt.signals, attempt.deps.limits.patience.total_seconds()
    deadline = loop.call_later(limit.total_seconds(), signals.give, StopReason.TIMEOUT)
    heard = asyncio.create_task(signals.wait())
    lost_patience: float | None = None
    try:
        while not working.done():
            reason = signals.reason
            if reason in IMMEDIATE_REASONS:
                return
            if reason is None or attempt.gate.in_call:
                lost_patience = None
            elif lost_patience is None:
                lost_patience = loop.time() + patience
            elif loop.time() >= lost_patience:
                return
            # A call that ends is no signal, so that it is looked at now and then.
            pause = None if reason is None else min(0.1, patience)
            await asyncio.wait({working, heard}, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
            if heard.done():
                heard = asyncio.create_task(signals.wait())
    finally:
        deadline.cancel()
        heard.cancel()


async def _end(attempt: RunAttempt, working: "asyncio.Task[None]") -> None:
    """End what the agent does, and everything it started."""
    if working.done():
        return
    working.cancel()
    limits, leaving = attempt.deps.limits, attempt.signals.reason is StopReason.LEAVING
    limit = limits.last_words_leaving if leaving else limits.last_words
    await asyncio.wait({working}, timeout=limit.total_seconds())
    if not working.done():
        _log.error("the agent does not end", run=attempt.claim.run.id)


async def _let_agent_work(attempt: RunAttempt, known: PreparedRun) -> None:
    """Let the agent work; if it cannot, and another may do better, let that one, once."""
    await _try(attempt, known)
    result = attempt.result
    if result.failure is None or attempt.signals.reason is not None:
        return
    other = routing.escalate(attempt.deps.routes, known.conversation, escalated=False)
    if other is None or other not in attempt.deps.engines:
        return
    _log.info("another model is tried", run=attempt.claim.run.id, profile=other)
    turn = attempt.claim.turn
    done = await attempt.deps.store.transact(
        lambda tx: tx.tool_calls.of_run(turn.user_id, turn.run_id)
    )
    result.failure, result.text = None, ""
    result.escalated_from, result.profile = result.profile, other
    before = [entry for entry in known.before if entry.run_id != turn.run_id]
    await _try(attempt, replace(known, session=None, memory=(), before=[*before, *done]))


async def _try(attempt: RunAttempt, known: PreparedRun) -> None:
    """Let the agent work under the profile that is set, and note how it failed if it did."""
    try:
        await _do(attempt, known)
    except EngineFailed as error:
        attempt.result.failure = Failure(
            FailureKind.MODEL, str(error), permanent=error.permanent, retry_after=error.retry_after
        )


async def _do(attempt: RunAttempt, known: PreparedRun) -> None:
    attempt.tools = await attempt.deps.toolbox.offers(attempt.claim.turn, known.conversation)
    attempt.around = await _look_around(attempt, known)
    attempt.session_id = None if known.session is None else known.session.id
    attempt.memory = list(known.memory)
    fresh = known.session is None or not known.memory
    try:
        ended = await _turn(attempt, _whole_prompt(attempt, known, fresh=fresh))
    except SessionGone:
        if known.session is None:
            raise
        if known.conversation.resuming:
            raise EngineFailed(
                jobs.JOB_SESSION_GONE, hint=jobs.JOB_SESSION_GONE_HINT, permanent=True
            ) from None
        attempt.result.session, attempt.result.renewed = None, SESSION_LOST
        attempt.session_id, attempt.memory = None, []
        ended = await _turn(attempt, _whole_prompt(attempt, known, fresh=True))
    if ended is None:
        return
    if attempt.claim.turn.kind is RunKind.REPLY:
        attempt.result.text = prompt.truncate(
            replace_invalid_characters(ended.text), MAX_MESSAGE_CHARS
        )
        attempt.result.is_done = True
    else:
        await _take_outcome(attempt, ended)


async def _look_around(attempt: RunAttempt, known: PreparedRun) -> str:
    if known.conversation.kind is not Kind.DISCOVERY:
        return ""
    deps, user = attempt.deps, known.conversation.user_id
    repository = await deps.look_at_repository(user)
    return await deps.store.transact(
        lambda tx: discovery.look_around(tx, user, zone=known.zone, repository=repository)
    )


async def _take_outcome(attempt: RunAttempt, ended: TurnEnded) -> None:
    """Read how a background run ended; if that cannot be, have it said once more."""
    try:
        attempt.result.outcome = _outcome(attempt, ended)
    except BadOutcome as error:
        repaired = await _turn(attempt, prompt.for_repair(error))
        if repaired is None:
            return
        try:
            attempt.result.outcome = _outcome(attempt, repaired)
        except BadOutcome as again:
            attempt.result.failure = Failure(FailureKind.INCOMPLETE, str(again))
            return
    attempt.result.is_done = True


def _outcome(attempt: RunAttempt, ended: TurnEnded) -> Outcome:
    outcome = parse_outcome(ended.text if ended.outcome is None else ended.outcome)
    is_discovery = attempt.claim.conversation.kind is Kind.DISCOVERY
    return discoveries.keep_state_only(outcome) if is_discovery else outcome


async def _turn(attempt: RunAttempt, said: str) -> TurnEnded | None:
    """Let the agent do one turn; None: it was told to stop."""
    claim, deps = attempt.claim, attempt.deps
    engine = deps.engines.get(attempt.result.profile)
    if engine is None:
        raise EngineFailed("No model is set up for this.", hint=NO_MODEL_HINT, permanent=True)
    is_background = claim.turn.kind is RunKind.BACKGROUND
    request = TurnRequest(
        conversation=claim.conversation,
        kind=claim.turn.kind,
        prompt=said,
        items=attempt.shown,
        session_id=attempt.session_id,
        memory=tuple(attempt.memory),
        tools=attempt.tools,
        schema=OUTCOME_SCHEMA if is_background else None,
    )
    async with aclosing(engine.run(request, attempt.gate)) as events:
        async for event in events:
            match event:
                case TextDelta(text):
                    attempt.result.text += replace_invalid_characters(text)
                    attempt.drafts.add(replace_invalid_characters(text))
                    # However fast it talks, others have their turn.
                    await asyncio.sleep(0)
                case SessionEntries(session_id, entries, tokens):
                    entries = tuple(replace_invalid_characters(entry) for entry in entries)
                    attempt.session_id = session_id
                    attempt.memory += entries
                    # What helps out once has a session of its own, for that once.
                    if attempt.result.escalated_from is None:
                        attempt.result.remember(session_id, entries, tokens)
                case TurnEnded():
                    return event if attempt.signals.reason is None else None
    return None


def _whole_prompt(attempt: RunAttempt, known: PreparedRun, *, fresh: bool) -> str:
    said = _prompt(attempt, known, fresh=fresh)
    return prompt.prepend_memories(known.memories, said, surroundings=attempt.around)


def _prompt(attempt: RunAttempt, known: PreparedRun, *, fresh: bool) -> str:
    conversation = known.conversation
    attempt.shown = known.items
    if known.goes_on and not fresh:
        return prompt.for_continuation(
            conversation,
            attempt.claim.turn.kind,
            items=known.items,
            job_summary=_waited(known),
            now=known.now,
            zone=known.zone,
        )
    # It starts over, and does not remember what it did itself.
    attempt.gate.before = known.before
    items, done_before = (
        [*known.repeated, *known.items],
        tool_journal.describe_done_calls(known.before),
    )
    attempt.shown = items
    if attempt.claim.turn.kind is RunKind.BACKGROUND:
        told = prompt.for_background(
            conversation,
            recent=known.recent,
            items=items,
            done_before=done_before,
            now=known.now,
            zone=known.zone,
        )
    else:
        told = prompt.for_reply(
            conversation,
            recent=known.recent,
            items=items,
            done_before=done_before,
            now=known.now,
            zone=known.zone,
            fresh=fresh,
        )
    return prompt.prepend_job_summary(_waited(known), told)


def _waited(known: PreparedRun) -> str:
    """Say how the jobs stand that the run waited for."""
    if not known.awaited and not known.gone:
        return ""
    told = {ConversationId(item.content.get("conversation_id", "")) for item in known.items}
    return summarize_jobs(known.awaited, missing=known.gone, shown=told)
