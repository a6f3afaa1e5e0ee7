"""The calls of a run that need approval, and the question to their owner about all of them.

In the test run of a task they are listed while it goes on; in other runs the first one stops it.
"""

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

from backburner.core import tool_policy
from backburner.core.conversation import Conversation
from backburner.core.errors import BackburnerError
from backburner.core.ids import ConnectionId, ConversationId, derive_question_id
from backburner.core.question import FIRST_REMINDER, Purpose, Question, QuestionType
from backburner.core.run import Turn
from backburner.core.shown_call import show_call
from backburner.core.tool_policy import Ask, ToolCall
from backburner.core.work import task_test_run
from backburner.ports import Offer, Tx
from backburner.runs.stopping import StopReason, StopRequests


@dataclass(slots=True)
class UnapprovedCalls:
    turn: Turn
    stop: StopRequests
    #: In the order in which the agent tried them.
    calls: list[ToolCall] = field(default_factory=list)
    #: In a test run, files were changed that other programs obey, and put back.
    puts_files_back: bool = False
    #: What would come of a call, by its digest.
    _previews: dict[str, str] = field(default_factory=dict)
    #: The agent will read outside text in them, once the question is answered.
    _previews_outside: bool = False
    #: In a test run: the digests of all calls that were not made, also of those not asked about.
    _listed: set[str] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.calls)

    def ask(self, call: ToolCall, *, preview: str | None = None) -> None:
        """Ask about a call, and stop the run."""
        if call not in self.calls:
            self.calls.append(call)
        if preview is not None:
            self._previews[tool_policy.call_digest(call)] = preview
        self.stop.request(StopReason.APPROVAL)

    def list_call(self, tx: Tx, conversation: Conversation, call: ToolCall) -> None:
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
            if len(self.calls) < task_test_run.MAX_LISTED_CALLS:
                self.calls.append(call)

    async def preview(self, offer: Offer, call: ToolCall) -> None:
        """Find out what would come of a call that the owner will be asked about."""
        if call in self.calls and offer.preview is not None:
            with suppress(BackburnerError):
                self._previews[tool_policy.call_digest(call)] = await offer.preview(call.arguments)
                self._previews_outside |= offer.preview_outside

    def forget_removed(self, existing: Collection[ConnectionId]) -> None:
        """Ask about no calls on connections that their owner has removed meanwhile."""
        for call in tuple(self.calls):
            if call.tool.connection is not None and call.tool.connection not in existing:
                self.calls.remove(call)
                self._listed.discard(tool_policy.call_digest(call))

    def question(self, *, now: datetime) -> Question:
        """Make one question for all calls."""
        digests = [tool_policy.call_digest(call) for call in self.calls]
        # The agent has to find in it what to call, and the user what would come of it.
        shown = "\n".join(
            "\n".join(filter(None, (show_call(call), self._previews.get(digest))))
            for digest, call in zip(digests, self.calls, strict=True)
        )
        return Question(
            id=derive_question_id(self.turn.run_id, self.turn.epoch, "approval", *digests),
            purpose=Purpose.APPROVAL,
            type=QuestionType.CHOICE,
            prompt=f"May I do this?\n{shown}",
            options=tool_policy.approval_options(self.calls),
            run_id=self.turn.run_id,
            run_kind=self.turn.kind,
            binds_to=tool_policy.approval_binding(self.calls),
            asked_at=now,
            remind_at=now + FIRST_REMINDER,
            outside=self._previews_outside,
        )

    def list_question(self, task_id: ConversationId, *, now: datetime) -> Question:
        """Make one question for all calls that a test run has not made."""
        previews = [self._previews.get(tool_policy.call_digest(call)) for call in self.calls]
        shown = [(call, preview or "") for call, preview in zip(self.calls, previews, strict=True)]
        listed = task_test_run.select_calls(shown)
        prompt = task_test_run.describe_list(
            listed,
            unlisted=len(self._listed) - len(listed),
            puts_files_back=self.puts_files_back,
        )
        return replace(
            self.question(now=now),
            prompt=prompt,
            options=task_test_run.list_options(listed),
            binds_to=task_test_run.list_binding(listed, task_id),
        )


def _task_grants(tx: Tx, job: Conversation) -> Sequence[tool_policy.Grant]:
    return () if job.parent_id is None else tx.grants.valid(job.user_id, job.parent_id)
