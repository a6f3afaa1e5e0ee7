"""Transitions caused by events, child conversations, predecessors and allowances."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from backburner.core import schedule
from backburner.core.conversation import (
    PASSING_PAUSES,
    Author,
    Conversation,
    EndedAs,
    Kind,
    MessageRole,
    PauseReason,
    Source,
    Status,
    may_contain_outside_text,
)
from backburner.core.errors import Conflict
from backburner.core.run import ItemKind, NewItem, RunKind
from backburner.core.schedule import After, AfterCondition, Cron, Interval, Scheduled
from backburner.core.transitions.create import is_test_run
from backburner.core.transitions.shared_changes import (
    end_work,
    is_proposal,
    pause_work,
    refuse_archived,
    report_stop,
    restart_schedule,
)
from backburner.core.transitions.step import (
    FollowerEvent,
    NewMessage,
    Report,
    Step,
    Stops,
    system_message,
)


def receive_event(
    conversation: Conversation, content: Mapping[str, Any], *, outside: bool = True
) -> Step:
    """Put an event into the inbox; an open question is answered first.

    `outside`: others wrote it.
    """
    refuse_archived(conversation)
    if conversation.status is Status.ACTIVE or conversation.schedule is None:
        raise Conflict("This conversation does not wait for events.", hint="Resume it first.")
    # Only we say that an event is in our own words.
    told = {name: value for name, value in content.items() if name != "outside"}
    content = told if outside else {**told, "outside": False}
    item = NewItem(kind=ItemKind.EVENT, run_kind=RunKind.BACKGROUND, content=content)
    return Step(conversation=conversation, inbox=(item,))


def receive_report(
    conversation: Conversation,
    child: Conversation,
    report: Report,
    *,
    awaited_by: RunKind | None = None,
) -> Step:
    """Receive a child's report: that of a job which an agent started is answered.

    All others are only stored as a message. `awaited_by` is the kind of the run that waits for the
    job and gets the result. It is outside text if the session that reports had read some.
    """
    outside = may_contain_outside_text(child)
    is_job = child.kind is Kind.JOB and not is_test_run(child)
    is_news = child.created_by is Author.AGENT and not report.cancelled
    is_answered = is_job and (is_news or awaited_by is not None)
    text = _result(child, report) if is_job else f"{child.title}: {report.text}"
    message = NewMessage(
        role=MessageRole.SYSTEM, content=text, source=Source.WORKER, outside=outside
    )
    archived = conversation.status is Status.ARCHIVED
    if not is_answered or archived or conversation.keeps_only:
        return Step(conversation=conversation, messages=(message,))
    item = NewItem(
        kind=ItemKind.JOB_RESULT,
        run_kind=awaited_by or RunKind.REPLY,
        content={
            "conversation_id": child.id,
            "title": child.title,
            "request": _request(child),
            "result": report.text,
            "failed": report.failed,
            "cancelled": report.cancelled,
            "outside": outside,
        },
    )
    return Step(conversation=conversation, messages=(message,), inbox=(item,))


def _result(job: Conversation, report: Report) -> str:
    if report.cancelled:
        return f"The job {job.title!r} was cancelled by the user. Its request was: {_request(job)}"
    ended = "failed" if report.failed else "finished"
    return f"The job {job.title!r} has {ended}. Its request was: {_request(job)}\n\n{report.text}"


def _request(job: Conversation) -> str:
    return str(job.state.context.get("prompt", ""))


def apply_follower_event(conversation: Conversation, signal: FollowerEvent) -> Step:
    """Apply the end or removal of the conversation that this one is scheduled after."""
    after = conversation.schedule
    is_open = conversation.status in (Status.BACKGROUND, Status.WAITING_INPUT)
    if not isinstance(after, After) or not is_open:
        return Step(conversation=conversation)
    if signal is FollowerEvent.STOPPED and after.on is AfterCondition.ANY:
        # This is the last event. The new revision keeps a run in progress from ending the work.
        revision = conversation.schedule_revision + 1
        last = replace(conversation, schedule=replace(after, once=True), schedule_revision=revision)
        return receive_event(last, {"source": "after", "signal": signal.value}, outside=False)
    if signal in (FollowerEvent.GONE, FollowerEvent.STOPPED):
        paused = pause_work(conversation, PauseReason.USER)
        text = "The work is paused: the work it was scheduled after no longer exists."
        return replace(report_stop(paused, text), drops_queued=True)
    if signal is FollowerEvent.ENDED and after.on is AfterCondition.SUCCESS:
        return Step(conversation=conversation)
    return receive_event(conversation, {"source": "after", "signal": signal.value}, outside=False)


def pause_for_allowance(conversation: Conversation) -> Step:
    """Pause work because an allowance is used up."""
    return _pause_for(conversation, PauseReason.ALLOWANCE)


def resume_after_allowance(conversation: Conversation, *, now: datetime) -> Step:
    """Resume work that was paused for an allowance."""
    return _resume_after(conversation, PauseReason.ALLOWANCE, now=now)


def wait_for_sign_in(conversation: Conversation, text: str) -> Step:
    """Pause work that waits for a sign-in which its user was asked for elsewhere, and say so."""
    paused = _pause_for(conversation, PauseReason.SIGNED_OUT)
    return replace(paused, messages=(system_message(text),))


def resume_after_sign_in(conversation: Conversation, *, now: datetime) -> Step:
    """Resume work that was paused because a connection needed a sign-in."""
    return _resume_after(conversation, PauseReason.SIGNED_OUT, now=now)


def lose_connection(conversation: Conversation, title: str) -> Step:
    """Pause work whose brief names a connection that its user removes."""
    works = conversation.schedule is not None and conversation.status is not Status.ARCHIVED
    is_paused = conversation.pause_reason not in (None, *PASSING_PAUSES)
    if not works or is_paused or is_proposal(conversation):
        return Step(conversation=conversation)
    text = (
        f"The work is paused: {title}, which it uses, was removed. Resume it to let it go on"
        " without."
    )
    paused = pause_work(conversation, PauseReason.CONNECTION_REMOVED)
    return replace(report_stop(paused, text), drops_queued=True)


def _pause_for(conversation: Conversation, reason: PauseReason) -> Step:
    works = conversation.schedule is not None and conversation.pause_reason is None
    if not works or is_proposal(conversation):
        return Step(conversation=conversation)
    return Step(conversation=pause_work(conversation, reason))


def _resume_after(conversation: Conversation, reason: PauseReason, *, now: datetime) -> Step:
    if conversation.pause_reason is not reason:
        return Step(conversation=conversation)
    resumed = restart_schedule(conversation, now=now)
    if conversation.status is Status.ACTIVE:
        resumed = replace(resumed, status=Status.BACKGROUND)
    return Step(conversation=resumed)


def end_in_outage(conversation: Conversation, message: str, *, now: datetime) -> Step:
    """End one-time work that has waited too long for its model."""
    text = f"The work was ended: it waited too long for its model. {message}"
    return replace(
        report_stop(end_work(conversation, EndedAs.ERROR, now=now), text),
        stops=Stops.WORK,
        report=Report(text, failed=True),
        signal=FollowerEvent.ENDED,
    )


def set_clock_back(
    conversation: Conversation, *, changed_at: datetime, now: datetime
) -> Conversation:
    """Compute the times anew that were set by a clock which ran ahead, and was corrected since.

    `changed_at` is the last change of the conversation. A time that was asked for stays.
    """
    timed, due_at = conversation.schedule, conversation.next_run_at
    if isinstance(timed, Cron | Interval):
        times = (due_at, conversation.settled_until)
        if not any(time and schedule.is_too_far_ahead(timed, time, now=now) for time in times):
            return conversation
        next_slot = schedule.next_run_at(timed, after=now)
        sooner = None if due_at is None or next_slot is None else min(due_at, next_slot)
        return replace(conversation, next_run_at=sooner, settled_until=None)
    asked_for = isinstance(timed, Scheduled) and due_at == timed.run_at
    if timed is None or due_at is None or asked_for or min(changed_at, due_at) <= now:
        return conversation
    # A retry keeps its delay.
    return replace(conversation, next_run_at=now + max(due_at - changed_at, timedelta()))
