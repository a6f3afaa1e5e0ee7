"""The state of a conversation as its burner and one line of words show it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from backburner.core.conversation import Conversation, EndedAs, PauseReason, Status
from backburner.core.question import Purpose, Question, postponed_until
from backburner.core.schedule import Scheduled
from backburner.core.work.activity import Activity, RunActivity
from backburner.ports import ConversationRow
from backburner.web.display import Display
from backburner.web.rendering import load_words
from backburner.web.views.schedule import say_schedule
from backburner.web.views.tool_line import describe_call

#: The dial of the burner fills during this time before a run.
DIAL = timedelta(hours=1)
MAX_LINE = 120
_PAUSED = {
    PauseReason.USER: "paused_by_user",
    PauseReason.CRASHES: "paused_crashes",
    PauseReason.ALLOWANCE: "paused_allowance",
    PauseReason.SIGNED_OUT: "paused_signed_out",
    PauseReason.CONNECTION_REMOVED: "paused_connection_removed",
}
_ASKS = {
    Purpose.APPROVAL: "asks_permission",
    Purpose.PROPOSAL: "proposes",
    Purpose.RECONNECT: "reconnect",
    Purpose.ALLOWANCE: "allowance",
    Purpose.IN_DOUBT: "in_doubt",
    Purpose.INPUT: "asks_input",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownState:
    """A drawing of the burner, its words, and their colour."""

    burner: str = "rest"
    line: str = ""
    tone: str = ""
    #: Where the whole question stands below it.
    short: str = ""
    #: How much of the dial is filled, of 100.
    part: int = 0
    #: The next run, whose distance is counted down by the page.
    next_at: datetime | None = None


def show_state(row: ConversationRow, display: Display) -> ShownState:
    """Return the first state that matches; the last message is the caller's to show."""
    conversation = row.conversation
    words = load_words().list
    delays = [postponed_until(one, now=display.now) for one in conversation.questions]
    if None in delays:
        question = conversation.questions[delays.index(None)]
        short = words.needs_you if question.purpose not in _ASKS else ""
        line = describe_question(question)
        return ShownState(burner="needs", line=line, tone="ember", short=short)
    if conversation.pause_reason is PauseReason.FAILURES:
        return ShownState(burner="failed", line=describe_pause(conversation), tone="bad")
    if row.running is not None:
        return ShownState(burner="working", line=describe_work(row), tone="pilot")
    reply = _show_reply(row)
    if reply is not None:
        return reply
    if conversation.pause_reason is not None:
        tone = "" if conversation.pause_reason is PauseReason.USER else "ember"
        return ShownState(burner="paused", line=describe_pause(conversation), tone=tone)
    if until := min(filter(None, delays), default=None):
        return ShownState(line=words.asks_again.format(time=display.moment(until)))
    if conversation.ended_as is EndedAs.ERROR and conversation.schedule is None:
        return ShownState(burner="failed", line=words.failed, tone="bad")
    if conversation.next_run_at is not None and conversation.schedule is not None:
        return _show_next(conversation, conversation.next_run_at, display)
    if conversation.status is Status.BACKGROUND:
        return ShownState(burner="waits", line=describe_schedule(conversation, display))
    return ShownState()


def _show_reply(row: ConversationRow) -> ShownState | None:
    words = load_words().list
    if awaits_reply(row):
        # Most are taken up within a moment.
        return ShownState(burner="waits", line=words.awaits_reply, tone="late")
    if row.facts.reply_failed:
        return ShownState(burner="failed", line=words.reply_failed, tone="bad")
    return None


def awaits_reply(row: ConversationRow) -> bool:
    """Say whether a message waits until a run can begin: for the model, or for other work."""
    return row.facts.awaits_reply and row.running is None


def describe_pause(conversation: Conversation) -> str:
    """Say why it is paused; empty: it is not."""
    words, reason = load_words().list, conversation.pause_reason
    if reason is None:
        return ""
    if reason is PauseReason.FAILURES:
        return str(words.paused_failures.format(number=conversation.failures))
    return str(words[_PAUSED[reason]])


def show_child(conversation: Conversation, running: RunActivity | None) -> str:
    """Return the drawing of the burner for a child in one line."""
    if conversation.questions:
        return "needs"
    if running is not None:
        return "working"
    if conversation.pause_reason is not None:
        is_failure = conversation.pause_reason in (PauseReason.FAILURES, PauseReason.CRASHES)
        return "failed" if is_failure else "paused"
    if conversation.ended_as is EndedAs.ERROR:
        return "failed"
    if conversation.ended_as is EndedAs.COMPLETED:
        return "done"
    return "waits" if conversation.status is Status.BACKGROUND else "rest"


def describe_schedule(conversation: Conversation, display: Display) -> str:
    """Describe the schedule without the zone, if that is the user's own."""
    if conversation.schedule is None:
        return ""
    if isinstance(conversation.schedule, Scheduled):
        # Its time is shown beside it.
        return str(load_words().list.once)
    return say_schedule(conversation.schedule, display)


def describe_work(row: ConversationRow) -> str:
    words = load_words().list
    if row.progress is not None:
        return str(words.working_on.format(doing=row.progress.text[:MAX_LINE]))
    running = row.running
    if running is None or running.activity is not Activity.CALLING or running.call is None:
        return str(words.working)
    doing = describe_call(running.call, running.call.started_at)
    return str(words.working_on.format(doing=f"{doing[:1].lower()}{doing[1:MAX_LINE]}"))


def describe_children(row: ConversationRow, done: int) -> str:
    text: Any = load_words().list.children_done
    return str(text.format(done=done, all=row.children.count))


def describe_question(question: Question) -> str:
    words = load_words().list
    name = _ASKS.get(question.purpose)
    if name is not None:
        return str(words[name])
    prompt = " ".join(question.prompt.split())
    return str(words.asks.format(prompt=prompt[:MAX_LINE]))


def _show_next(conversation: Conversation, at: datetime, display: Display) -> ShownState:
    left = max(at - display.now, timedelta())
    return ShownState(
        burner="waits",
        line=describe_schedule(conversation, display),
        part=round(100 * (1 - min(left / DIAL, 1))),
        next_at=at,
    )
