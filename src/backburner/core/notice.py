"""Whether to tell the user about the end of a run, and in which words."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from backburner.core.conversation import Conversation, Kind, Notify
from backburner.core.ids import QuestionId
from backburner.core.outcome import Complete
from backburner.core.question import Question
from backburner.core.run import Failure
from backburner.core.validation import canonical_json


class NoticeKind(StrEnum):
    RESULT = "result"
    QUESTION = "question"
    FAILURE = "failure"  #: A run failed; the work goes on.
    STOPPED = "stopped"  #: The work stands still until somebody does something.


@dataclass(frozen=True, slots=True)
class Notice:
    kind: NoticeKind
    text: str
    question_id: QuestionId | None = None


def of_result(conversation: Conversation, outcome: Complete) -> Notice | None:
    if outcome.message is None:
        return None
    changed = result_hash(outcome) != conversation.last_result_hash
    wanted = {
        Notify.ALWAYS: True,
        Notify.ON_CHANGE: changed,
        Notify.ON_FAILURE: False,
        Notify.NEVER: False,
    }
    return Notice(NoticeKind.RESULT, outcome.message) if wanted[conversation.notify] else None


def of_unattended_reply(conversation: Conversation, text: str) -> Notice | None:
    """What is said to nobody in particular reaches the user, unless they do not want to be told."""
    wanted = conversation.notify in (Notify.ALWAYS, Notify.ON_CHANGE)
    return Notice(NoticeKind.RESULT, text) if wanted and text.strip() else None


def of_question(conversation: Conversation, question: Question) -> Notice:
    """Questions always reach the user: nothing goes on without the answer."""
    asks = f"The job {conversation.title!r} asks: " if conversation.kind is Kind.JOB else ""
    return Notice(NoticeKind.QUESTION, f"{asks}{question.prompt}", question.id)


def of_passing_failure(conversation: Conversation, failure: Failure) -> Notice | None:
    if conversation.notify in (Notify.ALWAYS, Notify.ON_FAILURE):
        return Notice(NoticeKind.FAILURE, f"A run failed and will be repeated: {failure.message}")
    return None


def of_stop(text: str) -> Notice:
    """What stops the work always reaches the user."""
    return Notice(NoticeKind.STOPPED, text)


def result_hash(outcome: Complete) -> str | None:
    """Fingerprint what was found; None where nothing was.

    The bare result if the agent gave one, else its words without regard to case and spacing.
    """
    if outcome.result is not None:
        found = canonical_json(outcome.result)
    elif outcome.message is not None:
        found = " ".join(outcome.message.split()).casefold()
    else:
        return None
    return hashlib.sha256(found.encode()).hexdigest()
