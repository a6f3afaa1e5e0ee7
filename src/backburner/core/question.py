"""Questions to the user: what one is, which answers it takes, and when it reminds or expires."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from backburner.core.errors import BadAnswer, BadRequest
from backburner.core.ids import QuestionId, RunId
from backburner.core.run import RunKind
from backburner.core.validation import check_text

MAX_OPTIONS = 25
MAX_OPTION_CHARS = 200
MAX_PROMPT_CHARS = 8_000
MAX_ANSWER_CHARS = 32_000
#: An unanswered question is brought up again after a day, then after two, four, and so on.
FIRST_REMINDER = timedelta(days=1)
MIN_EXPIRY = timedelta(minutes=10)
MAX_EXPIRY = timedelta(days=366)
YES, NO = "yes", "no"
_SAID_SHORT = {"y": YES, "n": NO}


class QuestionType(StrEnum):
    CONFIRMATION = "confirmation"  #: Yes or no.
    CHOICE = "choice"  #: One of the options.
    INPUT = "input"  #: Any text.


class Purpose(StrEnum):
    QUESTION = "question"  #: The agent wants to know something.
    PROPOSAL = "proposal"  #: Whether proposed work may start.
    APPROVAL = "approval"  #: Whether a tool call may be made.
    RECONNECT = "reconnect"  #: A connection needs its owner to sign in again.
    ALLOWANCE = "allowance"  #: What may be spent has been spent.
    IN_DOUBT = "in_doubt"  #: A call may or may not have happened.
    FAILURE = "failure"  #: The work cannot go on as it is.


#: Chat text never settles these: they bind to what was shown, so they take a deliberate act.
EXPLICIT_ANSWER_ONLY = frozenset({Purpose.PROPOSAL, Purpose.APPROVAL, Purpose.ALLOWANCE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    id: QuestionId
    purpose: Purpose
    type: QuestionType
    prompt: str
    asked_at: datetime
    options: tuple[str, ...] = ()
    #: The run that asked, and its kind: the answer starts a run of that kind.
    run_id: RunId | None = None
    run_kind: RunKind = RunKind.BACKGROUND
    #: What exactly a yes is for: the call, the proposal, the allowance.
    binds_to: Mapping[str, Any] = field(default_factory=dict)
    remind_at: datetime | None = None
    reminders: int = 0
    #: Only together: a question that can run out says what it then counts as answered with.
    expires_at: datetime | None = None
    default: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewQuestion:
    """A question as the agent puts it, checked."""

    type: QuestionType
    prompt: str
    options: tuple[str, ...] = ()
    default: str | None = None
    expires_in: timedelta | None = None


def new_question(
    kind: QuestionType,
    prompt: str,
    options: tuple[str, ...] = (),
    *,
    default: str | None = None,
    expires_in: timedelta | None = None,
) -> NewQuestion:
    """Check that a question can be asked and answered."""
    check_text("The question", prompt, limit=MAX_PROMPT_CHARS)
    if not prompt.strip():
        raise BadRequest("The question is empty.", hint="Say what you want to know.")
    options = _check_options(kind, options)
    if (default is None) != (expires_in is None):
        raise BadRequest("A question that expires needs a default, and a default needs an expiry.")
    if expires_in is not None and not MIN_EXPIRY <= expires_in <= MAX_EXPIRY:
        raise BadRequest("A question must stay open for ten minutes at least, a year at most.")
    asked = NewQuestion(
        type=kind, prompt=prompt, options=options, default=default, expires_in=expires_in
    )
    if default is not None and match_answer(kind, options, default) is None:
        raise BadRequest("The default does not answer the question.")
    return asked


def accept_answer(question: Question, text: str) -> str:
    """Turn a deliberate answer into the option it means, or refuse it and name the options."""
    check_text("The answer", text, limit=MAX_ANSWER_CHARS)
    answer = match_answer(question.type, question.options, text)
    if answer is None:
        options = ", ".join(question.options)
        raise BadAnswer(
            f"{text[:60]!r} does not answer the question."
            if text.strip()
            else "The answer is empty.",
            hint=f"Answer with one of: {options}." if options else "Say something.",
            options=question.options,
        )
    return answer


def match_chat_message(question: Question, text: str) -> str | None:
    """Find out whether a chat message answers this question; None means it is talk."""
    if question.purpose in EXPLICIT_ANSWER_ONLY or len(text) > MAX_ANSWER_CHARS:
        return None
    return match_answer(question.type, question.options, text)


def match_answer(kind: QuestionType, options: tuple[str, ...], text: str) -> str | None:
    said = _plain(text)
    if kind is QuestionType.INPUT:
        return text if said else None
    if kind is QuestionType.CONFIRMATION:
        said = _SAID_SHORT.get(said, said)
    return next((option for option in options if _plain(option) == said), None)


def remind(question: Question, *, now: datetime) -> Question:
    """Bring a question up again, and settle when to do so next: each pause doubles."""
    count = question.reminders + 1
    pause = FIRST_REMINDER * (1 << min(count, 5))
    return replace(question, reminders=count, remind_at=now + pause)


def snooze(question: Question, *, until: datetime, now: datetime) -> Question:
    if until <= now:
        raise BadRequest("A question can only be put off to a later time.")
    return replace(question, remind_at=until)


def _check_options(kind: QuestionType, options: tuple[str, ...]) -> tuple[str, ...]:
    if kind is QuestionType.CONFIRMATION and not options:
        return (YES, NO)
    for option in options:
        check_text("An option", option, limit=MAX_OPTION_CHARS)
    plain = {_plain(option) for option in options}
    if "" in plain or len(plain) != len(options):
        raise BadRequest("The options must be different and not empty.")
    if kind is QuestionType.INPUT and options:
        raise BadRequest("A question of type input has no options.", hint="Use type choice.")
    if kind is QuestionType.CONFIRMATION and plain != {YES, NO}:
        raise BadRequest("A confirmation is answered yes or no.", hint="Use type choice.")
    if kind is QuestionType.CHOICE and not 2 <= len(options) <= MAX_OPTIONS:
        raise BadRequest(f"A choice needs 2 to {MAX_OPTIONS} options.")
    return options


def _plain(text: str) -> str:
    words = " ".join(text.split()).casefold()
    # A lone "." may be all there is to say: it is a folder, for example.
    return words.rstrip(".! ") or words
