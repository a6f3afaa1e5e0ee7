"""The gate: every tool call passes it before it is made, and after.

Before: one transaction checks that the turn is still ours, that the run may continue and that the
policy allows the call, and records the call. After: its result is recorded.
"""

import asyncio
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import structlog

from backburner.actions.connections.sessions import describe_error
from backburner.core import tool_journal, tool_policy
from backburner.core.allowance import Allowance, Usage
from backburner.core.commands import LineStep
from backburner.core.connections.inputs.input_request import InputNeeded
from backburner.core.content.file import DEFAULT_LIMITS, FileLimits
from backburner.core.conversation import Conversation
from backburner.core.errors import BackburnerError, Conflict, ConnectionFailed, Fenced
from backburner.core.ids import (
    CallId,
    ConnectionId,
    ConversationId,
    ItemId,
    derive_question_id,
    new_call_id,
)
from backburner.core.question import FIRST_REMINDER, Purpose, Question, QuestionType
from backburner.core.run import Turn
from backburner.core.shown_call import show_call
from backburner.core.tool_journal import JournalEntry
from backburner.core.tool_policy import Allow, Ask, Deny, Tool, ToolCall
from backburner.core.work import task_test_run
from backburner.ports import JobWait, Offer, Store, ToolResult, Tx
from backburner.runs.budget import Budget
from backburner.runs.connection_troubles import ConnectionTroubles, check_offered
from backburner.runs.stopping import StopReason, StopRequests
from backburner.runs.tool_results import KeptResult, ToolResults

RUN_IS_ENDING = ToolResult("The run ends here.", failed=True, stop=True)
APPROVAL_NEEDED = ToolResult(
    "This call needs the approval of the owner, who has been asked. End here; a new run starts"
    " after their answer.",
    failed=True,
    stop=True,
)

CALL_LISTED = ToolResult(task_test_run.NOT_MADE, failed=True)

_log = structlog.get_logger(__name__)


async def no_folder() -> None:
    pass


@dataclass(frozen=True, slots=True)
class _Admitted:
    id: CallId
    #: Nothing is lost if nobody knows whether it was made: it would be made again.
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class _Answered:
    """The journal has the result of a call."""

    entry: JournalEntry


@dataclass(slots=True)
class Gate:
    """The gate of one run."""

    store: Store
    turn: Turn
    stop: StopRequests
    #: Tool calls of earlier attempts at the same work.
    past_calls: Sequence[JournalEntry]
    budget: Budget
    #: False for engines that are immune to prompt injection.
    can_be_injected: bool = True
    #: Of the test run of a task: calls that need approval are listed, and the run goes on.
    lists_calls: bool = False
    #: Raises a `BackburnerError` if tools may not work in the folder of the conversation any more.
    check_folder: Callable[[], Awaitable[None]] = no_folder
    #: Splits a command line into its steps.
    read_line: Callable[[str], tuple[LineStep, ...]] | None = None
    files: FileLimits = DEFAULT_LIMITS
    #: What servers ask of the user, with the calls that go on after the answers.
    inputs: dict[CallId, tuple[ToolCall, InputNeeded]] = field(default_factory=dict)
    troubles: ConnectionTroubles = field(default_factory=ConnectionTroubles)
    #: Calls that need approval, in the order in which the agent tried them.
    unapproved: list[ToolCall] = field(default_factory=list)
    #: Jobs that the run waits for, and inbox items whose content the agent has read already.
    waiting: list[JobWait] = field(default_factory=list)
    read: set[ItemId] = field(default_factory=set)
    #: An allowance that is used up.
    over: Allowance | None = None
    tokens: int = 0
    #: Calls that the journal may have without a result.
    unfinished: set[CallId] = field(default_factory=set)
    #: A call that changes something may have been made.
    has_changes: bool = False
    _in_flight: int = 0
    #: The last call and its result, and how often it was made in a row.
    _last: tuple[str, str] = ("", "")
    _repeated: int = 0
    #: What would come of a call, by its digest.
    _previews: dict[str, str] = field(default_factory=dict)
    #: The agent will read outside text in them, once the question is answered.
    _previews_outside: bool = False
    #: In a test run: the digests of all calls that were not made, also of those not asked about.
    _listed: set[str] = field(default_factory=set)
    #: In a test run, files were changed that other programs obey, and put back.
    _puts_files_back: bool = False
    #: Ends of calls that are recorded while the agent has their results already.
    _ends: set["asyncio.Task[None]"] = field(default_factory=set)
    #: Calls of this run that were answered from the journal, by the earlier call.
    _answered: dict[CallId, CallId] = field(default_factory=dict)
    _results: ToolResults = field(init=False)

    def __post_init__(self) -> None:
        self._results = ToolResults(self.store, self.turn, self.files)

    @property
    def in_call(self) -> bool:
        return self._in_flight > 0

    async def call(self, offer: Offer, arguments: Mapping[str, Any]) -> ToolResult:
        """Make a call if it is admitted, else return the reason."""
        if offer.resolve is not None:
            meant = offer.resolve(arguments)
            if isinstance(meant, ToolResult):
                return meant
            offer, arguments = meant
        if (refused := await self._check(offer, arguments)) is not None:
            return refused
        call = await self._read(ToolCall(offer.tool, arguments))
        call_id, tried = new_call_id(), list[Tx]()

        def admit(tx: Tx) -> _Admitted | _Answered | ToolResult | StopReason:
            # An earlier try may have been committed, and only its response lost.
            if tried and tx.tool_calls.has_begun(self.turn, call_id):
                return _Admitted(call_id)
            tried.append(tx)
            return self._admit(tx, offer, call, call_id)

        try:
            admitted = await self.store.transact(admit)
        except Fenced:
            self.stop.request(StopReason.FENCED)
            return RUN_IS_ENDING
        result = await self._follow(admitted, offer, call)
        if self._is_repeating(offer, call, result.text):
            self.stop.request(StopReason.REPEATING)
            return replace(result, stop=True)
        return result

    async def _follow(
        self,
        admitted: _Admitted | _Answered | ToolResult | StopReason,
        offer: Offer,
        call: ToolCall,
    ) -> ToolResult:
        match admitted:
            case _Admitted():
                return await self._make(offer, call, admitted)
            case _Answered(entry):
                return await self._results.recall(entry)
            case StopReason():
                self.stop.request(admitted)
                return RUN_IS_ENDING
            case ToolResult():
                if call in self.unapproved:
                    await self._preview(offer, call)
                return admitted

    async def _read(self, call: ToolCall) -> ToolCall:
        line = tool_policy.line_to_read(call)
        if line is None or self.read_line is None:
            return call
        return replace(call, steps=await asyncio.to_thread(self.read_line, line))

    async def _check(self, offer: Offer, arguments: Mapping[str, Any]) -> ToolResult | None:
        """Refuse a call for which it makes no sense to ask, whatever the policy says."""
        if self.stop.reason not in (None, StopReason.APPROVAL):
            return RUN_IS_ENDING
        try:
            if offer.in_folder:
                await self.check_folder()
            if offer.check is not None:
                await offer.check(arguments)
        except BackburnerError as error:
            return ToolResult(str(error), failed=True)
        return self.troubles.refuse(offer.tool)

    def _is_repeating(self, offer: Offer, call: ToolCall, result: str) -> bool:
        made = (tool_policy.call_digest(call), result)
        self._repeated = self._repeated + 1 if made == self._last else 1
        self._last = made
        return self._repeated >= tool_policy.MAX_REPEATED_CALLS and not offer.waits

    async def _preview(self, offer: Offer, call: ToolCall) -> None:
        if offer.preview is not None:
            with suppress(BackburnerError):
                self._previews[tool_policy.call_digest(call)] = await offer.preview(call.arguments)
                self._previews_outside |= offer.preview_outside

    async def pay(self, model: str, usage: Usage) -> bool:
        """Record a call of a model; return False if no further one may be made."""
        self.tokens += usage.input + usage.output + usage.cache_read + usage.cache_write
        over = await self.budget.pay(model, usage)
        if over is not None:
            self.over = over
            self.stop.request(StopReason.SPENT)
        return self.stop.reason in (None, StopReason.APPROVAL)

    async def _make(self, offer: Offer, call: ToolCall, admitted: _Admitted) -> ToolResult:
        error = ""
        self._in_flight += 1
        try:
            try:
                result = await _run(offer, call.arguments)
            except ConnectionFailed as failed:
                result, reason = self.troubles.note(offer.tool, failed)
                if reason is not None:
                    self.stop.request(reason)
                if reason is StopReason.IN_DOUBT:
                    # Its entry in the journal stays without a result, as after a crash.
                    return result
                error = describe_error(failed)
            if result.input_needed is not None:
                self.inputs[admitted.id] = (call, result.input_needed)
                self.stop.request(StopReason.INPUT_NEEDED)
            kept = await self._results.keep(admitted.id, offer.tool.name, result)
            text = kept.result.text
            end = self._record_end(offer.tool, admitted.id, kept, error=error)
            is_plain = not (error or kept.files or result.input_needed)
            if admitted.read_only and is_plain and offer.tool.connection is not None:
                self._ends.add(asyncio.create_task(self._unless_fenced(end)))
            else:
                await end
        except Fenced:
            self.stop.request(StopReason.FENCED)
            return RUN_IS_ENDING
        finally:
            self._in_flight -= 1
        self.read.update(result.served)
        if result.asks and self.lists_calls:
            # A change is approved by its id, and those of other runs have others.
            self._puts_files_back, text = True, text + task_test_run.PUT_BACK
        else:
            self._ask_about_changes(result.asks)
        if result.wait is not None:
            self.waiting.append(result.wait)
            self.stop.request(StopReason.WAITING_FOR_JOBS)
        return replace(
            kept.result,
            text=text,
            stop=self.stop.reason is not None,
            served=(),
            wait=None,
            asks=(),
        )

    async def settle(self) -> None:
        """Wait until the ends of all calls are recorded; nothing is decided about a run before."""
        while self._ends:
            ended, _ = await asyncio.wait(self._ends)
            self._ends -= ended
            for one in ended:
                one.result()

    async def _record_end(
        self, tool: Tool, call_id: CallId, kept: KeptResult, *, error: str
    ) -> None:
        await self.store.transact(
            lambda tx: self._end(tx, tool, call_id, kept, error=error),
            single=not (kept.files or error),
        )
        self.unfinished.discard(call_id)

    async def _unless_fenced(self, end: Coroutine[Any, Any, None]) -> None:
        try:
            await end
        except Fenced:
            self.stop.request(StopReason.FENCED)

    def _end(self, tx: Tx, tool: Tool, call_id: CallId, kept: KeptResult, *, error: str) -> None:
        """Record the result of a call, and the use of its connection with what went wrong."""
        result, worked = kept.result, not error
        tx.tool_calls.end(
            self.turn, call_id, result.text, failed=result.failed, files=kept.files, worked=worked
        )
        if error and tool.connection is not None:
            tx.connections.note_use(self.turn.user_id, tool.connection, at=tx.now, error=error)

    def _ask_about_changes(self, asks: Sequence[tuple[ToolCall, str]]) -> None:
        for call, preview in asks:
            self._ask(call)
            self._previews[tool_policy.call_digest(call)] = preview

    def _admit(
        self, tx: Tx, offer: Offer, call: ToolCall, call_id: CallId
    ) -> _Admitted | _Answered | ToolResult | StopReason:
        """Admit a call, or return its result or why the run has to stop."""
        conversation = tx.turns.hold(self.turn)
        if tx.turns.is_cancelled(self.turn):
            # Not stopped here: whoever cancelled it may be in the same group, and fail with it.
            return StopReason.CANCELLED
        tool = check_offered(tx, conversation, offer.tool)
        if isinstance(tool, ToolResult):
            return tool
        call = replace(call, tool=tool)
        decision = tool_policy.decide(
            call,
            _grants(tx, conversation),
            allowed=tool_policy.allowed_tools(conversation),
            in_doubt=_is_in_doubt(conversation, call),
            outside_read=conversation.outside_read,
            now=tx.now,
        )
        if isinstance(decision, Deny):
            return ToolResult(decision.reason, failed=True)
        used = {earlier for earlier, by in self._answered.items() if by != call_id}
        digest = tool_policy.call_digest(call)
        receipt = tool_journal.find_receipt(digest, self.past_calls, used=used)
        if receipt is not None:
            self._answered[receipt.id] = call_id
            return _Answered(receipt)
        match decision:
            case Ask():
                return self._refuse(tx, conversation, call)
            case Allow(uses):
                if self.unapproved and not self.lists_calls:
                    # Another call of the same message needs approval: the run is about to end.
                    return RUN_IS_ENDING
                if offer.tool.repeatable and not tool.repeatable:
                    # Its session does not know, and would repeat a call that may have been made.
                    return _not_repeatable(tool)
                is_read_only = tool.free if tool.connection else offer.read_only
                read_only = is_read_only or tool_policy.is_read_only(call)
                # Before: the response of the transaction may be lost.
                self.unfinished.add(call_id)
                self.has_changes |= not read_only
                with suppress(Conflict):
                    if offer.outside and self.can_be_injected and not conversation.outside_read:
                        tx.turns.mark_outside_text(self.turn)
                    tx.tool_calls.begin(self.turn, call_id, call, read_only=read_only, uses=uses)
                    return _Admitted(call_id, read_only=read_only)
                return self._refuse(tx, conversation, call)

    def _refuse(self, tx: Tx, conversation: Conversation, call: ToolCall) -> ToolResult:
        """Refuse a call that needs approval: list it in a test run, else ask and stop the run."""
        return self._list(tx, conversation, call) if self.lists_calls else self._ask(call)

    def _ask(self, call: ToolCall) -> ToolResult:
        """Stop the run; at once, because no other call may be admitted after this one."""
        if call not in self.unapproved:
            self.unapproved.append(call)
        self.stop.request(StopReason.APPROVAL)
        return APPROVAL_NEEDED

    def _list(self, tx: Tx, conversation: Conversation, call: ToolCall) -> ToolResult:
        """List a call of a test run, unless its task may make it or the owner has been asked."""
        digest = tool_policy.call_digest(call)
        asked = {
            bound["digest"]
            for question in conversation.questions
            if tool_policy.GRANTS_TO_TASK in question.binds_to
            for bound in question.binds_to["calls"]
        }
        may_task = tool_policy.decide(
            call,
            _task_grants(tx, conversation),
            allowed=None,
            in_doubt=False,
            outside_read=conversation.outside_read,
            now=tx.now,
        )
        if isinstance(may_task, Ask) and digest not in asked | self._listed:
            self._listed.add(digest)
            if len(self.unapproved) < task_test_run.MAX_LISTED_CALLS:
                self.unapproved.append(call)
        return CALL_LISTED

    def forget_removed(self, existing: Collection[ConnectionId]) -> None:
        """Ask about no calls on connections that their owner has removed meanwhile."""
        for call in tuple(self.unapproved):
            if call.tool.connection is not None and call.tool.connection not in existing:
                self.unapproved.remove(call)
                self._listed.discard(tool_policy.call_digest(call))

    def list_question(self, task_id: ConversationId, *, now: datetime) -> Question:
        """Make one question for all calls that a test run has not made."""
        previews = [self._previews.get(tool_policy.call_digest(call)) for call in self.unapproved]
        shown = [
            (call, preview or "") for call, preview in zip(self.unapproved, previews, strict=True)
        ]
        listed = task_test_run.select_calls(shown)
        prompt = task_test_run.describe_list(
            listed,
            unlisted=len(self._listed) - len(listed),
            puts_files_back=self._puts_files_back,
        )
        return replace(
            self.question(now=now),
            prompt=prompt,
            options=task_test_run.list_options(listed),
            binds_to=task_test_run.list_binding(listed, task_id),
        )

    def question(self, *, now: datetime) -> Question:
        """Make one question for all calls that need approval."""
        digests = [tool_policy.call_digest(call) for call in self.unapproved]
        # The agent has to find in it what to call, and the user what would come of it.
        shown = "\n".join(
            "\n".join(filter(None, (show_call(call), self._previews.get(digest))))
            for digest, call in zip(digests, self.unapproved, strict=True)
        )
        return Question(
            id=derive_question_id(self.turn.run_id, self.turn.epoch, "approval", *digests),
            purpose=Purpose.APPROVAL,
            type=QuestionType.CHOICE,
            prompt=f"May I do this?\n{shown}",
            options=tool_policy.approval_options(self.unapproved),
            run_id=self.turn.run_id,
            run_kind=self.turn.kind,
            binds_to=tool_policy.approval_binding(self.unapproved),
            asked_at=now,
            remind_at=now + FIRST_REMINDER,
            outside=self._previews_outside,
        )


async def _run(offer: Offer, arguments: Mapping[str, Any]) -> ToolResult:
    try:
        return await offer.run(arguments)
    except ConnectionFailed:
        raise
    except Exception as error:  # noqa: BLE001 (any error of a tool is reported to the agent)
        _log.warning("tool.failed", tool=offer.tool.name, error=repr(error))
        return ToolResult(f"{offer.tool.name} failed: {error}", failed=True, outside=True)


def _not_repeatable(tool: Tool) -> ToolResult:
    name = tool_policy.qualified_name(tool)
    text = f"The owner says that {name} is not repeatable any more. Later runs can call it."
    return ToolResult(text, failed=True)


def _grants(tx: Tx, conversation: Conversation) -> Iterator[tool_policy.Grant]:
    """Read them one by one: most calls need none, so nothing is read for those."""
    yield from tx.grants.valid(conversation.user_id, conversation.id)
    if tool_policy.inherits_grants(conversation) and conversation.parent_id is not None:
        parent = tx.conversations.load(conversation.user_id, conversation.parent_id)
        # The same line does something else in another folder.
        if parent.folder_path == conversation.folder_path:
            inherited = tx.grants.valid(conversation.user_id, conversation.parent_id)
            yield from (grant for grant in inherited if grant.call is None)


def _task_grants(tx: Tx, job: Conversation) -> Sequence[tool_policy.Grant]:
    return () if job.parent_id is None else tx.grants.valid(job.user_id, job.parent_id)


def _is_in_doubt(conversation: Conversation, call: ToolCall) -> bool:
    """Check for an open question about an earlier call of the same tool."""
    return any(
        bound["server"] == call.tool.server and bound["tool"] == call.tool.name
        for question in conversation.questions
        if question.purpose is Purpose.IN_DOUBT
        for bound in question.binds_to["calls"]
    )
