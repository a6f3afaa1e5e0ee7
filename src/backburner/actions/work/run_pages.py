"""The page of a run, and the statistics of the last runs of a conversation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from backburner.actions import spending
from backburner.actions.browse import Page, make_page
from backburner.actions.deps import Deps
from backburner.actions.waits.shown import describe_waits
from backburner.core import allowance
from backburner.core.allowance import AllowanceScope, AllowanceState, Amount
from backburner.core.content.excerpt import make_excerpt
from backburner.core.conversation import Conversation, Message, MessageRole
from backburner.core.ids import CallId, ConversationId, RunId, UserId
from backburner.core.run import Progress, Run, RunKind, RunStatus
from backburner.core.work import run_facts, timeline
from backburner.core.work.activity import CallSummary
from backburner.core.work.call_summary import summarize_arguments
from backburner.core.work.run_facts import RunCause, RunMeasure, RunMedians, RunOutcome
from backburner.core.work.timeline import AskedQuestion, Timeline
from backburner.ports import PageKey, RunCost, RunRow, SpendingState, ToolCallRow, Tx

#: Runs of a conversation that its statistics are about.
MAX_MEASURED_RUNS = 20
#: Runs before and after a run that are searched for other tries at the same work.
_MAX_SEARCHED = 20
_MAX_MODEL_CALLS = 1_000
_MAX_QUESTIONS = 50
#: The last messages, among which the report of a run is looked for.
_MAX_REPORTS = 100
#: A run that was handed back is told something each time that it goes on.
_MAX_PROMPTS = 10
#: Messages that are read for each run of a history.
_MESSAGES_PER_RUN = 4
NO_COST = RunCost(Amount(), output=0, cached=0, calls=0, is_all_priced=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    run: Run
    #: Of its conversation.
    title: str
    conversation: Conversation
    zone: str
    calls: Sequence[ToolCallRow]
    causes: Sequence[RunCause]
    outcome: RunOutcome
    #: How long it worked, without its waits.
    worked: timedelta
    cost: RunCost
    models: Sequence[str]
    #: The time limit of each part of it.
    time_limit: timedelta
    #: As they are now, with what was spent on the day of the run.
    allowances: Sequence[AllowanceState]
    account: SpendingState
    timeline: Timeline
    asked: Sequence[AskedQuestion]
    #: The runs for the same work that failed before it, oldest first, and the next one after it.
    tries: Sequence[Run]
    next_try: Run | None
    #: The runs of the conversation beside it, skipped ones left out.
    previous: Run | None
    following: Run | None
    prompts: Sequence[str]
    #: What it told its user; None: nothing, or too long ago to be looked for.
    report: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRun:
    """A run in a list of all conversations."""

    row: RunRow
    spent: Amount
    #: How long it worked, without its waits.
    worked: timedelta
    #: What it says that it is doing.
    progress: Progress | None
    #: Of one that was handed back.
    waits_for: str | None
    #: It waits for an answer of its user.
    is_asking: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRun:
    """A run in the history of its conversation."""

    run: Run
    spent: Amount
    #: How long it worked, without its waits.
    worked: timedelta
    #: The last message that it left, as one line of plain text; None: none was found.
    message: str | None
    #: It has ended and left no message.
    is_quiet: bool
    #: What it says that it is doing, or what it waits for.
    doing: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationStats:
    conversation_id: ConversationId
    #: The last runs, oldest first.
    runs: Sequence[RunMeasure]
    costs: Mapping[RunId, RunCost]
    medians: RunMedians | None
    #: Of these runs.
    failed: int
    #: All that its tree of conversations has spent, against the allowance for that.
    root_id: ConversationId
    state: AllowanceState
    account: SpendingState


async def load_page(
    deps: Deps, user: UserId, run_id: RunId, *, with_results: bool = True
) -> RunPage:
    """Load all that is known of a run; the results of its tool calls may be left out."""
    return await deps.store.read(
        lambda tx: _page(tx, deps, user, run_id, with_results=with_results)
    )


async def load_call(deps: Deps, user: UserId, run_id: RunId, call_id: CallId) -> ToolCallRow:
    return await deps.store.read(lambda tx: tx.browse.call(user, run_id, call_id))


async def stats(deps: Deps, user: UserId, conversation_id: ConversationId) -> ConversationStats:
    """Measure the last runs of a conversation; skipped ones are left out."""

    def work(tx: Tx) -> ConversationStats:
        conversation = tx.conversations.load(user, conversation_id)
        runs = tx.browse.last_runs(user, conversation_id, limit=MAX_MEASURED_RUNS)[::-1]
        ids = [run.id for run in runs]
        costs, worked = tx.browse.run_costs(user, ids), worked_for(tx, user, runs)
        measures = [
            RunMeasure(run, worked[run.id], spent.micros, spent.tokens)
            for run in runs
            for spent in [costs.get(run.id, NO_COST).spent]
        ]
        root = spending.find_root(tx, conversation)
        account = tx.spending.state(user, root, [f"conversation:{root}"])
        limits = {one.scope: one for one in spending.effective_allowances(deps, account)}
        scope = AllowanceScope.CONVERSATION
        return ConversationStats(
            conversation_id=conversation_id,
            runs=measures,
            costs=costs,
            medians=run_facts.take_medians(measures),
            failed=sum(run.status is RunStatus.FAILURE for run in runs),
            root_id=root,
            state=AllowanceState(
                limits.get(scope, allowance.Allowance(scope)),
                account.spent.get(f"conversation:{root}", Amount()),
            ),
            account=account,
        )

    return await deps.store.read(work)


async def listed(
    deps: Deps,
    user: UserId,
    status: RunStatus | None,
    after: PageKey | None,
    *,
    limit: int,
    down_to: PageKey | None = None,
) -> Page[ListedRun]:
    """List runs of all conversations: those that have ended by their end, others by their start.

    Without a status, those that have ended with any. `down_to` is the key of an earlier page.
    """

    def work(tx: Tx) -> Page[ListedRun]:
        rows = tx.browse.runs_by_status(user, status, after, limit=limit + 1)
        page = make_page(rows, limit, _list_key, down_to=down_to)
        runs = [row.run for row in page.items]
        ids, places = [run.id for run in runs], [run.conversation_id for run in runs]
        spent, worked = tx.browse.run_totals(user, ids), worked_for(tx, user, runs)
        is_active = status in (RunStatus.RUNNING, RunStatus.QUEUED)
        progress = tx.runs.progress_of(user, places) if is_active else {}
        waits, asking = dict[RunId, str](), frozenset[RunId]()
        if status is RunStatus.QUEUED:
            waits, asking = describe_waits(tx, user, runs)
        items = [
            ListedRun(
                row=row,
                spent=spent.get(row.run.id, Amount()),
                worked=worked[row.run.id],
                progress=progress.get(row.run.conversation_id),
                waits_for=waits.get(row.run.id),
                is_asking=row.run.id in asking,
            )
            for row in page.items
        ]
        return Page(items, page.next_key)

    return await deps.store.read(work)


async def history(
    deps: Deps,
    user: UserId,
    conversation_id: ConversationId,
    after: PageKey | None,
    *,
    limit: int,
    down_to: PageKey | None = None,
) -> Page[PastRun]:
    """List the background runs of a conversation and the slots it missed, newest first.

    The key of a page has the last run and the last message that was read: messages are found beside
    the runs that left them. `down_to` is such a key: the runs up to that one are listed, and
    those after `limit` are left out.
    """

    def work(tx: Tx) -> Page[PastRun]:
        run_key = after[:3] if after else None
        message_key = after[3:] if after and after[3] else None
        rows = tx.browse.runs(user, conversation_id, run_key, limit=limit + 1)
        shown = rows[:limit]
        if down_to is not None:
            shown = [run for run in shown if _run_key(run) >= down_to[:3]]
        size = _MESSAGES_PER_RUN * limit
        messages = tx.browse.messages(user, conversation_id, message_key, limit=size)
        read_from = messages[-1].created_at if len(messages) == size else None
        found = {one.run_id: one for one in reversed(messages) if _is_report(one)}
        runs = [run for run in shown if run.kind is RunKind.BACKGROUND]
        spent = tx.browse.run_totals(user, [run.id for run in runs])
        worked = worked_for(tx, user, runs)
        doing = _doing(tx, user, conversation_id, runs)
        items = [
            PastRun(
                run=run,
                spent=spent.get(run.id, Amount()),
                worked=worked[run.id],
                message=make_excerpt(found[run.id].content) if run.id in found else None,
                is_quiet=run.id not in found
                and run.ended_at is not None
                and (read_from is None or read_from <= run.started_at),
                doing=doing.get(run.id, ""),
            )
            for run in runs
        ]
        if not shown or len(shown) == len(rows):
            return Page(items, None)
        # The runs that follow have ended before the last one of this page began.
        ids, oldest = {run.id for run in shown}, shown[-1].started_at
        seen = [one.id for one in messages if one.run_id in ids or one.created_at > oldest]
        last_message = seen[-1] if seen else (message_key or [""])[0]
        return Page(items, (*_run_key(shown[-1]), last_message))

    return await deps.store.read(work)


def _find_report(tx: Tx, user: UserId, run: Run) -> str | None:
    if run.status is not RunStatus.SUCCESS or run.kind is not RunKind.BACKGROUND:
        return None
    messages = tx.browse.messages(user, run.conversation_id, None, limit=_MAX_REPORTS)
    return next((one.content for one in messages if one.run_id == run.id and _is_report(one)), None)


def _is_report(message: Message) -> bool:
    return message.run_id is not None and message.role is MessageRole.ASSISTANT


def _run_key(run: Run) -> PageKey:
    return (run.started_at, run.epoch, run.id)


def _doing(
    tx: Tx, user: UserId, conversation_id: ConversationId, runs: Sequence[Run]
) -> Mapping[RunId, str]:
    """Say what the runs that have not ended are doing, or what they wait for."""
    queued = [run for run in runs if run.status is RunStatus.QUEUED]
    doing = dict(describe_waits(tx, user, queued)[0]) if queued else {}
    for run in runs:
        if run.status is RunStatus.RUNNING:
            activity = tx.browse.activities(user, [conversation_id]).get(conversation_id)
            progress = tx.runs.progress_of(user, [conversation_id]).get(conversation_id)
            said = "" if progress is None else progress.text
            doing[run.id] = said or ("" if activity is None else activity.doing)
    return doing


def _list_key(row: RunRow) -> PageKey:
    return (row.run.ended_at or row.run.started_at, row.run.id)


def worked_for(tx: Tx, user: UserId, runs: Sequence[Run]) -> Mapping[RunId, timedelta]:
    """Read how long runs have worked, without their waits."""
    parts = tx.browse.run_parts(user, [run.id for run in runs])
    return {
        run.id: timeline.worked_for(timeline.work_spans(run, parts.get(run.id, ()), now=tx.now))
        for run in runs
    }


def _page(tx: Tx, deps: Deps, user: UserId, run_id: RunId, *, with_results: bool) -> RunPage:
    run = tx.runs.load(user, run_id)
    conversation = tx.conversations.load(user, run.conversation_id)
    zone = tx.users.load(user).zone
    calls = tx.browse.calls(user, run_id, with_results=with_results)
    model_calls = tx.browse.model_calls(user, run_id, limit=_MAX_MODEL_CALLS)
    asked = tx.browse.asked_by(user, run, limit=_MAX_QUESTIONS)
    parts = tx.browse.run_parts(user, [run_id]).get(run_id, ())
    spans = timeline.work_spans(run, parts, now=tx.now)
    cost = tx.browse.run_costs(user, [run_id]).get(run_id, NO_COST)
    earlier = tx.browse.earlier_runs(user, run, limit=_MAX_SEARCHED)
    later = tx.browse.later_runs(user, run, limit=_MAX_SEARCHED)
    running = None
    if run.status is RunStatus.RUNNING:
        running = tx.browse.activities(user, [conversation.id]).get(conversation.id)
    awaited = tx.browse.awaited_jobs(user, [run_id]).get(run_id)
    jobs = None if awaited is None else (awaited.settled, awaited.count)
    allowances, account = _allowances(tx, deps, conversation, run, cost, zone)
    return RunPage(
        run=run,
        title=conversation.title,
        conversation=conversation,
        zone=zone,
        calls=calls,
        causes=_causes(tx, user, run, earlier, later),
        outcome=run_facts.describe_outcome(run, asked, running, jobs=jobs),
        worked=timeline.worked_for(spans),
        cost=cost,
        models=list(dict.fromkeys(call.model for call in model_calls)),
        time_limit=conversation.run_timeout or deps.limits.run_timeout,
        allowances=allowances,
        account=account,
        timeline=timeline.build_timeline(
            run,
            spans,
            calls=[_summarize(call) for call in calls],
            model_calls=model_calls,
            asked=asked,
        ),
        asked=asked,
        tries=run_facts.find_tries(run, earlier),
        next_try=run_facts.find_next_try(run, later),
        previous=_find_beside(earlier),
        following=_find_beside(later),
        prompts=tx.browse.prompts(user, run_id, limit=_MAX_PROMPTS),
        report=_find_report(tx, user, run),
    )


def _find_beside(runs: Sequence[Run]) -> Run | None:
    return next((run for run in runs if run.status is not RunStatus.SKIPPED), None)


def _causes(
    tx: Tx, user: UserId, run: Run, earlier: Sequence[Run], later: Sequence[Run]
) -> Sequence[RunCause]:
    """Find what started a run; what a crashed one was for is served by the next try."""
    items = [*tx.inbox.served_by(user, run.conversation_id, run.id)]
    if run.status in (RunStatus.RUNNING, RunStatus.QUEUED):
        items += tx.inbox.waiting(user, run.conversation_id, run.kind)
    elif not items and (next_try := run_facts.find_next_try(run, later)) is not None:
        items += tx.inbox.served_by(user, run.conversation_id, next_try.id)
    known = [item for item in items if item.arrived_at <= run.started_at]
    return run_facts.find_causes(run, known, run_facts.find_before(run, earlier))


def _allowances(
    tx: Tx, deps: Deps, conversation: Conversation, run: Run, cost: RunCost, zone: str
) -> tuple[Sequence[AllowanceState], SpendingState]:
    root = spending.find_root(tx, conversation)
    day, _ = allowance.local_day(run.started_at, zone=zone)
    keys = {
        AllowanceScope.CONVERSATION: f"conversation:{root}",
        AllowanceScope.USER: "user",
        AllowanceScope.DAY: f"day:{day.isoformat()}",
    }
    account = tx.spending.state(conversation.user_id, root, keys.values())
    spent = {scope: account.spent.get(key, Amount()) for scope, key in keys.items()}
    spent[AllowanceScope.RUN] = cost.spent
    limits = spending.effective_allowances(deps, account)
    return [AllowanceState(limit, spent[limit.scope]) for limit in limits], account


def _summarize(call: ToolCallRow) -> CallSummary:
    return CallSummary(
        id=call.id,
        tool=call.tool,
        summary=summarize_arguments(call.arguments),
        state=call.state,
        failed=call.failed,
        started_at=call.started_at,
        ended_at=call.ended_at,
    )
