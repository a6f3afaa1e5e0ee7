"""Transitions caused by runs: start, outcome, failure, crash, reply.

An outcome is applied to the conversation as it is now, not as it was when the run started. Only
background runs change the state of the work; replies do not.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import assert_never

from backburner.core import notice, retry, schedule
from backburner.core.conversation import (
    Conversation,
    EndedAs,
    Kind,
    MessageRole,
    OnRepeatedFailure,
    PauseReason,
    Source,
    Status,
    advance_state,
)
from backburner.core.errors import TooLarge
from backburner.core.ids import derive_question_id
from backburner.core.outcome import Complete, Continue, NeedsInput, Outcome
from backburner.core.question import (
    FIRST_REMINDER,
    NO,
    SKIP,
    YES,
    NewQuestion,
    Purpose,
    Question,
    QuestionType,
)
from backburner.core.run import (
    Failure,
    FailureKind,
    ItemKind,
    Run,
    SkippedSlots,
    SkipReason,
    StartedBy,
)
from backburner.core.transitions.answers import FAILED_CONNECTIONS, STOP, TRY_AGAIN
from backburner.core.transitions.shared_changes import (
    account_for_slots,
    advance_schedule,
    end_work,
    open_question,
    pause_work,
    report_stop,
)
from backburner.core.transitions.step import (
    FollowerEvent,
    NewMessage,
    Report,
    Step,
    Stops,
    system_message,
    worker_message,
)
from backburner.core.work import jobs, views

#: One-time work asks the user after ending with `continue` this often, or for this long.
MAX_CONTINUES = 20
MAX_CONTINUE_TIME = timedelta(hours=24)
DEFAULT_CONTINUE_DELAY = timedelta(minutes=1)
#: A conversation asks the user after this many consecutive replies to job results.
MAX_UNATTENDED_REPLIES = 20


@dataclass(frozen=True, slots=True)
class RunStart:
    """The result of a claim: the missed slots in `step`, and whether a background run starts."""

    step: Step
    runs: bool
    #: The slot that the run is for, if any.
    slot_at: datetime | None


def has_background_work(conversation: Conversation, *, has_items: bool, now: datetime) -> bool:
    """Decide whether a background run may start, for inbox items or because a slot is due."""
    if conversation.status is Status.ACTIVE:
        return has_items
    due_at = conversation.next_run_at
    is_due = due_at is not None and due_at <= now
    return conversation.status is Status.BACKGROUND and (has_items or is_due)


def begin(conversation: Conversation, *, now: datetime) -> RunStart:
    """Account for the due slots when a background run is about to start."""
    timed, due_at = conversation.schedule, conversation.next_run_at
    is_due = conversation.status is Status.BACKGROUND and due_at is not None and due_at <= now
    if timed is None or due_at is None or not is_due:
        return RunStart(Step(conversation=conversation), runs=True, slot_at=None)
    settled_until = conversation.settled_until
    due = schedule.due(timed, next_run_at=due_at, settled_until=settled_until, now=now)
    missed = () if due.missed is None else (SkippedSlots(due.missed, SkipReason.MISSED),)
    if due.runs:
        settled = replace(conversation, settled_until=due.slot_at or settled_until)
        step = Step(conversation=settled, skipped=missed)
        return RunStart(step, runs=True, slot_at=due.slot_at)
    passed, _ = advance_schedule(conversation, SkipReason.MISSED, now=now)
    return RunStart(Step(conversation=passed, skipped=missed), runs=False, slot_at=None)


def find_start(
    conversation: Conversation, *, slot_at: datetime | None, item: ItemKind | None
) -> StartedBy:
    """Find what starts a run: the first item that waits for it, or the time of the work."""
    if item is not None:
        return StartedBy(item.value)
    if slot_at is not None:
        return StartedBy.SCHEDULE
    if conversation.failures > 0 or conversation.crashes > 0:
        return StartedBy.RETRY
    # Work that starts at once has no slot.
    is_new = conversation.run_count == 0
    return StartedBy.START if is_new else StartedBy.CONTINUATION


def blame_pause(step: Step, *, resumed_at: datetime | None) -> Step:
    """Correct the reason of missed slots if all work was paused until after the last of them."""
    return replace(
        step,
        skipped=tuple(
            replace(missed, reason=SkipReason.PAUSED)
            if resumed_at is not None and missed.gap.last_at <= resumed_at
            else missed
            for missed in step.skipped
        ),
    )


def skip_discovery_slot(conversation: Conversation, *, now: datetime) -> Conversation:
    """Skip the due slots without a record, while the user is busy or away."""
    passed, _ = advance_schedule(conversation, SkipReason.MISSED, now=now)
    return passed


def finish(conversation: Conversation, run: Run, outcome: Outcome, *, now: datetime) -> Step:
    """Apply the outcome of a background run."""
    messages = worker_message(outcome.message)
    if conversation.status is Status.ARCHIVED:
        return Step(conversation=conversation, messages=messages)
    try:
        state = advance_state(
            conversation.state,
            outcome.state_update,
            outcome.next_step,
            outside=conversation.outside_read,
        )
    except TooLarge as error:
        failure = Failure(FailureKind.INCOMPLETE, str(error))
        return fail(conversation, run, failure, now=now)
    ran = replace(_count_run(conversation, now), state=state, failures=0, crashes=0)
    match outcome:
        case NeedsInput():
            question = _question(outcome.question, run, now=now)
            step = open_question(ran, question, message=outcome.message)
        case Continue():
            step = _continue(ran, run, outcome, now=now)
        case Complete():
            step = _complete(ran, run, outcome, now=now)
        case _:
            assert_never(outcome)
    return replace(step, messages=(*messages, *step.messages))


def fail(conversation: Conversation, run: Run, failure: Failure, *, now: datetime) -> Step:
    """Apply the failure of a background run: retry, ask the user, or give up."""
    if conversation.status is Status.ARCHIVED:
        return Step(conversation=conversation)
    if not _affects_work(conversation, run):
        message = system_message(f"A background run failed: {failure.message}")
        return Step(conversation=_count_run(conversation, now), messages=(message,))
    verdict = retry.judge(conversation, failure, now=now)
    if isinstance(verdict, retry.AskUser):
        return _ask_about(_count_run(conversation, now), run, failure, now=now)
    failed = replace(
        _count_run(conversation, now), failures=retry.count_failure(conversation, failure)
    )
    if isinstance(verdict, retry.AtLimit) or _has_reached_max_runs(failed):
        newly = not isinstance(verdict, retry.AtLimit) or verdict.newly
        return _give_up(failed, failure, newly=newly, now=now)
    return _try_again(failed, failure, verdict.at, now=now)


def fail_after(
    conversation: Conversation, run: Run, outcome: Outcome, failure: Failure, *, now: datetime
) -> Step:
    """Apply the failure of a background run whose agent went on without what failed.

    What it said and found is kept, but its work is not done.
    """
    state = conversation.state
    # A run that fails for that reason would hide why this one did.
    with suppress(TooLarge):
        outside = conversation.outside_read
        state = advance_state(state, outcome.state_update, outcome.next_step, outside=outside)
    step = fail(replace(conversation, state=state), run, failure, now=now)
    return replace(step, messages=(*worker_message(outcome.message), *step.messages))


def crash(conversation: Conversation, run: Run, *, now: datetime) -> Step:
    """Apply the crash of a background run; the next time stays, so that it is claimed again."""
    if conversation.status is Status.ARCHIVED or not _is_current(conversation, run):
        return Step(conversation=conversation)
    crashed = replace(conversation, crashes=conversation.crashes + 1)
    if crashed.crashes < retry.MAX_CRASHES:
        return Step(conversation=crashed)
    text = f"The work was stopped: its process crashed {retry.MAX_CRASHES} times in a row."
    if not _affects_work(conversation, run):
        reset = replace(crashed, crashes=0)
        return replace(report_stop(reset, text), stops=Stops.WORK)
    if crashed.is_recurring:
        paused = pause_work(crashed, PauseReason.CRASHES)
        return replace(report_stop(paused, text), signal=FollowerEvent.ENDED)
    return _end_in_error(crashed, text, now=now)


def reply(
    conversation: Conversation, run: Run, text: str, *, now: datetime, unattended: bool = False
) -> Step:
    """Record a reply. `unattended`: it answers job results, not the user."""
    message = NewMessage(
        role=MessageRole.ASSISTANT,
        content=text,
        source=Source.WORKER if unattended else Source.CHAT,
    )
    if conversation.status is Status.ARCHIVED or not unattended:
        return Step(conversation=conversation, messages=(message,))
    counted = replace(conversation, unattended_replies=conversation.unattended_replies + 1)
    result_notice = notice.of_unattended_reply(conversation, text)
    notices = () if result_notice is None else (result_notice,)
    if counted.unattended_replies < MAX_UNATTENDED_REPLIES:
        return Step(conversation=counted, messages=(message,), notices=notices)
    question = NewQuestion(
        type=QuestionType.CONFIRMATION,
        prompt=f"I have replied to {MAX_UNATTENDED_REPLIES} job results without hearing from you."
        " Shall I continue?",
        options=(YES, NO),
    )
    step = open_question(replace(counted, unattended_replies=0), _question(question, run, now=now))
    return replace(step, messages=(message,), notices=(*notices, *step.notices))


def fail_reply(conversation: Conversation, failure: Failure) -> Step:
    """Record that a reply failed; the items it was for count as served."""
    text = f"I could not answer: {failure.sentence} You can try again."
    return Step(conversation=conversation, messages=(system_message(text),))


def ask_owner(conversation: Conversation, question: Question) -> Step:
    """End a run with a question of the system: an approval, a call in doubt, an allowance."""
    if conversation.status is Status.ARCHIVED:
        return Step(conversation=conversation, messages=worker_message(question.prompt))
    return open_question(conversation, question)


def _continue(conversation: Conversation, run: Run, outcome: Continue, *, now: datetime) -> Step:
    if not _affects_work(conversation, run):
        return Step(conversation=conversation)
    if _has_reached_max_runs(conversation):
        return _end_at_limit(conversation, now=now)
    if conversation.is_recurring:
        moved, skipped = advance_schedule(conversation, SkipReason.STILL_RUNNING, now=now)
        return Step(conversation=moved, skipped=skipped)
    since = conversation.again_since or now
    count = conversation.again_count + 1
    if count > MAX_CONTINUES or now - since > MAX_CONTINUE_TIME:
        question = NewQuestion(
            type=QuestionType.CHOICE,
            prompt=f"This is not done after {conversation.again_count} runs. Shall I continue?",
            options=(TRY_AGAIN, STOP),
        )
        return open_question(
            conversation, _question(question, run, now=now, purpose=Purpose.FAILURE)
        )
    again_at = now + (outcome.again_in or DEFAULT_CONTINUE_DELAY)
    return Step(
        conversation=replace(
            conversation, next_run_at=again_at, again_count=count, again_since=since
        )
    )


def _complete(conversation: Conversation, run: Run, outcome: Complete, *, now: datetime) -> Step:
    result_notice = notice.of_result(conversation, outcome)
    notices = () if result_notice is None else (result_notice,)
    result_hash = notice.result_hash(outcome) or conversation.last_result_hash
    updated = replace(conversation, last_result_hash=result_hash)
    if not _is_current(conversation, run):
        return Step(conversation=updated, notices=notices)
    if outcome.final or not updated.is_recurring:
        return replace(
            _end_completed(updated, _final_report(conversation, outcome), now=now), notices=notices
        )
    report = None if result_notice is None else Report(result_notice.text)
    if _has_reached_max_runs(updated):
        if report is None:
            return _end_at_limit(updated, now=now)
        return replace(_end_completed(updated, report, now=now), notices=notices)
    if updated.pause_reason is not None:
        return Step(
            conversation=updated, notices=notices, report=report, signal=FollowerEvent.COMPLETED
        )
    moved, skipped = advance_schedule(updated, SkipReason.STILL_RUNNING, now=now)
    return Step(
        conversation=moved,
        skipped=skipped,
        notices=notices,
        report=report,
        signal=FollowerEvent.COMPLETED,
    )


def _try_again(
    conversation: Conversation, failure: Failure, at: datetime, *, now: datetime
) -> Step:
    failure_notice = notice.of_passing_failure(conversation, failure)
    notices = () if failure_notice is None else (failure_notice,)
    if not conversation.is_recurring:
        return Step(conversation=replace(conversation, next_run_at=at), notices=notices)
    moved, skipped = advance_schedule(conversation, SkipReason.STILL_RUNNING, now=now)
    # If the next slot is sooner, it is the retry.
    sooner = at if moved.next_run_at is None else min(at, moved.next_run_at)
    return Step(conversation=replace(moved, next_run_at=sooner), skipped=skipped, notices=notices)


def _give_up(conversation: Conversation, failure: Failure, *, newly: bool, now: datetime) -> Step:
    kind = "repeatedly" if conversation.failures > 1 else "and retrying cannot help"
    text = f"The work failed {kind}: {failure.sentence}"
    if not conversation.is_recurring or _has_reached_max_runs(conversation):
        return _end_in_error(conversation, text, now=now)
    if conversation.on_repeated_failure is OnRepeatedFailure.PAUSE:
        accounted, skipped = account_for_slots(conversation, SkipReason.STILL_RUNNING, now=now)
        paused = pause_work(accounted, PauseReason.FAILURES)
        step = report_stop(paused, f"{text} It is paused.")
        return replace(
            step, skipped=skipped, report=Report(text, failed=True), signal=FollowerEvent.ENDED
        )
    moved, skipped = advance_schedule(conversation, SkipReason.STILL_RUNNING, now=now)
    if not newly:
        return Step(conversation=moved, skipped=skipped)
    return replace(report_stop(moved, f"{text} It continues at its next time."), skipped=skipped)


def _final_report(conversation: Conversation, outcome: Complete) -> Report | None:
    """Return the last report of completed work; a job's result goes to its parent in any case."""
    if conversation.kind is Kind.JOB:
        return Report(jobs.result_text(outcome))
    if outcome.message is not None:
        told = notice.of_result(conversation, outcome)
        return None if told is None else Report(told.text)
    return Report(views.DEFAULT_RESULT) if notice.wants_results(conversation) else None


def _end_completed(conversation: Conversation, report: Report | None, *, now: datetime) -> Step:
    return Step(
        conversation=end_work(conversation, EndedAs.COMPLETED, now=now),
        stops=Stops.WORK,
        report=report,
        signal=FollowerEvent.COMPLETED,
    )


def _end_at_limit(conversation: Conversation, *, now: datetime) -> Step:
    """End work whose last permitted run had nothing new to report, and say so."""
    runs = "1 run" if conversation.max_runs == 1 else f"{conversation.max_runs} runs"
    has_result = conversation.last_result_hash is not None
    ending = ". The last one had nothing new to report." if has_result else " without a result."
    text = f"It reached its limit of {runs}{ending}"
    limit_notice = notice.of_limit(conversation, text)
    report = None if limit_notice is None else Report(text)
    return replace(
        _end_completed(conversation, report, now=now),
        messages=(system_message(text),),
        notices=() if limit_notice is None else (limit_notice,),
    )


def _end_in_error(conversation: Conversation, text: str, *, now: datetime) -> Step:
    ended = end_work(conversation, EndedAs.ERROR, now=now)
    return replace(
        report_stop(ended, text),
        stops=Stops.WORK,
        report=Report(text, failed=True),
        signal=FollowerEvent.ENDED,
    )


def _ask_about(conversation: Conversation, run: Run, failure: Failure, *, now: datetime) -> Step:
    # One-time work that is skipped goes on without the connections that failed.
    may_skip = conversation.is_recurring or bool(failure.connections)
    options = (TRY_AGAIN, SKIP, STOP) if may_skip else (TRY_AGAIN, STOP)
    question = NewQuestion(type=QuestionType.CHOICE, prompt=failure.message, options=options)
    asked = _question(question, run, now=now, purpose=Purpose.FAILURE)
    if failure.connections:
        asked = replace(asked, binds_to={FAILED_CONNECTIONS: list(failure.connections)})
    step = open_question(conversation, asked)
    message = system_message(f"The work cannot continue: {failure.message}")
    return replace(step, messages=(message,))


def _question(
    question: NewQuestion, run: Run, *, now: datetime, purpose: Purpose = Purpose.QUESTION
) -> Question:
    return Question(
        id=derive_question_id(run.id, run.epoch, purpose.value),
        purpose=purpose,
        type=question.type,
        prompt=question.prompt,
        options=question.options,
        run_id=run.id,
        run_kind=run.kind,
        asked_at=now,
        remind_at=now + FIRST_REMINDER,
        expires_at=None if question.expires_in is None else now + question.expires_in,
        default=question.default,
    )


def _count_run(conversation: Conversation, now: datetime) -> Conversation:
    return replace(conversation, run_count=conversation.run_count + 1, last_run_at=now)


def _has_reached_max_runs(conversation: Conversation) -> bool:
    return conversation.max_runs is not None and conversation.run_count >= conversation.max_runs


def stop_run(conversation: Conversation, run: Run, *, now: datetime) -> Step:
    """End a background run that the user has stopped; recurring work goes on at its next time."""
    if not (_affects_work(conversation, run) and conversation.is_recurring):
        return Step(conversation=conversation)
    moved, skipped = advance_schedule(conversation, SkipReason.STILL_RUNNING, now=now)
    return Step(conversation=moved, skipped=skipped)


def _affects_work(conversation: Conversation, run: Run) -> bool:
    """Return whether the run's work still exists and is not paused."""
    works = conversation.schedule is not None and conversation.pause_reason is None
    return works and _is_current(conversation, run)


def _is_current(conversation: Conversation, run: Run) -> bool:
    """Return whether the schedule is still the one the run was claimed under."""
    return conversation.schedule_revision == run.schedule_revision
