"""How runs end: every way leaves a state that a person can see, and leave again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from backburner.actions import spending, steps
from backburner.actions.deps import Deps
from backburner.actions.work.jobs import result_items
from backburner.core import tool_journal, transitions
from backburner.core.allowance import Allowance, AllowanceScope
from backburner.core.conversation import Conversation, MessageRole, Session, Source, Status
from backburner.core.ids import ConversationId, ItemId
from backburner.core.outcome import Complete, Outcome
from backburner.core.question import Question
from backburner.core.run import (
    Failure,
    FailureKind,
    Item,
    ItemKind,
    RunEnding,
    RunKind,
    RunStatus,
)
from backburner.core.transitions import NewMessage, Step
from backburner.core.transitions.step import system_message
from backburner.core.validation import canonical_json
from backburner.core.work import jobs
from backburner.ports import Claim, Tx
from backburner.runs.gate import Gate
from backburner.runs.stopping import StopReason, StopRequests

#: After it a run looks again whether others have left something to spend.
BUDGET_RETRY_DELAY = timedelta(seconds=5)


@dataclass(slots=True, kw_only=True)
class RunResult:
    """What came of a run so far."""

    items: Sequence[Item]
    #: Items it served before it was handed back.
    served_before: Sequence[Item] = ()
    zone: str
    root: ConversationId
    text: str = ""
    outcome: Outcome | None = None
    failure: Failure | None = None
    #: The agent ended as it should.
    is_done: bool = False
    #: The profile it is done under, and the one that could not.
    profile: str = ""
    escalated_from: str | None = None
    #: The session the agent works in, and what it is to remember of it.
    session: Session | None = None
    entries: list[str] = field(default_factory=list)
    #: Why the previous session was not resumed, in words for the user.
    session_note: str | None = None

    def remember(self, session_id: str, entries: Sequence[str], tokens: int | None) -> None:
        if tokens is None:
            tokens = self.session.tokens if self.session else 0
        self.session = Session(self.profile, session_id, tokens)
        self.entries += entries


async def commit(
    deps: Deps, claim: Claim, stop: StopRequests, gate: Gate, result: RunResult
) -> str:
    """Commit the result of a run and give up its turn; returns how it ended, for the log."""
    ending = _Ending(deps, claim, stop.reason, gate, result)
    await deps.store.commit(claim.turn, ending.write)
    return ending.outcome


@dataclass(slots=True)
class _Ending:
    deps: Deps
    claim: Claim
    reason: StopReason | None
    gate: Gate
    result: RunResult
    #: A run status, or that it was handed back.
    outcome: str = ""

    def write(self, tx: Tx) -> None:
        turn, result = self.claim.turn, self.result
        awaited = self._lock_awaited(tx)
        if self.reason is StopReason.SPENT:
            # Whoever needs both locks takes that of the user first.
            tx.users.lock(turn.user_id)
        before = tx.turns.hold(turn)
        found = self._renewed(before)
        if before.session is not None and before.session != found.session:
            self._forget(tx, before.session, found.session)
        if result.session is not None and result.entries:
            tx.sessions.append(turn, result.session.id, result.entries)
        if tx.turns.is_cancelled(turn) or self.reason is StopReason.CANCELLED:
            self._cancelled(tx, found)
        elif result.is_done:
            self._done(tx, found)
        elif result.failure is not None:
            self._failed(tx, found, result.failure)
        elif self.reason is StopReason.WAITING_FOR_JOBS:
            self._block(tx, found, awaited)
        else:
            self._interrupted(tx, found)

    def _lock_awaited(self, tx: Tx) -> Mapping[ConversationId, bool]:
        """See which of the jobs that the run waits for have settled; no more do during this.

        They are locked before their parent is, as it is when one of them reports.
        """
        if self.reason is not StopReason.WAITING_FOR_JOBS:
            return {}
        named = dict.fromkeys(job for waiting in self.gate.waiting for job in waiting.jobs)
        there = tx.jobs.lock(self.claim.turn.user_id, named)
        return {job: job not in there or jobs.is_settled(there[job]) for job in named}

    def _block(self, tx: Tx, found: Conversation, awaited: Mapping[ConversationId, bool]) -> None:
        """Hand the run back until the jobs have settled, and keep what they tell for it."""
        turn = self.claim.turn
        waiting = result_items(tx, turn.user_id, turn.conversation_id, awaited)
        tx.jobs.redirect(turn.user_id, [item.id for item in waiting], turn.kind)
        step = Step(conversation=found, messages=self._said_so_far())
        longest = max(one.timeout for one in self.gate.waiting)
        self._hand_back(tx, step, until=tx.now + longest)
        tx.jobs.wait(turn, awaited)

    def _said_so_far(self) -> tuple[NewMessage, ...]:
        """Keep what a reply has said before it waits: whoever it is for has time to read it."""
        text = self.result.text.strip()
        if self.claim.turn.kind is not RunKind.REPLY or not text:
            return ()
        source = Source.WORKER if self._is_unattended() else Source.CHAT
        return (NewMessage(role=MessageRole.ASSISTANT, content=text, source=source),)

    def _forget(self, tx: Tx, old: Session, new: Session | None) -> None:
        if new is None or new.id != old.id:
            turn = self.claim.turn
            tx.sessions.delete(turn.user_id, turn.conversation_id, old.id)

    def _renewed(self, found: Conversation) -> Conversation:
        if self.result.session is None and self.result.session_note is None:
            return found
        return replace(found, session=self.result.session)

    def _interrupted(self, tx: Tx, found: Conversation) -> None:
        match self.reason:
            case StopReason.APPROVAL:
                question = self.gate.question(now=tx.now)
                step = transitions.ask_owner(found, question)
                self._commit(tx, step, RunEnding(status=RunStatus.SUCCESS, tokens=self.gate.tokens))
            case StopReason.SPENT if self.gate.over is not None:
                self._spent(tx, found, self.gate.over)
            case StopReason.USER_WAITING | StopReason.DRAINING | StopReason.SHUTDOWN:
                self._hand_back(tx, Step(conversation=found), until=tx.now)
            case StopReason.BUDGET_RESERVED:
                step = Step(conversation=found)
                self._hand_back(tx, step, until=tx.now + BUDGET_RETRY_DELAY, serves=False)
            case StopReason.TIMEOUT:
                failure = Failure(FailureKind.TIMEOUT, "It took longer than a run may.")
                self._failed(tx, found, failure)
            case _:
                failure = Failure(FailureKind.INCOMPLETE, "It ended without saying how.")
                self._failed(tx, found, failure)

    def _done(self, tx: Tx, found: Conversation) -> None:
        run, result = self.claim.run, self.result
        ending = RunEnding(status=RunStatus.SUCCESS, tokens=self.gate.tokens, result=_kept(result))
        if result.outcome is None:
            step = transitions.reply(
                found, run, result.text, now=tx.now, unattended=self._is_unattended()
            )
        else:
            step = transitions.finish(found, run, result.outcome, now=tx.now)
        self._commit(tx, step, ending)

    def _failed(self, tx: Tx, found: Conversation, failure: Failure) -> None:
        ending = RunEnding(status=RunStatus.FAILURE, failure=failure, tokens=self.gate.tokens)
        if self.claim.turn.kind is RunKind.REPLY:
            step = transitions.fail_reply(found, failure)
        else:
            step = transitions.fail(found, self.claim.run, failure, now=tx.now)
        self._commit(tx, step, ending)

    def _cancelled(self, tx: Tx, found: Conversation) -> None:
        said: tuple[NewMessage, ...] = ()
        if self.claim.turn.kind is RunKind.REPLY:
            if self.result.text:
                said = (
                    NewMessage(
                        role=MessageRole.ASSISTANT, content=self.result.text, source=Source.CHAT
                    ),
                )
            said = (*said, system_message("Stopped."))
        left = [entry.tool for entry in self._doubtful(tx)]
        if left:
            tools = ", ".join(left)
            text = f"It was stopped during a call of {tools}, which may or may not have happened."
            said = (*said, system_message(text))
        step = Step(conversation=found, messages=said)
        self._commit(
            tx,
            step,
            RunEnding(status=RunStatus.CANCELLED, tokens=self.gate.tokens),
            asks=False,
        )

    def _spent(self, tx: Tx, found: Conversation, over: Allowance) -> None:
        turn, result = self.claim.turn, self.result
        question = spending.question(over, turn, result.root, now=tx.now, zone=result.zone)
        step = Step(conversation=found)
        if turn.kind is RunKind.REPLY:
            text = f"I cannot go on now. {question.prompt}"
            step = replace(step, messages=(system_message(text),))
        if not spending.is_already_asked(tx, found.user_id, question):
            step = steps.merge(step, self._ask_about_allowance(tx, found, over, question))
        if turn.kind is RunKind.REPLY:
            self._commit(tx, step, RunEnding(status=RunStatus.FAILURE, failure=_SPENT))
        else:
            # What asks waits for the answer anyway.
            self._hand_back(
                tx, step if step.asked else transitions.pause_for_allowance(found), until=None
            )

    def _ask_about_allowance(
        self, tx: Tx, found: Conversation, over: Allowance, question: Question
    ) -> Step:
        """Ask at the top where it is about all that hangs under it, else where it was noticed."""
        root = self.result.root
        if over.scope is AllowanceScope.CONVERSATION and root != found.id:
            top = tx.conversations.lock(found.user_id, root)
            if top.status is not Status.ARCHIVED:
                # It is not the top's own work that waits for the answer.
                asked = replace(question, run_kind=RunKind.REPLY)
                steps.save(tx, transitions.ask_owner(top, asked))
                return Step(conversation=found)
        return transitions.ask_owner(found, question)

    def _commit(self, tx: Tx, step: Step, ending: RunEnding, *, asks: bool = True) -> None:
        step = self._with_doubts(tx, step) if asks else step
        result = self.result
        served = self._served() if ending.status is RunStatus.SUCCESS else self._loaded()
        ending = replace(ending, profile=result.profile, escalated_from=result.escalated_from)
        tx.turns.commit(self.claim.turn, self._with_note(tx, step), ending, served=served)
        self.outcome = ending.status.value
        steps.propagate(tx, step)

    def _hand_back(
        self, tx: Tx, step: Step, *, until: datetime | None, serves: bool = True
    ) -> None:
        step = self._with_doubts(tx, step)
        served = self._served() if serves else []
        tx.turns.hand_back(self.claim.turn, self._with_note(tx, step), until=until, served=served)
        self.outcome = "handed back"
        steps.propagate(tx, step)

    def _with_note(self, tx: Tx, step: Step) -> Step:
        """Say that the agent's session was begun anew, unless that was the last thing said."""
        note, turn = self.result.session_note, self.claim.turn
        if note is None:
            return step
        said = tx.messages.recent(turn.user_id, turn.conversation_id, limit=1)
        if any(message.content == note for message in said):
            return step
        return replace(step, messages=(system_message(note), *step.messages))

    def _with_doubts(self, tx: Tx, step: Step) -> Step:
        """Ask about calls that the run may or may not have made."""
        for entry in self._doubtful(tx):
            question = tool_journal.doubt_question(entry, self.claim.turn.kind, now=tx.now)
            step = steps.merge(step, transitions.ask_owner(step.conversation, question))
        return step

    def _doubtful(self, tx: Tx) -> Sequence[tool_journal.JournalEntry]:
        turn = self.claim.turn
        tx.tool_calls.mark_unknown(turn)
        return [
            entry
            for entry in tool_journal.calls_in_doubt(
                tx.tool_calls.of_run(turn.user_id, turn.run_id)
            )
            # A run that was handed back and goes on was asked about before.
            if not tx.questions.exists(turn.user_id, tool_journal.doubt_question_id(entry))
        ]

    def _loaded(self) -> list[ItemId]:
        return [item.id for item in self.result.items]

    def _served(self) -> list[ItemId]:
        """Name what the agent was told when it began, and what it has read by itself since."""
        loaded = self._loaded()
        return [*loaded, *sorted(self.gate.read.difference(loaded))]

    def _is_unattended(self) -> bool:
        items = [*self.result.served_before, *self.result.items]
        return bool(items) and all(item.kind is ItemKind.JOB_RESULT for item in items)


_SPENT = Failure(FailureKind.MODEL, "What may be spent has been spent.")


def _kept(result: RunResult) -> str | None:
    """Keep the bare finding of a run with its record."""
    outcome = result.outcome
    if isinstance(outcome, Complete) and outcome.result is not None:
        return canonical_json(outcome.result)
    return None
