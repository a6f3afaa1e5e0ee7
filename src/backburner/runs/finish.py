"""How runs end: every way leaves a state that a person can see, and leave again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from backburner.actions import spending, steps
from backburner.actions.deps import Deps
from backburner.actions.waits import inputs, reconnection
from backburner.actions.work.jobs import result_items
from backburner.core import notice, retry, tool_journal, tool_policy, transitions
from backburner.core.allowance import Allowance, AllowanceScope
from backburner.core.connections.inputs.input_question import input_question
from backburner.core.connections.sign_in import server_of
from backburner.core.content.file import FileReference
from backburner.core.conversation import Conversation, MessageRole, Session, Source, Status
from backburner.core.errors import VaultLocked
from backburner.core.ids import ConversationId, GrantId, ItemId
from backburner.core.notice import Notice, NoticeKind
from backburner.core.outcome import Complete, summarize
from backburner.core.question import Purpose, Question
from backburner.core.run import (
    NO_WAIT,
    Failure,
    FailureKind,
    ItemKind,
    ModelWait,
    Run,
    RunEnding,
    RunKind,
    RunStatus,
)
from backburner.core.schedule import After
from backburner.core.tool_journal import JournalEntry
from backburner.core.transitions import NewMessage, Step
from backburner.core.transitions.step import FollowerEvent, system_message
from backburner.core.validation import canonical_json
from backburner.core.work import jobs
from backburner.core.work.proposal import show_proposals
from backburner.ports import Claim, Tx
from backburner.runs.model_trouble import ModelTrouble
from backburner.runs.prepare import SESSION_LOST
from backburner.runs.run_result import RunResult
from backburner.runs.stopping import StopReason, StopRequests
from backburner.runs.tool_gate import Gate

#: Delay until a run checks again whether the budget reserved by others is free.
BUDGET_RETRY_DELAY = timedelta(seconds=5)


async def commit(
    deps: Deps, claim: Claim, stop: StopRequests, gate: Gate, result: RunResult
) -> str:
    """Commit the result of a run and give up its turn; returns how it ended, for the log."""
    ending = _Ending(deps, claim, stop.reason, gate, result)
    await deps.store.commit(claim.turn, ending.write, alone=not ending.may_be_grouped)
    return ending.outcome


@dataclass(slots=True)
class _Ending:
    deps: Deps
    claim: Claim
    reason: StopReason | None
    gate: Gate
    result: RunResult
    #: A run status, or "handed back".
    outcome: str = ""
    #: Calls that were made and that the agent's session does not have: it was cut off before.
    _untold: Sequence[JournalEntry] = ()

    @property
    def trouble(self) -> ModelTrouble:
        return ModelTrouble(self.deps, self.claim, self.reason, self.gate, self.result)

    @property
    def may_be_grouped(self) -> bool:
        """Whether it may be one transaction with others: nobody waits for it, and it is simple.

        Other ways to end a run lock more than its conversation, and in another order.
        """
        is_work = self.claim.turn.kind is RunKind.BACKGROUND
        has_files = bool(self.gate.handed_over or self.result.hand_overs_before)
        return is_work and self.result.is_done and self.reason is None and not has_files

    def write(self, tx: Tx) -> None:
        turn, result = self.claim.turn, self.result
        awaited = self._lock_awaited(tx)
        if self.reason in (StopReason.SPENT, StopReason.SIGNED_OUT):
            # Lock order: the user before the conversation.
            tx.users.lock(turn.user_id)
        before = tx.turns.hold(turn)
        self._untold = self._find_untold(tx)
        conversation = self._forget_turn(tx, before) if self._untold else self._renewed(before)
        if before.session is not None and before.session != conversation.session:
            self._forget(tx, before.session, conversation.session)
        if result.session is not None and result.session == conversation.session and result.entries:
            tx.sessions.append(turn, result.session.id, result.entries)
        if result.summary is not None:
            outside = conversation.outside_read
            tx.summaries.put(turn.user_id, turn.conversation_id, result.summary, outside=outside)
            conversation = replace(conversation, summarized=True)
        self._forget_removed(tx)
        if tx.turns.is_cancelled(turn) or self.reason is StopReason.CANCELLED:
            self._cancelled(tx, conversation)
        elif result.is_done:
            self._done(tx, conversation)
        elif (trouble := self.trouble.find()) is not None:
            self._in_outage(tx, conversation, trouble)
        elif result.failure is not None:
            self._failed(tx, conversation, result.failure)
        elif self.reason is StopReason.WAITING_FOR_JOBS:
            self._block(tx, conversation, awaited)
        else:
            self._interrupted(tx, conversation)
        # Last: runs that end at the same time wait for each other here.
        self.trouble.note_outage(tx)

    def _forget_removed(self, tx: Tx) -> None:
        if any(call.tool.connection is not None for call in self.gate.unapproved.calls):
            user = self.claim.turn.user_id
            self.gate.unapproved.forget_removed({one.id for one in tx.connections.list(user)})

    def _lock_awaited(self, tx: Tx) -> Mapping[ConversationId, bool]:
        """Lock the jobs that the run waits for; return which of them have settled.

        Jobs are locked before their parent, in the same order as when they report to it.
        """
        if self.reason is not StopReason.WAITING_FOR_JOBS:
            return {}
        ids = dict.fromkeys(job_id for wait in self.gate.waiting for job_id in wait.jobs)
        locked = tx.jobs.lock(self.claim.turn.user_id, ids)
        return {job_id: job_id not in locked or jobs.is_settled(locked[job_id]) for job_id in ids}

    def _block(
        self, tx: Tx, conversation: Conversation, awaited: Mapping[ConversationId, bool]
    ) -> None:
        """Hand the run back until the jobs have settled, and redirect their results to it."""
        turn = self.claim.turn
        waiting = result_items(tx, turn.user_id, turn.conversation_id, awaited)
        tx.jobs.redirect(turn.user_id, [item.id for item in waiting], turn.kind)
        step = Step(conversation=conversation, messages=self._partial_reply())
        longest = max(wait.timeout for wait in self.gate.waiting)
        self._hand_back(tx, step, until=tx.now + longest)
        tx.jobs.wait(turn, awaited)

    def _partial_reply(self) -> tuple[NewMessage, ...]:
        """Return the text of a reply that waits for jobs, so that the user can read it already."""
        text = self.result.text.strip()
        if self.claim.turn.kind is not RunKind.REPLY or not text:
            return ()
        source = Source.WORKER if self.result.is_unattended else Source.CHAT
        return (NewMessage(role=MessageRole.ASSISTANT, content=text, source=source),)

    def _forget(self, tx: Tx, old: Session, new: Session | None) -> None:
        if new is None or new.id != old.id:
            turn = self.claim.turn
            tx.sessions.delete(turn.user_id, turn.conversation_id, old.id)

    def _renewed(self, conversation: Conversation) -> Conversation:
        result, session = self.result, conversation.session
        if result.is_for_one_run and session is not None and result.claimed_at is not None:
            first = min((item.arrived_at for item in result.all_items), default=result.claimed_at)
            missed_since = min(first, session.missed_since or first)
            return replace(conversation, session=replace(session, missed_since=missed_since))
        if result.session is None and result.session_note is None:
            return conversation
        own = conversation.profile or self.deps.default_profile
        if result.session is not None and result.session.profile != own:
            # The user has changed the model meanwhile.
            return conversation
        return replace(conversation, session=result.session)

    def _find_untold(self, tx: Tx) -> Sequence[JournalEntry]:
        untold, result = self.gate.ends.untold, self.result
        if not untold or result.is_done or result.is_for_one_run:
            return ()
        calls = tx.tool_calls.of_run(self.claim.turn.user_id, self.claim.turn.run_id)
        return tool_journal.find_untold(calls, untold)

    def _forget_turn(self, tx: Tx, before: Conversation) -> Conversation:
        """Keep nothing of this turn in the session: its agent would make its calls again.

        The next turn is told of them, as after a crash, and the journal answers them. After a run
        that was stopped, or that ends with a question, they stand in a message, which only a new
        session is sure to be given.
        """
        self.result.entries.clear()
        turn, ends_run = self.claim.turn, (StopReason.CANCELLED, StopReason.APPROVAL)
        has_message = self.reason in ends_run or tx.turns.is_cancelled(turn)
        if not (has_message or tx.sessions.has_entries(turn)):
            return before
        self.result.session_note = SESSION_LOST
        return replace(before, session=None)

    def _interrupted(self, tx: Tx, conversation: Conversation) -> None:
        match self.reason:
            case StopReason.APPROVAL:
                self._ask_for_approval(tx, conversation)
            case StopReason.IN_DOUBT:
                # The same run goes on with the answer, so that its journal stays.
                step = Step(conversation=conversation, messages=self._partial_reply())
                # Nobody is asked about a call that may be repeated.
                self._hand_back(tx, step, until=None if self._take_in_doubt(tx) else tx.now)
            case StopReason.INPUT_NEEDED:
                self._ask_for_input(tx, conversation)
            case StopReason.SIGNED_OUT:
                self._wait_for_sign_in(tx, conversation)
            case StopReason.SPENT if self.gate.over is not None:
                self._spent(tx, conversation, self.gate.over)
            case StopReason.USER_WAITING | StopReason.DRAINING | StopReason.SHUTDOWN:
                step, wait = Step(conversation=conversation), self.trouble.keep_waiting(tx.now)
                self._hand_back(tx, step, until=tx.now, wait=wait)
            case StopReason.BUDGET_RESERVED:
                step, wait = Step(conversation=conversation), self.trouble.keep_waiting(tx.now)
                until = tx.now + BUDGET_RETRY_DELAY
                self._hand_back(tx, step, until=until, serves=False, wait=wait)
            case StopReason.TIMEOUT:
                failure = Failure(FailureKind.TIMEOUT, "The run took too long.")
                self._failed(tx, conversation, failure)
            case StopReason.REPEATING:
                times = tool_policy.MAX_REPEATED_CALLS
                message = f"The agent made the same call {times} times, with the same result."
                self._failed(tx, conversation, Failure(FailureKind.INCOMPLETE, message))
            case _:
                failure = Failure(FailureKind.INCOMPLETE, "The run ended without an outcome.")
                self._failed(tx, conversation, failure)

    def _done(self, tx: Tx, conversation: Conversation) -> None:
        if (failure := self._connection_failure()) is not None:
            # The agent did without, but what it needed is not for it to say.
            self._failed(tx, conversation, failure)
            return
        run, result = self._run(conversation), self.result
        ending = RunEnding(
            status=RunStatus.SUCCESS,
            tokens=self.gate.tokens,
            result=None if result.outcome is None else summarize(result.outcome),
            data=_result_data(result),
        )
        if result.outcome is None:
            step = transitions.reply(
                conversation, run, result.text, now=tx.now, unattended=self.result.is_unattended
            )
            step = self._show_proposals(tx, step)
        else:
            step = transitions.finish(conversation, run, result.outcome, now=tx.now)
        self._commit(tx, replace(step, ends_grants=self._unused_grants()), ending)

    def _show_proposals(self, tx: Tx, step: Step) -> Step:
        """End a reply that has made proposals with our own words, which show them."""
        turn = self.claim.turn
        if not self.gate.admission.has_changes and not self.claim.resumed:
            return step
        around = tx.questions.open_around(turn.user_id, turn.conversation_id)
        opened = [question for _, question in around]
        how_to_answer = f"\n{_HOW_TO_ANSWER}" if len(opened) == 1 else ""
        shown = tuple(
            replace(system_message(question.prompt + how_to_answer), shows=question.id)
            for question in show_proposals(opened, since=self.claim.run.started_at)
        )
        return replace(step, messages=(*step.messages, *shown))

    def _failed(self, tx: Tx, conversation: Conversation, failure: Failure) -> None:
        if failure.kind is FailureKind.INCOMPLETE:
            failure = self._connection_failure() or failure
        ending = RunEnding(status=RunStatus.FAILURE, failure=failure, tokens=self.gate.tokens)
        run, outcome = self._run(conversation), self.result.outcome
        if self.claim.turn.kind is RunKind.REPLY:
            step = transitions.fail_reply(conversation, failure)
        elif outcome is not None:
            step = transitions.fail_after(conversation, run, outcome, failure, now=tx.now)
        else:
            step = transitions.fail(conversation, run, failure, now=tx.now)
        self._commit(tx, step, ending)

    def _connection_failure(self) -> Failure | None:
        """Return what failed for good, if nobody watched the run: a reply says so itself."""
        is_work = self.claim.turn.kind is RunKind.BACKGROUND
        return self.gate.troubles.failure if is_work else None

    def _ask_for_approval(self, tx: Tx, conversation: Conversation) -> None:
        if not self.gate.unapproved:
            # Its owner has removed the connection meanwhile: the run goes on without it.
            step = Step(conversation=conversation, messages=self._partial_reply())
            self._hand_back(tx, step, until=tx.now)
            return
        # The answer starts another run, which the journal of this one does not answer.
        step = tool_journal.tell_about(Step(conversation=conversation), (), made=self._untold)
        question = self.gate.unapproved.question(now=tx.now)
        step = step.then(transitions.ask_owner(conversation, question))
        self._commit(tx, step, RunEnding(status=RunStatus.SUCCESS, tokens=self.gate.tokens))

    def _ask_for_input(self, tx: Tx, conversation: Conversation) -> None:
        """Hand the run back until its owner has answered what servers ask of them."""
        turn, step = self.claim.turn, Step(conversation=conversation)
        for call_id, (call, needed) in self.gate.inputs.items():
            connection = tx.connections.find(turn.user_id, call.tool.server)
            if connection is None or connection.id != call.tool.connection:
                # Its owner has removed it meanwhile.
                continue
            question = input_question(
                needed,
                call,
                call_id,
                server=f"{connection.title} ({server_of(connection)})",
                run_id=turn.run_id,
                kind=turn.kind,
                now=tx.now,
            )
            try:
                inputs.keep_state(tx, self.deps, conversation, question, needed)
            except VaultLocked as error:
                self._failed(tx, conversation, Failure(FailureKind.TOOL, str(error)))
                return
            step = step.then(transitions.ask_owner(step.conversation, question))
        self._hand_back(tx, step, until=None if step.asked else tx.now)

    def _wait_for_sign_in(self, tx: Tx, conversation: Conversation) -> None:
        """Hand the run back until its owner has signed in to the connections that it used."""
        turn, step = self.claim.turn, Step(conversation=conversation)
        step = replace(step, messages=self._partial_reply())
        for name, connection_id in self.gate.troubles.signed_out.items():
            waiting = reconnection.wait(tx, step.conversation, turn, connection_id)
            if waiting is not None:
                failure = Failure(FailureKind.SIGNED_OUT, f"{name} needs a sign-in.")
                wait = ModelWait(failure=failure, connection=connection_id)
                self._hand_back(tx, step.then(waiting), until=None, wait=wait)
                return
        if self._is_paused(conversation):
            # Its owner has removed the connection, for example: nothing goes on without their word.
            names = ", ".join(self.gate.troubles.signed_out)
            failure = Failure(FailureKind.TOOL, f"It was paused while {names} was signed out.")
            self._failed(tx, conversation, failure)
            return
        self._hand_back(tx, step, until=tx.now)

    def _in_outage(self, tx: Tx, conversation: Conversation, failure: Failure) -> None:
        """Hand background work back until its model is available; fail a reply at once."""
        if self.trouble.is_for_person() or self._is_paused(conversation):
            self._failed(tx, conversation, failure)
            return
        claim, outage = self.claim, tx.outages.find(self.result.profile)
        wait = retry.wait_in_trouble(
            self.trouble.leave_out_work(conversation, now=tx.now),
            failure,
            outage,
            in_outage=claim.in_outage,
            has_answered=self.trouble.has_answered(),
            now=tx.now,
        )
        if self.trouble.has_waited_too_long(tx, conversation, wait, outage):
            self._end_in_outage(tx, conversation, failure)
            return
        # No claim takes it before the profile has rested, either.
        delay = retry.own_delay(wait, in_outage=claim.in_outage, now=tx.now)
        self._hand_back(tx, Step(conversation=conversation), until=tx.now + delay, wait=wait)

    def _is_paused(self, conversation: Conversation) -> bool:
        """Whether the work was paused meanwhile, and the run was not asked for all the same."""
        is_work = self.claim.turn.kind is RunKind.BACKGROUND
        is_requested = any(item.at_once for item in self.result.all_items)
        return is_work and conversation.pause_reason is not None and not is_requested

    def _end_in_outage(self, tx: Tx, conversation: Conversation, failure: Failure) -> None:
        """End the work if its time has come; other runs of it just fail."""
        ending = RunEnding(status=RunStatus.FAILURE, failure=failure, tokens=self.gate.tokens)
        if self.claim.turn.kind is RunKind.REPLY:
            step = transitions.fail_reply(conversation, failure)
            told = Notice(NoticeKind.FAILURE, step.messages[0].content)
            step = replace(step, notices=(told,))
        elif self._has_begun_too_long_ago(conversation, now=tx.now):
            step = transitions.end_in_outage(conversation, failure.message, now=tx.now)
        else:
            # The work is not to blame, and keeps its time.
            told = notice.of_requested_run(failure)
            step = Step(
                conversation=conversation, messages=(system_message(told.text),), notices=(told,)
            )
        self._commit(tx, step, ending)

    def _has_begun_too_long_ago(self, conversation: Conversation, *, now: datetime) -> bool:
        """Whether the time of the work itself came so long ago: the run may have been asked for."""
        if self._run(conversation).schedule_revision != conversation.schedule_revision:
            # It has another schedule since, which may not have begun.
            return False
        is_after_other = isinstance(conversation.schedule, After)
        if is_after_other and self.result.events:
            return True
        due_at = conversation.next_run_at
        return due_at is not None and now - due_at >= self.trouble.max_wait(conversation)

    def _cancelled(self, tx: Tx, conversation: Conversation) -> None:
        messages = list[NewMessage]()
        if self.claim.turn.kind is RunKind.REPLY:
            if text := self.result.text:
                messages.append(
                    NewMessage(role=MessageRole.ASSISTANT, content=text, source=Source.CHAT)
                )
            messages.append(system_message("Stopped.", own=True))
        step = Step(conversation=conversation, messages=tuple(messages))
        if self.claim.turn.kind is RunKind.BACKGROUND:
            step = transitions.stop_run(conversation, self._run(conversation), now=tx.now)
        step = tool_journal.tell_about(step, self._take_in_doubt(tx), made=self._untold)
        ending = RunEnding(status=RunStatus.CANCELLED, tokens=self.gate.tokens)
        self._commit(tx, step, ending, asks=False)

    def _spent(self, tx: Tx, conversation: Conversation, over: Allowance) -> None:
        turn, result = self.claim.turn, self.result
        may_raise = spending.may_raise(tx, conversation.user_id, over)
        question = spending.question(
            over, turn, result.root, now=tx.now, zone=result.zone, may_raise=may_raise
        )
        step = Step(conversation=conversation)
        if turn.kind is RunKind.REPLY:
            text = f"I cannot continue now. {question.prompt}"
            step = replace(step, messages=(system_message(text),))
        if not spending.is_already_asked(tx, conversation.user_id, question):
            step = step.then(self._ask_about_allowance(tx, conversation, over, question))
        if turn.kind is RunKind.REPLY:
            self._commit(tx, step, RunEnding(status=RunStatus.FAILURE, failure=_SPENT))
        else:
            # A conversation with a question waits for its answer anyway.
            step = step if step.asked else transitions.pause_for_allowance(conversation)
            self._hand_back(tx, step, until=None)

    def _ask_about_allowance(
        self, tx: Tx, conversation: Conversation, over: Allowance, question: Question
    ) -> Step:
        """Ask in the root conversation about its own allowance, else in this conversation."""
        root_id = self.result.root
        if over.scope is AllowanceScope.CONVERSATION and root_id != conversation.id:
            root = tx.conversations.lock(conversation.user_id, root_id)
            if root.status is not Status.ARCHIVED:
                # The root's own work does not wait for the answer.
                question = replace(question, run_kind=RunKind.REPLY)
                steps.save(tx, transitions.ask_owner(root, question))
                return Step(conversation=conversation)
        return transitions.ask_owner(conversation, question)

    def _commit(self, tx: Tx, step: Step, ending: RunEnding, *, asks: bool = True) -> None:
        step = self._ask_for_list(tx, self._ask_in_doubt(tx, step)) if asks else step
        result = self.result
        served = self._served() if ending.status is RunStatus.SUCCESS else self._loaded()
        outside = step.conversation.outside_read
        ending = replace(
            ending,
            profile=result.profile,
            escalated_from=result.escalated_from,
            outside=outside,
        )
        step = _mark_messages(self._with_files(tx, step))
        prompt = result.prompt or None
        tx.turns.commit(
            self.claim.turn, self._with_note(tx, step), ending, served=served, prompt=prompt
        )
        self.outcome = ending.status.value
        if self._may_have_inputs():
            inputs.forget_unused(tx, step.conversation.user_id, step.conversation.id)
        steps.propagate(tx, step)

    def _may_have_inputs(self) -> bool:
        """Whether answers for servers may be sealed for the run; of most, it is known without."""
        asked = {question.purpose for question in self.claim.conversation.questions}
        return Purpose.INPUT in asked or any(inputs.find_answers(self.result.all_items))

    def _hand_back(
        self,
        tx: Tx,
        step: Step,
        *,
        until: datetime | None,
        serves: bool = True,
        wait: ModelWait = NO_WAIT,
    ) -> None:
        step = self._ask_for_list(tx, self._ask_in_doubt(tx, step))
        step = self._with_note(tx, _mark_messages(self._with_files(tx, step)))
        if step.asked and wait.connection is None:
            # It waits for its user then.
            wait = NO_WAIT
        served = self._served() if serves else []
        # In an outage a run is handed back many times, and is told the same each time.
        is_told = wait.failure is None or self.gate.tokens > 0
        tx.turns.hand_back(
            self.claim.turn,
            step,
            until=until,
            served=served,
            wait=wait,
            prompt=(self.result.prompt or None) if is_told else None,
        )
        self.outcome = "handed back"
        steps.propagate(tx, step)

    def _with_files(self, tx: Tx, step: Step) -> Step:
        """Attach what the agent handed over to the last message of the run, or to one of ours."""
        files = self._find_handed_over(tx)
        if not files:
            return step
        messages, count = step.messages, len(step.messages)
        for number in reversed(range(count)):
            if messages[number].role is MessageRole.ASSISTANT:
                said = replace(messages[number], files=files)
                messages = (*messages[:number], said, *messages[number + 1 :])
                return replace(step, messages=messages)
        is_reply = self.claim.turn.kind is RunKind.REPLY
        source = Source.CHAT if is_reply and not self.result.is_unattended else Source.WORKER
        names = ", ".join(file.name for file in files)
        said = NewMessage(
            role=MessageRole.ASSISTANT,
            content=f"{_HERE_ARE_FILES if len(files) > 1 else _HERE_IS_A_FILE}: {names}",
            source=source,
            files=files,
        )
        return replace(step, messages=(said, *messages))

    def _find_handed_over(self, tx: Tx) -> tuple[FileReference, ...]:
        """Find what was handed over and no message has yet."""
        before, turn = self.result.hand_overs_before, self.claim.turn
        files = [file for entry in before for file in entry.files]
        if files:
            runs = list({entry.run_id for entry in before})
            given = tx.messages.files_of(
                turn.user_id, turn.conversation_id, limit=_MESSAGES_SEARCHED, runs=runs
            )
            files = [file for file in files if file not in given]
        return tuple(dict.fromkeys([*files, *self.gate.handed_over]))

    def _with_note(self, tx: Tx, step: Step) -> Step:
        """Say that the agent's session was begun anew, unless that was the last thing said."""
        note, turn = self.result.session_note, self.claim.turn
        if note is None:
            return step
        said = tx.messages.recent(turn.user_id, turn.conversation_id, limit=1)
        if any(message.content == note for message in said):
            return step
        return replace(step, messages=(system_message(note), *step.messages))

    def _ask_in_doubt(self, tx: Tx, step: Step) -> Step:
        calls = self._take_in_doubt(tx)
        return tool_journal.ask_about(step, calls, self.claim.turn.kind, now=tx.now)

    def _ask_for_list(self, tx: Tx, step: Step) -> Step:
        """Ask about all calls of a test run that need approval; another process has no list."""
        task_id = step.conversation.parent_id
        if not self.gate.lists_calls or not self.gate.unapproved or task_id is None:
            return step
        question = self.gate.unapproved.list_question(task_id, now=tx.now)
        return step.then(transitions.ask_owner(step.conversation, question))

    def _take_in_doubt(self, tx: Tx) -> Sequence[JournalEntry]:
        # The gate knows only the calls since this claim; a run that resumed may have earlier ones.
        if not self.gate.ends.unfinished and not self.claim.resumed:
            return ()
        return tx.tool_calls.take_in_doubt(self.claim.turn)

    def _run(self, conversation: Conversation) -> Run:
        """Return the run, under the schedule that its items belong to.

        The last event of work after other work makes a new revision, so that a run in progress
        does not end the work; one that was handed back before may serve that event after all.
        """
        run, after = self.claim.run, conversation.schedule
        last = FollowerEvent.STOPPED.value
        serves_last = any(event.content.get("signal") == last for event in self.result.events)
        is_same = self.claim.conversation.schedule_revision == conversation.schedule_revision
        if isinstance(after, After) and after.once and serves_last and is_same:
            return replace(run, schedule_revision=conversation.schedule_revision)
        return run

    def _loaded(self) -> list[ItemId]:
        return [item.id for item in self.result.items]

    def _served(self) -> list[ItemId]:
        """Return the items in the prompt, and those that the agent has read since."""
        loaded = self._loaded()
        return [*loaded, *sorted(self.gate.read.difference(loaded))]

    def _unused_grants(self) -> tuple[GrantId, ...]:
        """Return the single-use grants of the answers that a run was started by, if it is done."""
        items = self.result.all_items
        is_final = self.result.outcome is None or isinstance(self.result.outcome, Complete)
        return tuple(
            grant_id
            for item in items
            if is_final and item.kind is ItemKind.ANSWER
            for grant_id in tool_policy.grant_ids(item.content)
        )


_HOW_TO_ANSWER = "Answer here with yes or no."
_HERE_IS_A_FILE, _HERE_ARE_FILES = "Here is a file", "Here are files"
#: With files, for those that an earlier attempt handed over.
_MESSAGES_SEARCHED = 100
_SPENT = Failure(FailureKind.MODEL, "The allowance is used up.")


def _mark_messages(step: Step) -> Step:
    """Mark the messages of a run whose session has read outside text."""
    if not step.conversation.outside_read:
        return step
    return replace(step, messages=tuple(replace(new, outside=True) for new in step.messages))


def _result_data(result: RunResult) -> str | None:
    """Return the bare result of a completed run as JSON, which is stored with it."""
    outcome = result.outcome
    if isinstance(outcome, Complete) and outcome.result is not None:
        return canonical_json(outcome.result)
    return None
