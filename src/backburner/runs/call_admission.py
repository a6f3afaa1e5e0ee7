"""Admission of tool calls: whether one may be made, and the record that it begins.

One transaction checks that the turn is still ours, that the run may continue and that the policy
allows the call, and records the call.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count

from backburner.core import tool_journal, tool_policy
from backburner.core.conversation import Conversation
from backburner.core.errors import Conflict
from backburner.core.ids import CallId, new_call_id
from backburner.core.question import Purpose
from backburner.core.run import Turn
from backburner.core.tool_journal import JournalEntry
from backburner.core.tool_policy import Allow, Ask, Deny, Tool, ToolCall
from backburner.core.work import task_test_run
from backburner.ports import Offer, ReadVersions, Store, ToolResult, Tx
from backburner.runs.connection_troubles import check_offered
from backburner.runs.stopping import StopReason
from backburner.runs.unapproved_calls import UnapprovedCalls

RUN_IS_ENDING = ToolResult("The run ends here.", failed=True, stop=True)
APPROVAL_NEEDED = ToolResult(
    "This call needs the approval of the owner, who has been asked. End here; a new run starts"
    " after their answer.",
    failed=True,
    stop=True,
)

CALL_LISTED = ToolResult(task_test_run.NOT_MADE, failed=True)


@dataclass(frozen=True, slots=True)
class Admitted:
    id: CallId
    read_only: bool = False
    #: Nothing is lost if nobody knows whether it was made: it would be made again. The journal
    #: says the same, so that nobody is asked about it.
    may_repeat: bool = False


@dataclass(frozen=True, slots=True)
class Answered:
    """The journal has the result of a call."""

    entry: JournalEntry


@dataclass(frozen=True, slots=True)
class _Known:
    """The facts by which a call was admitted: while none changes, the next one is as well."""

    conversation: Conversation
    #: As its owner has ticked it.
    tool: Tool
    read_at: datetime
    versions: ReadVersions


@dataclass(slots=True)
class CallAdmission:
    """Admits the calls of one run."""

    store: Store
    turn: Turn
    #: Tool calls of earlier attempts at the same work.
    past_calls: Sequence[JournalEntry]
    unapproved: UnapprovedCalls
    #: Calls that the journal may have without a result.
    unfinished: set[CallId]
    #: False for engines that are immune to prompt injection.
    can_be_injected: bool = True
    #: Of the test run of a task: calls that need approval are listed, and the run goes on.
    lists_calls: bool = False
    #: A call that changes something may have been made.
    has_changes: bool = False
    #: Calls of this run that were answered from the journal, by the earlier call.
    _answered: dict[CallId, CallId] = field(default_factory=dict)
    #: By the tools that were offered.
    _known: dict[Tool, _Known] = field(default_factory=dict)

    async def admit(
        self, offer: Offer, call: ToolCall
    ) -> Admitted | Answered | ToolResult | StopReason:
        """Admit a call, or return its result or why the run has to stop. Raises `Fenced`."""
        call_id = new_call_id()
        return await self._admit_again(offer, call, call_id) or await self._admit_anew(
            offer, call, call_id
        )

    async def _admit_anew(
        self, offer: Offer, call: ToolCall, call_id: CallId
    ) -> Admitted | Answered | ToolResult | StopReason:
        tried = list[Admitted | Answered | ToolResult | StopReason]()

        def admit(tx: Tx) -> Admitted | Answered | ToolResult | StopReason:
            # An earlier attempt may have been committed, and only its response lost.
            if tried and tx.tool_calls.has_begun(self.turn, call_id):
                return tried[-1]
            tried.append(self._admit(tx, offer, call, call_id))
            return tried[-1]

        return await self.store.transact(admit)

    async def _admit_again(self, offer: Offer, call: ToolCall, call_id: CallId) -> Admitted | None:
        """Admit a call that needs no approval, of a tool that was admitted before.

        None: something has changed, or has to be looked up.
        """
        known = self._known.get(offer.tool)
        if known is None or self.unapproved:
            return None
        call = replace(call, tool=known.tool)
        digest = tool_policy.call_digest(call)
        decision = self._decide(call, (), known.conversation, now=known.read_at)
        if decision != Allow() or self._find_receipt(digest, call_id) is not None:
            return None
        expected = self._expect(offer, call, call_id)
        attempts = count()

        def begin(tx: Tx) -> Admitted | None:
            # The statement is its own commit: an earlier attempt that failed may have recorded it.
            if next(attempts) and tx.tool_calls.has_begun(self.turn, call_id):
                return expected
            has_begun = tx.tool_calls.begin_again(
                self.turn, call_id, call, read_only=expected.read_only, read=known.versions
            )
            return expected if has_begun else None

        admitted = await self.store.transact(begin, single=True)
        if admitted is None:
            self.unfinished.discard(call_id)
            self._known.pop(offer.tool, None)
        return admitted

    def _admit(
        self, tx: Tx, offer: Offer, call: ToolCall, call_id: CallId
    ) -> Admitted | Answered | ToolResult | StopReason:
        """Admit a call, or return its result or why the run has to stop."""
        conversation = tx.turns.hold(self.turn)
        if tx.turns.is_cancelled(self.turn):
            # Not stopped here: whoever cancelled it may be in the same group, and fail with it.
            return StopReason.CANCELLED
        offered = check_offered(tx, conversation, offer.tool)
        if isinstance(offered, ToolResult):
            return offered
        tool, version = offered
        call = replace(call, tool=tool)
        decision = self._decide(call, _grants(tx, conversation), conversation, now=tx.now)
        if isinstance(decision, Deny):
            return ToolResult(decision.reason, failed=True)
        receipt = self._find_receipt(tool_policy.call_digest(call), call_id)
        if receipt is not None:
            self._answered[receipt.id] = call_id
            return Answered(receipt)
        if isinstance(decision, Ask):
            return self._refuse(tx, conversation, call)
        if self.unapproved and not self.lists_calls:
            # Another call of the same message needs approval: the run is about to end.
            return RUN_IS_ENDING
        if offer.tool.repeatable and not tool.repeatable:
            # Its session does not know, and would repeat a call that may have been made.
            return _not_repeatable(tool)
        expected = self._expect(offer, call, call_id)
        conversation = self._mark(tx, offer, conversation)
        try:
            tx.tool_calls.begin(
                self.turn, call_id, call, read_only=expected.read_only, uses=decision.uses
            )
        except Conflict:
            return self._refuse(tx, conversation, call)
        held = tx.turns.version(self.turn)
        if held is not None and version is not None:
            versions = ReadVersions(held, version)
            self._known[offer.tool] = _Known(conversation, tool, tx.now, versions)
        return expected

    def _mark(self, tx: Tx, offer: Offer, conversation: Conversation) -> Conversation:
        """Note that the agent will read outside text, if it will."""
        if not offer.outside or not self.can_be_injected or conversation.outside_read:
            return conversation
        tx.turns.mark_outside_text(self.turn)
        return replace(conversation, outside_read=True)

    def _expect(self, offer: Offer, call: ToolCall, call_id: CallId) -> Admitted:
        """Note that a call may be made, before it is recorded: the response of that may be lost."""
        is_read_only = call.tool.free if call.tool.connection else offer.read_only
        read_only = is_read_only or tool_policy.is_read_only(call)
        self.unfinished.add(call_id)
        self.has_changes |= not read_only
        may_repeat = read_only or call.tool.repeatable
        return Admitted(call_id, read_only=read_only, may_repeat=may_repeat)

    def _refuse(self, tx: Tx, conversation: Conversation, call: ToolCall) -> ToolResult:
        """Refuse a call that needs approval: list it in a test run, else ask and stop the run."""
        if self.lists_calls:
            self.unapproved.list_call(tx, conversation, call)
            return CALL_LISTED
        # At once, because no other call may be admitted after this one.
        self.unapproved.ask(call)
        return APPROVAL_NEEDED

    def _decide(
        self,
        call: ToolCall,
        grants: Iterable[tool_policy.Grant],
        conversation: Conversation,
        *,
        now: datetime,
    ) -> tool_policy.Decision:
        return tool_policy.decide(
            call,
            grants,
            allowed=tool_policy.allowed_tools(conversation),
            in_doubt=_is_in_doubt(conversation, call),
            outside_read=conversation.outside_read,
            now=now,
        )

    def _find_receipt(self, digest: str, call_id: CallId) -> JournalEntry | None:
        used = {earlier for earlier, by in self._answered.items() if by != call_id}
        return tool_journal.find_receipt(digest, self.past_calls, used=used)


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


def _is_in_doubt(conversation: Conversation, call: ToolCall) -> bool:
    """Check for an open question about an earlier call of the same tool."""
    return any(
        bound["server"] == call.tool.server and bound["tool"] == call.tool.name
        for question in conversation.questions
        if question.purpose is Purpose.IN_DOUBT
        for bound in question.binds_to["calls"]
    )
