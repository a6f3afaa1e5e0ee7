"""The gate: every tool call passes it before it is made, and after.

Before: the call is admitted (`call_admission`). After: its result is recorded (`call_ends`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from typing import Any

import structlog

from backburner.actions.connections.sessions import describe_error
from backburner.core import tool_policy
from backburner.core.allowance import Allowance, Usage
from backburner.core.commands import LineStep
from backburner.core.connections.inputs.input_request import InputNeeded
from backburner.core.content.file import DEFAULT_LIMITS, FileLimits, FileReference
from backburner.core.errors import BackburnerError, CallInDoubt, ConnectionFailed, Fenced
from backburner.core.ids import CallId, ItemId
from backburner.core.run import Turn
from backburner.core.tool_journal import JournalEntry
from backburner.core.tool_policy import ToolCall
from backburner.core.work import task_test_run
from backburner.ports import JobWait, Offer, Store, ToolResult
from backburner.runs.budget import Budget
from backburner.runs.call_admission import RUN_IS_ENDING, Admitted, Answered, CallAdmission
from backburner.runs.call_ends import CallEnds
from backburner.runs.connection_troubles import ConnectionTroubles
from backburner.runs.stopping import StopReason, StopRequests
from backburner.runs.tool_results import ToolResults
from backburner.runs.unapproved_calls import UnapprovedCalls

_log = structlog.get_logger(__name__)


async def no_folder() -> None:
    pass


@dataclass(slots=True)
class Gate:
    """The gate of one run."""

    store: Store
    turn: Turn
    stop: StopRequests
    #: Tool calls of earlier attempts at the same work.
    past_calls: InitVar[Sequence[JournalEntry]]
    budget: Budget
    #: False for engines that are immune to prompt injection.
    can_be_injected: InitVar[bool] = True
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
    unapproved: UnapprovedCalls = field(init=False)
    admission: CallAdmission = field(init=False)
    ends: CallEnds = field(init=False)
    #: Jobs that the run waits for, and inbox items whose content the agent has read already.
    waiting: list[JobWait] = field(default_factory=list)
    read: set[ItemId] = field(default_factory=set)
    #: An allowance that is used up.
    over: Allowance | None = None
    tokens: int = 0
    #: For the message that the run writes.
    handed_over: list[FileReference] = field(default_factory=list)
    _in_flight: int = 0
    #: The last call and its result, and how often it was made in a row.
    _last: tuple[str, str] = ("", "")
    _repeated: int = 0
    _results: ToolResults = field(init=False)

    def __post_init__(self, past_calls: Sequence[JournalEntry], can_be_injected: bool) -> None:
        self._results = ToolResults(self.store, self.turn, self.files)
        self.unapproved = UnapprovedCalls(self.turn, self.stop)
        self.ends = CallEnds(self.store, self.turn, self.stop)
        self.admission = CallAdmission(
            self.store,
            self.turn,
            past_calls,
            self.unapproved,
            self.ends.unfinished,
            can_be_injected=can_be_injected,
            lists_calls=self.lists_calls,
        )

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
        try:
            admitted = await self.admission.admit(offer, call)
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
        admitted: Admitted | Answered | ToolResult | StopReason,
        offer: Offer,
        call: ToolCall,
    ) -> ToolResult:
        match admitted:
            case Admitted():
                if not admitted.read_only:
                    self.ends.untold.add(admitted.id)
                return await self._make(offer, call, admitted)
            case Answered(entry):
                return await self._results.recall(entry)
            case StopReason():
                self.stop.request(admitted)
                return RUN_IS_ENDING
            case ToolResult():
                await self.unapproved.preview(offer, call)
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

    async def pay(self, model: str, usage: Usage) -> bool:
        """Record a call of a model; return False if no further one may be made."""
        self.tokens += usage.input + usage.output + usage.cache_read + usage.cache_write
        over = await self.budget.pay(model, usage)
        if over is not None:
            self.over = over
            self.stop.request(StopReason.SPENT)
        return self.stop.reason in (None, StopReason.APPROVAL)

    def note_session(self, calls: Iterable[CallId]) -> None:
        """Note that the results of these calls are in the agent's session."""
        self.ends.untold.difference_update(calls)

    async def _make(self, offer: Offer, call: ToolCall, admitted: Admitted) -> ToolResult:
        self._in_flight += 1
        try:
            result, kept = await self._make_and_record(offer, call, admitted)
        except Fenced:
            self.stop.request(StopReason.FENCED)
            return RUN_IS_ENDING
        except Exception:
            if not admitted.may_repeat:
                # It was made, but its result is not in the journal: its agent must not try again.
                self.stop.request(StopReason.IN_DOUBT)
            raise
        finally:
            self._in_flight -= 1
        self.handed_over += result.handed_over
        if kept is None:
            return result
        text = kept.text
        self.read.update(result.served)
        if result.asks and self.lists_calls:
            # A change is approved by its id, and those of other runs have others.
            self.unapproved.puts_files_back, text = True, text + task_test_run.PUT_BACK
        else:
            for asked, preview in result.asks:
                self.unapproved.ask(asked, preview=preview)
        if result.wait is not None:
            self.waiting.append(result.wait)
            self.stop.request(StopReason.WAITING_FOR_JOBS)
        return replace(
            kept,
            text=text,
            stop=self.stop.reason is not None,
            served=(),
            wait=None,
            asks=(),
            call_id=admitted.id,
        )

    async def _make_and_record(
        self, offer: Offer, call: ToolCall, admitted: Admitted
    ) -> tuple[ToolResult, ToolResult | None]:
        """Return the result of a call, and as it was recorded; None: nobody knows what it did."""
        error, may_repeat = "", admitted.may_repeat
        try:
            result = await _run(offer, call.arguments, may_repeat=may_repeat)
        except ConnectionFailed as failed:
            result, reason = self.troubles.note(offer.tool, failed, may_repeat=may_repeat)
            if reason is not None:
                self.stop.request(reason)
            if reason is StopReason.IN_DOUBT:
                # Its entry in the journal stays without a result, as after a crash.
                return result, None
            error = describe_error(failed)
        if result.input_needed is not None:
            self.inputs[admitted.id] = (call, result.input_needed)
            self.stop.request(StopReason.INPUT_NEEDED)
        kept = await self._results.keep(admitted.id, offer.tool.name, result)
        kept = replace(kept, files=(*kept.files, *result.handed_over))
        is_plain = not (error or kept.files or result.input_needed)
        if admitted.read_only and is_plain and offer.tool.connection is not None:
            self.ends.record_later(admitted.id, kept)
        else:
            await self.ends.record(offer.tool, admitted.id, kept, error=error)
        return result, kept.result


async def _run(offer: Offer, arguments: Mapping[str, Any], *, may_repeat: bool) -> ToolResult:
    try:
        return await offer.run(arguments)
    except ConnectionFailed:
        raise
    except Exception as error:
        _log.warning("tool.failed", tool=offer.tool.name, error=repr(error))
        is_ours = isinstance(error, BackburnerError)
        if offer.tool.connection is not None and not (is_ours or may_repeat):
            # A server may have done what was asked of it, and only its answer has confused us.
            name = tool_policy.qualified_name(offer.tool)
            raise CallInDoubt(f"Something unexpected went wrong in a call of {name}.") from error
        return ToolResult(f"{offer.tool.name} failed: {error}", failed=True, outside=True)
