"""What becomes of a conversation whose database was put back from a copy.

Nobody knows what was done after the copy was made, so nothing is done again by itself: work stands
still until its owner lets it go on, and what waited to be served is dropped, and says so.
"""

from dataclasses import replace
from datetime import datetime

from backburner.core.conversation import Conversation, PauseReason, Status
from backburner.core.run import SkipReason
from backburner.core.schedule import Scheduled
from backburner.core.transitions.moves import (
    account_for_slots,
    is_proposal,
    pause_work,
    report_stop,
)
from backburner.core.transitions.step import Step, Stops, system_message

_DROPPED = (
    "This was put back from a copy. What had not been answered when the copy was made was dropped:"
    " say it again if it still matters."
)


def restore(conversation: Conversation, *, now: datetime, unserved: bool = False) -> Step:
    """Let a conversation wake up from a copy; `unserved`: something lay in its inbox."""
    if conversation.status is Status.ARCHIVED:
        return Step(conversation=conversation)
    step = Step(conversation=conversation)
    if _is_at_work(conversation):
        accounted, skipped = account_for_slots(conversation, SkipReason.MISSED, now=now)
        still = pause_work(accounted, PauseReason.USER)
        step = replace(report_stop(still, _paused(conversation, now)), skipped=skipped)
    if unserved:
        step = replace(step, messages=(*step.messages, system_message(_DROPPED)))
    return replace(step, stops=Stops.EVERYTHING)


def _is_at_work(conversation: Conversation) -> bool:
    # What is only proposed does nothing before its owner says yes.
    has_work = conversation.schedule is not None and conversation.pause_reason is None
    return has_work and not is_proposal(conversation)


def _paused(conversation: Conversation, now: datetime) -> str:
    timed = conversation.schedule
    if conversation.is_recurring:
        why = "Resume it to go on from the next time; times that went by are skipped."
    elif isinstance(timed, Scheduled) and timed.run_at > now:
        why = f"It is due at {_in_words(timed.run_at)}. Resume it if that still holds."
    else:
        due = f" It was due at {_in_words(timed.run_at)}." if isinstance(timed, Scheduled) else ""
        why = f"It may have been done already.{due} Resume it to do it now, or stop it."
    return f"The work is paused: this was put back from a copy. {why}"


def _in_words(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
