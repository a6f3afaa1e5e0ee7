"""Conversations after their database was restored from a backup.

It is unknown what happened after the backup was made, so nothing is repeated automatically: work
is paused until its owner resumes it, and waiting inbox items are dropped with a message.
"""

from dataclasses import replace
from datetime import datetime

from backburner.core.conversation import Conversation, PauseReason, Status
from backburner.core.run import SkipReason
from backburner.core.schedule import Scheduled
from backburner.core.transitions.shared_changes import (
    account_for_slots,
    is_proposal,
    pause_work,
    report_stop,
)
from backburner.core.transitions.step import Step, Stops, system_message

_DROPPED = (
    "Restored from a backup. Messages that had not been answered when the backup was made were"
    " dropped: send them again if they still matter."
)


def restore(conversation: Conversation, *, now: datetime, unserved: bool = False) -> Step:
    """Pause the work of a restored conversation; `unserved`: its inbox was not empty."""
    if conversation.status is Status.ARCHIVED:
        return Step(conversation=conversation)
    step = Step(conversation=conversation)
    if _has_active_work(conversation):
        accounted, skipped = account_for_slots(conversation, SkipReason.MISSED, now=now)
        paused = pause_work(accounted, PauseReason.USER)
        step = replace(report_stop(paused, _pause_text(conversation, now)), skipped=skipped)
    if unserved:
        step = replace(step, messages=(*step.messages, system_message(_DROPPED)))
    return replace(step, stops=Stops.EVERYTHING)


def _has_active_work(conversation: Conversation) -> bool:
    # A proposal does nothing before its owner approves it.
    has_work = conversation.schedule is not None and conversation.pause_reason is None
    return has_work and not is_proposal(conversation)


def _pause_text(conversation: Conversation, now: datetime) -> str:
    timed = conversation.schedule
    if conversation.is_recurring:
        hint = "Resume it to continue at its next time; missed times are skipped."
    elif isinstance(timed, Scheduled) and timed.run_at > now:
        hint = f"It is due at {_format_time(timed.run_at)}. Resume it if that is still right."
    else:
        due = ""
        if isinstance(timed, Scheduled):
            due = f" It was due at {_format_time(timed.run_at)}."
        hint = f"It may have been done already.{due} Resume it to do it now, or cancel it."
    return f"The work is paused: restored from a backup. {hint}"


def _format_time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
