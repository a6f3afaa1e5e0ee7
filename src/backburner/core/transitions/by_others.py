"""What the rest of the world does to a conversation: events, children, predecessors, allowances."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from backburner.core.conversation import (
    Conversation,
    Kind,
    MessageRole,
    PauseReason,
    Source,
    Status,
)
from backburner.core.errors import Conflict
from backburner.core.run import ItemKind, NewItem, RunKind
from backburner.core.schedule import After, AfterCondition
from backburner.core.transitions.create import TEST_RUN_BATCH
from backburner.core.transitions.moves import (
    is_proposal,
    pause_work,
    refuse_archived,
    report_stop,
    restart_schedule,
)
from backburner.core.transitions.step import FollowerEvent, NewMessage, Report, Step


def receive_event(conversation: Conversation, content: Mapping[str, Any]) -> Step:
    """Take note of something that happened outside; a question that is open goes first."""
    refuse_archived(conversation)
    if conversation.status is Status.ACTIVE or conversation.schedule is None:
        raise Conflict("Nothing here waits for events now.", hint="Resume the work first.")
    item = NewItem(kind=ItemKind.EVENT, run_kind=RunKind.BACKGROUND, content=dict(content))
    return Step(conversation=conversation, inbox=(item,))


def receive_report(
    conversation: Conversation,
    child: Conversation,
    report: Report,
    *,
    awaited_by: RunKind | None = None,
) -> Step:
    """Take a child's report: a job's is answered, a task's is only written down with its name.

    One that a run waits for is for that run.
    """
    is_handed_out = child.kind is Kind.JOB and child.batch != TEST_RUN_BATCH
    text = _result(child, report) if is_handed_out else f"{child.title}: {report.text}"
    noted = NewMessage(role=MessageRole.SYSTEM, content=text, source=Source.WORKER, outside=True)
    archived = conversation.status is Status.ARCHIVED
    if not is_handed_out or archived or conversation.keeps_only:
        return Step(conversation=conversation, messages=(noted,))
    item = NewItem(
        kind=ItemKind.JOB_RESULT,
        run_kind=awaited_by or RunKind.REPLY,
        content={
            "conversation_id": child.id,
            "title": child.title,
            "request": _request(child),
            "result": report.text,
            "failed": report.failed,
        },
    )
    return Step(conversation=conversation, messages=(noted,), inbox=(item,))


def _result(job: Conversation, report: Report) -> str:
    ended = "failed" if report.failed else "finished"
    return f"The job {job.title!r} has {ended}. Its request was: {_request(job)}\n\n{report.text}"


def _request(job: Conversation) -> str:
    return str(job.state.context.get("prompt", ""))


def apply_follower_event(conversation: Conversation, signal: FollowerEvent) -> Step:
    """Tell a conversation that the one it comes after has finished, ended otherwise, or is gone."""
    after = conversation.schedule
    at_work = conversation.status in (Status.BACKGROUND, Status.WAITING_INPUT)
    if not isinstance(after, After) or not at_work:
        return Step(conversation=conversation)
    if signal is FollowerEvent.STOPPED and after.on is AfterCondition.ANY:
        # There will be no other time. A run that is under way is not the one this is for.
        revision = conversation.schedule_revision + 1
        last = replace(conversation, schedule=replace(after, once=True), schedule_revision=revision)
        return receive_event(last, {"source": "after", "signal": signal.value})
    if signal in (FollowerEvent.GONE, FollowerEvent.STOPPED):
        still = pause_work(conversation, PauseReason.USER)
        text = "The work is paused: what it was to come after is no longer there."
        return replace(report_stop(still, text), drops_queued=True)
    if signal is FollowerEvent.ENDED and after.on is AfterCondition.SUCCESS:
        return Step(conversation=conversation)
    return receive_event(conversation, {"source": "after", "signal": signal.value})


def pause_for_allowance(conversation: Conversation) -> Step:
    """Let work stand still because what may be spent is spent."""
    at_work = conversation.schedule is not None and conversation.pause_reason is None
    if not at_work or is_proposal(conversation):
        return Step(conversation=conversation)
    return Step(conversation=pause_work(conversation, PauseReason.ALLOWANCE))


def resume_after_allowance(conversation: Conversation, *, now: datetime) -> Step:
    """Let work go on that stood still for an allowance."""
    if conversation.pause_reason is not PauseReason.ALLOWANCE:
        return Step(conversation=conversation)
    going = restart_schedule(conversation, now=now)
    if conversation.status is Status.ACTIVE:
        going = replace(going, status=Status.BACKGROUND)
    return Step(conversation=going)
