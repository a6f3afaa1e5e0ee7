"""Notices: whether the user is notified about the end of a run, and the text."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from backburner.core.conversation import Conversation, Kind, Notify
from backburner.core.ids import ConversationId, QuestionId
from backburner.core.outcome import Complete
from backburner.core.question import Question
from backburner.core.run import Failure
from backburner.core.validation import canonical_json
from backburner.core.work.jobs import result_text


class NoticeKind(StrEnum):
    RESULT = "result"
    QUESTION = "question"
    FAILURE = "failure"  #: A run failed; the work continues.
    STOPPED = "stopped"  #: The work has stopped until the user acts.


@dataclass(frozen=True, slots=True)
class Notice:
    kind: NoticeKind
    text: str
    question_id: QuestionId | None = None
    #: Of a question: the message that came with it, and its options.
    message: str | None = None
    options: tuple[str, ...] = ()

    def compose(self) -> str:
        """Compose the text for a channel, to follow the title of the conversation."""
        parts = [part for part in (self.message, self.text) if part]
        if self.options:
            parts.append(f"Options: {' / '.join(self.options)}")
        return "\n\n".join(parts)


def wants_results(conversation: Conversation) -> bool:
    """Return whether the user is told of work that ended well, also without a message."""
    return conversation.notify in (Notify.ALWAYS, Notify.ON_CHANGE)


def of_result(conversation: Conversation, outcome: Complete) -> Notice | None:
    if conversation.kind is Kind.JOB and wants_results(conversation):
        # Whoever started a job waits for its result, also for the same one again.
        return Notice(NoticeKind.RESULT, outcome.message or result_text(outcome))
    if outcome.message is None:
        return None
    notifies = {
        Notify.ALWAYS: True,
        Notify.ON_CHANGE: result_hash(outcome) != conversation.last_result_hash,
        Notify.ON_FAILURE: False,
        Notify.NEVER: False,
    }
    return Notice(NoticeKind.RESULT, outcome.message) if notifies[conversation.notify] else None


def of_unattended_reply(conversation: Conversation, text: str) -> Notice | None:
    """Notify about a reply to a job's result, unless the user does not want results."""
    notifies = wants_results(conversation) and text.strip()
    return Notice(NoticeKind.RESULT, text) if notifies else None


def of_limit(conversation: Conversation, text: str) -> Notice | None:
    """Notify that the work has ended because of its limit of runs."""
    return Notice(NoticeKind.STOPPED, text) if wants_results(conversation) else None


def of_question(question: Question, message: str | None = None) -> Notice:
    """Notify about a question, in every case: the work waits for the answer."""
    return Notice(
        NoticeKind.QUESTION, question.prompt, question.id, message=message, options=question.options
    )


def find_address(conversation_id: ConversationId, question_id: QuestionId | None) -> str:
    """Return the address to open for a notice, on the server."""
    return f"/c/{conversation_id}" if question_id is None else f"/q/{question_id}"


def point_to(address: str, base_url: str) -> str:
    """Say where to go for a notice: a link, or a command where nobody knows the server's address.

    `address` is that of `find_address`.
    """
    if base_url:
        return f"{base_url}{address}"
    page, _, which = address.removeprefix("/").partition("/")
    if page == "q":
        return f"To see and answer it: `backburner questions {which}`."
    return f"To read on: `backburner conversations {which}`."


def of_passing_failure(conversation: Conversation, failure: Failure) -> Notice | None:
    if conversation.notify in (Notify.ALWAYS, Notify.ON_FAILURE):
        return Notice(NoticeKind.FAILURE, f"A run failed and will be retried: {failure.message}")
    return None


def of_stop(text: str) -> Notice:
    """Notify that the work has stopped, in every case."""
    return Notice(NoticeKind.STOPPED, text)


def of_outage(message: str) -> Notice:
    """Notify that background work waits for its model, once per outage."""
    text = f"{message} Background work that is due waits, and continues by itself afterwards."
    return Notice(NoticeKind.FAILURE, text)


def of_requested_run(failure: Failure) -> Notice:
    """Notify that a run which somebody asked for was given up."""
    return Notice(NoticeKind.FAILURE, f"A background run failed: {failure.message}")


def of_outage_end() -> Notice:
    text = "The model is available again. Background work that waited for it continues."
    return Notice(NoticeKind.RESULT, text)


def result_hash(outcome: Complete) -> str | None:
    """Hash the result of a run, or else its message ignoring case and spacing; None for neither."""
    if outcome.result is not None:
        text = canonical_json(outcome.result)
    elif outcome.message is not None:
        text = " ".join(outcome.message.split()).casefold()
    else:
        return None
    return hashlib.sha256(text.encode()).hexdigest()
