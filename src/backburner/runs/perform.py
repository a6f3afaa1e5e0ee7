"""Perform one claimed run, up to its commit.

`perform` builds what the run needs, `_supervise` watches its deadline and its stop requests,
`_attempt` runs the agent under one profile, and `_turn` drives the engine. No transaction is open
while the agent works. The commit writes everything at once, and only if the run still holds its
turn.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import structlog

from backburner.actions import discovery
from backburner.actions.deps import Deps
from backburner.actions.models import own_keys
from backburner.actions.work import jobs
from backburner.core import prompt, retry, routing, tool_journal, transitions
from backburner.core.allowance import Usage
from backburner.core.connections import access
from backburner.core.conversation import Kind
from backburner.core.errors import (
    BadOutcome,
    EngineFailed,
    Fenced,
    ImagesRefused,
    ModelAccessDenied,
    ModelUnavailable,
    SessionGone,
    VaultLocked,
)
from backburner.core.ids import ConversationId
from backburner.core.outcome import OUTCOME_SCHEMA, Outcome, parse_outcome
from backburner.core.run import Failure, FailureKind, Item, RunKind, shorten_prompt
from backburner.core.validation import MAX_MESSAGE_CHARS, replace_invalid_characters
from backburner.core.work import discovery as discoveries
from backburner.core.work import summary
from backburner.core.work.facts import describe_facts
from backburner.core.work.jobs import summarize_jobs
from backburner.live.drafts import DraftWriter
from backburner.ports import (
    NO_CONNECTIONS,
    Blob,
    Claim,
    Connected,
    Offer,
    SessionEntries,
    TextDelta,
    ToolResult,
    TurnEnded,
    TurnRequest,
)
from backburner.runs import finish
from backburner.runs.attached import AttachedFiles, load_attached
from backburner.runs.budget import Budget
from backburner.runs.connection_troubles import (
    ConnectionTroubles,
    find_left_out,
    find_receipts,
)
from backburner.runs.prepare import SESSION_LOST, PreparedRun
from backburner.runs.project import NO_PROJECT, Project, describe_project
from backburner.runs.retrying_store import with_retries
from backburner.runs.run_result import RunResult
from backburner.runs.stopping import IMMEDIATE_REASONS, StopReason, StopRequests
from backburner.runs.tool_gate import Gate

#: For people; what was wrong with the outcome is for the model and the log.
NO_OUTCOME = (
    "The model {!r} did not end its work in the required form, twice in a row. It may be too small"
    " for background work: try another."
)
OWN_KEY_REFUSED = (
    "Your own key for {0} was refused: {1} Enter another with `backburner models key {0}`, or"
    " remove it with --remove."
)
NO_MODEL_HINT = "Run `backburner setup`, or name another profile in the settings."
#: How often a tool call in progress is checked, once the run is asked to stop.
_CALL_CHECK_SECONDS = 0.1
#: For messages of the user that a summary may copy.
_MESSAGES_SEARCHED = 200

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class RunAttempt:
    """A run in progress."""

    deps: Deps
    claim: Claim
    stop: StopRequests
    gate: Gate
    result: RunResult
    drafts: DraftWriter
    connected: Connected = NO_CONNECTIONS
    tools: Sequence[Offer] = ()
    #: The inbox items that the prompt is about.
    shown: Sequence[Item] = ()
    #: The folder that it works in, with its instructions.
    project: Project = NO_PROJECT
    #: Discovery only: the user's recent messages, tasks and repository.
    surroundings: str = ""
    session_id: str | None = None
    session_entries: list[str] = field(default_factory=list)
    #: The user's own key for the model, if it was used.
    own_key: str = field(default="", repr=False)


async def perform(deps: Deps, claim: Claim, prepared: PreparedRun, stop: StopRequests) -> str:
    """Perform a claimed run and commit it; returns how it ended, for log and metrics."""
    turn = claim.turn
    deps = with_retries(deps, stop)
    profile = prepared.profile
    log = _log.bind(run=turn.run_id, conversation=turn.conversation_id, kind=turn.kind.value)
    log.info("run.started", profile=profile, epoch=turn.epoch, resumed=claim.resumed)
    started_at = asyncio.get_running_loop().time()
    result = _begin_result(prepared)
    gate = Gate(
        deps.store,
        turn,
        stop,
        find_receipts(prepared.past_calls, turn, [*prepared.served, *prepared.items]),
        Budget(deps, turn, prepared.root, probes=profile if claim.in_outage else None),
        can_be_injected=deps.can_be_injected(profile),
        lists_calls=turn.kind is RunKind.BACKGROUND and transitions.is_test_run(claim.conversation),
        check_folder=lambda: deps.toolbox.check_folder(claim.conversation),
        read_line=deps.read_line,
        troubles=ConnectionTroubles(left_out=find_left_out([*prepared.served, *prepared.items])),
        files=deps.limits.files,
        over=prepared.over,
    )
    drafts = DraftWriter(deps, turn)
    attempt = RunAttempt(deps, claim, stop, gate, result, drafts)
    drafts.open()
    try:
        if prepared.over is not None:
            stop.request(StopReason.SPENT)
        elif prepared.must_wait:
            stop.request(StopReason.BUDGET_RESERVED)
        else:
            async with _connect(attempt) as attempt.connected:
                await _supervise(attempt, prepared)
        await gate.ends.settle()
        ending = await finish.commit(deps, claim, stop, gate, result)
    except Fenced:
        log.warning("run.fenced")
        return "fenced"
    else:
        log.info(
            "run.finished",
            outcome=ending,
            profile=result.profile,
            seconds=round(asyncio.get_running_loop().time() - started_at, 3),
            tokens=gate.tokens,
            failure=result.failure and result.failure.kind.value,
        )
        return ending
    finally:
        await deps.toolbox.end_run(turn)
        await drafts.close()


def _connect(attempt: RunAttempt) -> AbstractAsyncContextManager[Connected]:
    """Offer the connections of a run; those who have none pay nothing for them."""
    claim = attempt.claim
    if not claim.has_connections or not access.has_any(claim.conversation):
        return nullcontext(NO_CONNECTIONS)
    return attempt.deps.toolbox.connect(claim.turn, claim.conversation, attempt.result.all_items)


def _begin_result(prepared: PreparedRun) -> RunResult:
    return RunResult(
        items=prepared.items,
        served_before=prepared.served,
        hand_overs_before=tool_journal.find_hand_overs(prepared.past_calls),
        zone=prepared.zone,
        root=prepared.root,
        claimed_at=prepared.now,
        profile=prepared.profile,
        is_for_one_run=prepared.is_for_one_run,
        session=prepared.session,
        session_note=prepared.session_note,
    )


async def give_up(deps: Deps, claim: Claim, stop: StopRequests) -> None:
    """End a run that could not be prepared, as a failure that its owner sees."""
    turn = claim.turn
    deps = with_retries(deps, stop)
    items = await deps.store.transact(
        lambda tx: tx.inbox.waiting(turn.user_id, turn.conversation_id, turn.kind)
    )
    failure = Failure(FailureKind.ENGINE, "Something unexpected went wrong before it began.")
    profile = claim.profile or deps.default_profile
    result = RunResult(
        items=items, zone="UTC", root=turn.conversation_id, failure=failure, profile=profile
    )
    gate = Gate(deps.store, turn, stop, (), Budget(deps, turn, result.root))
    await finish.commit(deps, claim, stop, gate, result)
    _log.warning("run.finished", run=turn.run_id, outcome="failure", failure="not prepared")


async def _supervise(attempt: RunAttempt, prepared: PreparedRun) -> None:
    """Run the agent until it is done, out of time, or asked to stop."""
    limits, stop, run_id = attempt.deps.limits, attempt.stop, attempt.claim.run.id
    limit = prepared.conversation.run_timeout or limits.run_timeout
    working = asyncio.create_task(_attempt(attempt, prepared))
    try:
        await _watch(attempt, working, limit)
    finally:
        if not working.done():
            working.cancel()
            is_shutdown = stop.reason is StopReason.SHUTDOWN
            grace = limits.shutdown_timeout if is_shutdown else limits.stop_timeout
            await asyncio.wait({working}, timeout=grace.total_seconds())
    if not working.done():
        _log.error("run.agent_does_not_end", run=run_id)
    elif not working.cancelled() and (error := working.exception()) is not None:
        if isinstance(error, Fenced):
            raise error
        _log.error("run.agent_failed", run=run_id, exc_info=error)
        attempt.result.failure = Failure(
            FailureKind.ENGINE, "Something unexpected went wrong in the agent."
        )
    if stop.reason is StopReason.FENCED:
        raise Fenced


async def _watch(attempt: RunAttempt, working: "asyncio.Task[None]", limit: timedelta) -> None:
    """Wait until the agent is done, or has to be interrupted.

    A stop request waits for the tool call in progress; without one the agent has a grace period.
    """
    loop = asyncio.get_running_loop()
    stop, grace = attempt.stop, attempt.deps.limits.yield_timeout.total_seconds()
    deadline = loop.call_later(limit.total_seconds(), stop.request, StopReason.TIMEOUT)
    requested = asyncio.create_task(stop.wait())
    interrupt_at: float | None = None
    try:
        while not working.done():
            reason = stop.reason
            if reason in IMMEDIATE_REASONS:
                return
            if reason is None or attempt.gate.in_call:
                interrupt_at = None
            elif interrupt_at is None:
                interrupt_at = loop.time() + grace
            elif loop.time() >= interrupt_at:
                return
            # The end of a call sets no event, so it is polled.
            poll = None if reason is None else min(_CALL_CHECK_SECONDS, grace)
            await asyncio.wait(
                {working, requested}, timeout=poll, return_when=asyncio.FIRST_COMPLETED
            )
            if requested.done():
                requested = asyncio.create_task(stop.wait())
    finally:
        deadline.cancel()
        requested.cancel()


async def _attempt(attempt: RunAttempt, prepared: PreparedRun, *, escalated: bool = False) -> None:
    """Run the agent under its profile; if that fails, once more under the fallback profile."""
    result, turn = attempt.result, attempt.claim.turn
    try:
        ended = await _answer(attempt, prepared)
        if ended is not None and turn.kind is RunKind.REPLY:
            result.text = prompt.truncate(replace_invalid_characters(ended.text), MAX_MESSAGE_CHARS)
            result.is_done = True
        elif ended is not None:
            await _read_outcome(attempt, ended)
        if result.is_done:
            await _summarize(attempt)
    except EngineFailed as error:
        result.failure = _explain_failure(attempt, error)
    await attempt.gate.ends.settle()
    if result.failure is None or attempt.stop.reason is not None:
        return
    if _is_in_outage(result) or result.profile in result.own_keys:
        # It waits: nobody pays for another model because of that.
        return
    escalated = escalated or prepared.is_for_one_run
    other = routing.escalate(attempt.deps.routes, prepared.conversation, escalated=escalated)
    if other is None or other not in attempt.deps.engines:
        return
    _log.info("run.escalated", run=turn.run_id, profile=other, failed_profile=result.profile)
    calls = await attempt.deps.store.transact(
        lambda tx: tx.tool_calls.of_run(turn.user_id, turn.run_id)
    )
    first, profile = result.failure, result.profile
    result.failure, result.text = None, ""
    result.escalated_from, result.profile = profile, other
    result.own_model_answered = attempt.gate.tokens > 0
    # Its answers say nothing about the model that failed.
    attempt.gate.budget = replace(attempt.gate.budget, probes=None)
    earlier = [entry for entry in prepared.past_calls if entry.run_id != turn.run_id]
    fresh = replace(prepared, session=None, session_entries=(), past_calls=[*earlier, *calls])
    await _mark_new_session(attempt, prepared)
    await _attempt(attempt, fresh, escalated=True)
    if _is_in_outage(result):
        # The other model was of no use: the run has failed under its own.
        result.failure, result.profile, result.escalated_from = first, profile, None


def _explain_failure(attempt: RunAttempt, error: EngineFailed) -> Failure:
    result, kind, message = attempt.result, _failure_kind(error), str(error)
    if kind is FailureKind.ACCESS_DENIED and result.profile in result.own_keys:
        # Only its owner can mend it, and is told like of any failure: it is no outage for others.
        kind, message = FailureKind.MODEL, OWN_KEY_REFUSED.format(result.profile, error.message)
    if attempt.own_key:
        # Servers quote part of a request, or all of it.
        message = message.replace(attempt.own_key, "…")
    return Failure(kind, message, permanent=error.permanent, retry_after=error.retry_after)


def _is_in_outage(result: RunResult) -> bool:
    return result.failure is not None and result.failure.kind in retry.OUTAGE_KINDS


def _failure_kind(error: EngineFailed) -> FailureKind:
    match error:
        case ModelUnavailable():
            return FailureKind.UNAVAILABLE
        case ModelAccessDenied():
            return FailureKind.ACCESS_DENIED
        case _:
            return FailureKind.MODEL


async def _answer(attempt: RunAttempt, prepared: PreparedRun) -> TurnEnded | None:
    """Do the agent's turn, in its session if that still exists; None: it was asked to stop."""
    if not await _has_connections(attempt):
        return None
    conversation = prepared.conversation
    attempt.tools = [
        *await attempt.deps.toolbox.offers(attempt.claim.turn, conversation),
        *await attempt.connected.offers(),
    ]
    attempt.project = await describe_project(attempt.deps, conversation)
    if conversation.kind is Kind.DISCOVERY:
        attempt.surroundings = await _look_around(attempt.deps, prepared)
    attempt.session_id = None if prepared.session is None else prepared.session.id
    attempt.session_entries = list(prepared.session_entries)
    is_fresh = prepared.session is None or not prepared.session_entries
    try:
        return await _begin(attempt, prepared, fresh=is_fresh)
    except SessionGone:
        if prepared.session is None:
            raise
        if conversation.resuming:
            raise EngineFailed(
                jobs.JOB_SESSION_GONE, hint=jobs.JOB_SESSION_GONE_HINT, permanent=True
            ) from None
    attempt.result.session, attempt.result.session_note = None, SESSION_LOST
    attempt.session_id, attempt.session_entries = None, []
    await _mark_new_session(attempt, prepared)
    return await _begin(attempt, prepared, fresh=True)


async def _begin(attempt: RunAttempt, prepared: PreparedRun, *, fresh: bool) -> TurnEnded | None:
    """Do the first turn, with the files of its messages; if images are refused, without them."""
    is_continued = prepared.resumed and not fresh
    items = prepared.items if is_continued else [*prepared.repeated, *prepared.items]
    user = attempt.claim.turn.user_id
    files = await load_attached(attempt.deps.store, user, items, attempt.tools)
    try:
        text = _prompt(attempt, prepared, files, fresh=fresh)
        attempt.result.prompt = shorten_prompt(replace_invalid_characters(text))
        return await _turn(attempt, text, files.images)
    except ImagesRefused:
        _log.warning("run.images_refused", run=attempt.claim.run.id, images=len(files.images))
    files = files.without_images()
    return await _turn(attempt, _prompt(attempt, prepared, files, fresh=fresh))


async def _has_connections(attempt: RunAttempt) -> bool:
    """Check that work can use what its brief names, before it is done without that.

    How the run ends otherwise is decided from the record of its gate.
    """
    troubles = attempt.gate.troubles
    if attempt.claim.turn.kind is not RunKind.BACKGROUND:
        return True
    lacking = await attempt.connected.find_lacking(besides=troubles.left_out)
    troubles.unusable = lacking.unusable
    if lacking.signed_out and not troubles.unusable:
        troubles.signed_out = {one.name: one.id for one in lacking.signed_out}
        attempt.stop.request(StopReason.SIGNED_OUT)
    return not (troubles.unusable or lacking.signed_out)


async def _mark_new_session(attempt: RunAttempt, prepared: PreparedRun) -> None:
    """Mark a session that is begun after the run was prepared, if its prompt has outside text."""
    if prepared.marks_new_session:
        turn = attempt.claim.turn
        await attempt.deps.store.transact(lambda tx: tx.turns.mark_outside_text(turn))


async def _look_around(deps: Deps, prepared: PreparedRun) -> str:
    user = prepared.conversation.user_id
    conversation = prepared.conversation
    access = await deps.store.read(lambda tx: discovery.check_project(tx, deps, conversation))
    repository = ""
    if access.may_look:
        repository = await deps.describe_repository(
            conversation, may_sign_in=access.may_sign_in, folders=access.folders
        )
    return await deps.store.transact(
        lambda tx: discovery.describe_surroundings(
            tx, user, zone=prepared.zone, repository=repository
        )
    )


async def _read_outcome(attempt: RunAttempt, ended: TurnEnded) -> None:
    """Parse the outcome of a background run; the agent may repair an invalid one once."""
    result = attempt.result
    try:
        result.outcome = _parse(attempt, ended)
    except BadOutcome as error:
        repaired = await _turn(attempt, prompt.for_repair(error))
        if repaired is None:
            return
        try:
            result.outcome = _parse(attempt, repaired)
        except BadOutcome as again:
            _log.warning("run.outcome_refused", run=attempt.claim.run.id, error=str(again))
            message = NO_OUTCOME.format(result.profile)
            result.failure = Failure(FailureKind.INCOMPLETE, message)
            return
    result.is_done = True


def _parse(attempt: RunAttempt, ended: TurnEnded) -> Outcome:
    outcome = parse_outcome(ended.text if ended.outcome is None else ended.outcome)
    is_discovery = attempt.claim.conversation.kind is Kind.DISCOVERY
    return discoveries.keep_state_only(outcome) if is_discovery else outcome


async def _summarize(attempt: RunAttempt) -> None:
    """Ask the agent for a summary of a session that has become too long."""
    result, claim, deps = attempt.result, attempt.claim, attempt.deps
    session, limit = result.session, deps.limits.context_of(claim.conversation.kind)
    is_over = session is not None and session.tokens > limit
    if session is None or not is_over or result.escalated_from or attempt.stop.reason is not None:
        return
    turn = claim.turn
    messages = await deps.store.read(
        lambda tx: tx.messages.recent(turn.user_id, turn.conversation_id, limit=_MESSAGES_SEARCHED)
    )
    offered = summary.offer_messages(messages)
    asked = _request(attempt, summary.request_summary(offered))
    ended: TurnEnded | None = None
    engine = deps.engines[result.profile]
    try:
        request = await _with_own_key(attempt, replace(asked, schema=summary.SUMMARY_SCHEMA))
        async with aclosing(engine.run(request, _Mute(attempt.gate))) as said:
            async for event in said:
                if isinstance(event, TurnEnded):
                    ended = event
    except EngineFailed as error:
        _log.warning("run.summary_failed", run=turn.run_id, error=str(error))
    if ended is not None:
        result.summary = summary.parse_summary(
            ended.outcome, session_id=session.id, offered=offered
        )


@dataclass(frozen=True, slots=True)
class _Mute:
    """The gate of a turn that only writes a summary: it pays, and makes no calls."""

    gate: Gate

    async def call(self, offer: Offer, arguments: Mapping[str, Any]) -> ToolResult:
        del arguments
        return ToolResult(f"{offer.tool.name} was not called: write the summary.", failed=True)

    async def pay(self, model: str, usage: Usage) -> bool:
        return await self.gate.pay(model, usage)


async def _turn(attempt: RunAttempt, text: str, images: Sequence[Blob] = ()) -> TurnEnded | None:
    """Drive the engine through one turn; None: it was asked to stop."""
    result = attempt.result
    engine = attempt.deps.engines.get(result.profile)
    if engine is None:
        raise EngineFailed("No model is set up for this.", hint=NO_MODEL_HINT, permanent=True)
    request = replace(_request(attempt, text), images=images)
    request = await _with_own_key(attempt, request)
    async with aclosing(engine.run(request, attempt.gate)) as events:
        async for event in events:
            match event:
                case TextDelta(text):
                    piece = replace_invalid_characters(text)
                    result.text += piece
                    attempt.drafts.add(piece)
                    # Yield to other tasks, even if the model writes without a pause.
                    await asyncio.sleep(0)
                case SessionEntries(session_id, entries, tokens, calls):
                    entries = tuple(replace_invalid_characters(entry) for entry in entries)
                    attempt.session_id = session_id
                    attempt.session_entries += entries
                    # Another profile has a session of its own, for this run only.
                    if result.escalated_from is None and not result.is_for_one_run:
                        result.remember(session_id, entries, tokens)
                        attempt.gate.note_session(calls)
                case TurnEnded():
                    return event if attempt.stop.reason is None else None
    return None


async def _with_own_key(attempt: RunAttempt, request: TurnRequest) -> TurnRequest:
    """Use the user's own key for the model, if there is one. The engine was taken just before."""
    profile, user = attempt.result.profile, attempt.claim.turn.user_id
    try:
        key = await own_keys.find_key(attempt.deps, user, profile)
    except EngineFailed:
        # Not with another key, or another model: nobody else pays for this.
        attempt.result.own_keys.add(profile)
        raise
    except VaultLocked as error:
        attempt.result.own_keys.add(profile)
        raise EngineFailed(
            f"Your own key for {profile} cannot be opened. {error.message}", hint=error.hint
        ) from None
    if key is None:
        return request
    attempt.own_key = key
    attempt.result.own_keys.add(profile)
    # Its answers say nothing about the key in the settings.
    attempt.gate.budget = replace(attempt.gate.budget, probes=None)
    return replace(request, own_key=key)


def _request(attempt: RunAttempt, text: str) -> TurnRequest:
    claim = attempt.claim
    return TurnRequest(
        conversation=claim.conversation,
        kind=claim.turn.kind,
        prompt=text,
        items=attempt.shown,
        session_id=attempt.session_id,
        memory=tuple(attempt.session_entries),
        tools=attempt.tools,
        schema=OUTCOME_SCHEMA if claim.turn.kind is RunKind.BACKGROUND else None,
        folder_added_at=attempt.project.added_at,
    )


def _prompt(
    attempt: RunAttempt, prepared: PreparedRun, files: AttachedFiles, *, fresh: bool
) -> str:
    conversation, kind = prepared.conversation, attempt.claim.turn.kind
    attempt.shown = prepared.items
    if prepared.resumed and not fresh:
        text = prompt.for_continuation(
            conversation,
            kind,
            items=prepared.items,
            recent=prepared.recent,
            job_summary=_awaited_jobs(prepared),
            now=prepared.now,
            zone=prepared.zone,
        )
        text = prompt.prepend_attachments(files.text, text)
        return _prepend(attempt, prepared, prompt.prepend_sign_in(prepared.sign_in, text))
    # The agent starts over, and does not remember what it did in this run itself.
    attempt.gate.admission.past_calls = prepared.past_calls
    attempt.shown = items = [*prepared.repeated, *prepared.items]
    done_before = tool_journal.describe_done_calls(prepared.past_calls)
    if kind is RunKind.BACKGROUND:
        text = prompt.for_background(
            conversation,
            recent=prepared.recent,
            items=items,
            done_before=done_before,
            now=prepared.now,
            zone=prepared.zone,
        )
    else:
        text = prompt.for_reply(
            conversation,
            recent=prepared.recent,
            items=items,
            done_before=done_before,
            now=prepared.now,
            zone=prepared.zone,
            fresh=fresh,
        )
    text = prompt.prepend_attachments(files.text, text)
    if fresh and prepared.summary is not None:
        text = f"{summary.format_summary(prepared.summary)}\n\n{text}"
    text = prompt.prepend_job_summary(_awaited_jobs(prepared), text)
    text = _with_instructions(attempt, text, fresh=fresh)
    if fresh and attempt.project.text:
        text = f"{attempt.project.text}\n\n{text}"
    return _prepend(attempt, prepared, text)


def _with_instructions(attempt: RunAttempt, text: str, *, fresh: bool) -> str:
    """Add the instructions of the agent, unless its session knows them from an earlier reply."""
    if not fresh and attempt.claim.turn.kind is RunKind.REPLY:
        return text
    # An agent that was removed from the settings has none; its work keeps the tools it had.
    agent = attempt.deps.agents.get(attempt.claim.conversation.agent or "")
    return prompt.prepend_instructions("" if agent is None else agent.instructions, text)


def _prepend(attempt: RunAttempt, prepared: PreparedRun, text: str) -> str:
    is_marked = prepared.conversation.outside_read
    work = describe_facts(prepared.work, zone=prepared.zone, is_marked=is_marked)
    text = prompt.prepend_work(work, text)
    interrupted = tool_journal.describe_interrupted_calls(prepared.past_calls)
    text = prompt.prepend_interrupted_calls(interrupted, text)
    text = prompt.prepend_connections(attempt.connected.note, text)
    return prompt.prepend_memories(prepared.memories, text, surroundings=attempt.surroundings)


def _awaited_jobs(prepared: PreparedRun) -> str:
    """Summarise the jobs that the run waited for."""
    if not prepared.awaited and not prepared.missing_jobs:
        return ""
    shown = {ConversationId(item.content.get("conversation_id", "")) for item in prepared.items}
    return summarize_jobs(prepared.awaited, missing=prepared.missing_jobs, shown=shown)
