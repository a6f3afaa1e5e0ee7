"""The trouble of its model that a run has met: an outage begins, goes on or ends with it."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from backburner.actions.deps import Deps
from backburner.core import retry
from backburner.core.conversation import Conversation
from backburner.core.retry import Outage, Waiting
from backburner.core.run import Failure, FailureKind, ModelWait, Run, RunKind
from backburner.ports import Claim, Tx
from backburner.runs.run_result import RunResult
from backburner.runs.stopping import StopReason
from backburner.runs.tool_gate import Gate

_NO_ANSWER = Failure(FailureKind.UNAVAILABLE, "The model does not respond.")
#: Its model has called a tool that ends the run.
_ENDED_BY_AGENT = frozenset(
    {StopReason.APPROVAL, StopReason.WAITING_FOR_JOBS, StopReason.REPEATING}
)


@dataclass(frozen=True, slots=True)
class ModelTrouble:
    deps: Deps
    claim: Claim
    reason: StopReason | None
    gate: Gate
    result: RunResult

    def note_outage(self, tx: Tx) -> None:
        """Begin, prolong or end the outage of the model."""
        claim, result = self.claim, self.result
        profile = result.escalated_from or result.profile
        if profile in result.own_keys:
            # With a key of their own, nothing was learned that counts for others.
            if claim.is_probe:
                tx.outages.end_probe(profile)
            return
        if (trouble := self.find()) is not None:
            probed = claim.is_probe or self.is_for_person()
            tx.outages.note(profile, trouble, probed=probed)
        elif claim.in_outage and self._has_model_worked():
            tx.outages.end(profile)
        elif claim.is_probe:
            tx.outages.end_probe(profile)

    def find(self) -> Failure | None:
        """Return the trouble of the model's provider that the run has met."""
        result, failure = self.result, self.result.failure
        if failure is not None:
            is_trouble = failure.kind in retry.OUTAGE_KINDS and not result.is_done
            return failure if is_trouble else None
        # In an outage a model that says nothing is not the fault of the work.
        is_silent = self.claim.in_outage and not self.has_answered() and not result.text
        is_silent = is_silent and result.escalated_from is None
        return _NO_ANSWER if is_silent and self.reason is StopReason.TIMEOUT else None

    def has_answered(self) -> bool:
        """Whether the model of the run's own profile has answered a call."""
        answered = self.result.own_model_answered
        return self.gate.tokens > 0 if answered is None else answered

    def keep_waiting(self, now: datetime) -> ModelWait:
        run = retry.correct_wait(self.claim.run, now=now)
        return retry.keep_waiting(run, has_answered=self.has_answered())

    def has_waited_too_long(
        self, tx: Tx, conversation: Conversation, wait: ModelWait, outage: Outage | None
    ) -> bool:
        turn = self.claim.turn
        if turn.kind is RunKind.BACKGROUND and conversation.is_recurring:
            return False
        waiting = Waiting(
            times=(wait.since,),
            not_before=(
                tx.users.load(turn.user_id).resumed_at,
                *(event.arrived_at for event in self.result.events),
            ),
            limit=self.max_wait(conversation),
            own_trouble_since=wait.own_trouble_since,
        )
        return retry.has_waited_too_long(waiting, outage, now=tx.now)

    def leave_out_work(self, conversation: Conversation, *, now: datetime) -> Run:
        """Leave out the time in which the run has worked, or the machine slept meanwhile."""
        run, claimed_at = retry.correct_wait(self.claim.run, now=now), self.result.claimed_at
        if claimed_at is None:
            return run
        length, longest = max(now - claimed_at, timedelta()), self._run_timeout(conversation)
        left_out = length if self.has_answered() else max(length - longest, timedelta())
        return retry.leave_out(run, left_out)

    def _run_timeout(self, conversation: Conversation) -> timedelta:
        return conversation.run_timeout or self.deps.limits.run_timeout

    def max_wait(self, conversation: Conversation) -> timedelta:
        return retry.max_outage_wait(conversation.kind, self._run_timeout(conversation))

    def _has_model_worked(self) -> bool:
        """Whether the model that was in an outage has worked for the run until its end."""
        result = self.result
        if result.escalated_from is not None:
            return self.has_answered()
        if result.is_done or self.reason in _ENDED_BY_AGENT:
            return True
        has_ended = result.failure is not None or self.reason in (None, StopReason.TIMEOUT)
        return has_ended and self.has_answered()

    def is_for_person(self) -> bool:
        return self.claim.turn.kind is RunKind.REPLY and not self.result.is_unattended
