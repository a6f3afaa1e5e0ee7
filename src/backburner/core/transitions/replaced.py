"""Stopping the work that a reply had set up, once the message that it answered is replaced."""

from collections.abc import Sequence
from datetime import datetime

from backburner.core.conversation import (
    CONTEXT_MARK,
    Conversation,
    EndedAs,
    Kind,
    make_title,
)
from backburner.core.question import withdrawal_note
from backburner.core.run import RunKind
from backburner.core.transitions import answers
from backburner.core.transitions.edit import cancel_and_archive
from backburner.core.transitions.shared_changes import close_question, end_work
from backburner.core.transitions.step import FollowerEvent, NewMessage, Step, Stops, system_message

#: More are counted.
MAX_NAMED = 5
_REASON = "the message that asked for it was {}."


def stop_child(work: Conversation, *, now: datetime, again: bool) -> Step:
    """Cancel and archive a task or job of a replaced reply. What it has done stays.

    `again`: the message was sent again as it was.
    """
    return cancel_and_archive(work, _REASON.format(_verb(again=again)), now=now, by_parent=True)


def stop_own_work(conversation: Conversation, *, since: datetime, now: datetime) -> Step:
    """End the work that a replaced reply gave its conversation, and withdraw what its runs asked.

    Questions of replies and those from before the replaced message stay open.
    """
    ended, notes = end_work(conversation, EndedAs.CANCELLED, now=now), list[NewMessage]()
    asked = [
        question
        for question in conversation.questions
        if question.run_kind is RunKind.BACKGROUND and question.asked_at >= since
    ]
    for question in asked:
        ended = close_question(ended, question)
        notes.extend(answers.record(question, withdrawal_note(question.prompt), own=True))
    return Step(
        conversation=ended,
        messages=tuple(notes),
        withdrawn=tuple(question.id for question in asked),
        stops=Stops.WORK,
        signal=FollowerEvent.ENDED,
    )


def stop_note(stopped: Sequence[Conversation], *, again: bool) -> tuple[NewMessage, ...]:
    """Say which work was stopped. Names that may be outside text are left out."""
    if not stopped:
        return ()
    names = [f"“{_name(work)}”" for work in stopped if CONTEXT_MARK not in work.state.outside]
    named = names[:MAX_NAMED]
    rest = len(stopped) - len(named)
    if not named:
        named, rest = ["what it had set up"], 0
    if rest:
        named.append(f"{rest} more")
    *others, last = named
    text = f"{', '.join(others)} and {last}" if others else last
    it = "it" if len(stopped) == 1 else "them"
    verb = _verb(again=again)
    note = system_message(f"Stopped {text}: the message that asked for {it} was {verb}.", own=True)
    return (note,)


def _verb(*, again: bool) -> str:
    return "sent again" if again else "changed"


def _name(work: Conversation) -> str:
    # The title of a chat may not describe its work.
    prompt = str(work.state.context.get("prompt", ""))
    return make_title(prompt).rstrip(".") if work.kind is Kind.CHAT else work.title
