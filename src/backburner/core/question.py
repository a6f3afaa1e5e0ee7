"""Questions to the user: which answers they accept, and when they remind or expire."""

from collections.abc import Collection, Iterable, Mapping
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
#: The user is reminded of an open question after a day, then after two days, four, and so on.
FIRST_REMINDER = timedelta(days=1)
MIN_EXPIRY = timedelta(minutes=10)
MAX_EXPIRY = timedelta(days=366)
YES, NO = "yes", "no"
#: Answer when a connection needs its owner to sign in, once they have.
RECONNECT = "reconnect"
#: Answer when it is unknown whether a tool call happened.
REPEAT = "do it again"
#: Answers to what the server of a connection asks for.
ACCEPT, DECLINE = "accept", "decline"
#: Answer when the work can do without something that failed.
SKIP = "skip"
_ABBREVIATIONS = {"y": YES, "n": NO}


class QuestionType(StrEnum):
    CONFIRMATION = "confirmation"  #: Yes or no.
    CHOICE = "choice"  #: One of the options.
    INPUT = "input"  #: Any text.


class Purpose(StrEnum):
    QUESTION = "question"  #: A question of the agent.
    PROPOSAL = "proposal"  #: Whether a proposed task may start.
    CHANGE = "change"  #: Whether existing work may be changed, resumed or stopped.
    APPROVAL = "approval"  #: Whether a tool call may be made.
    RECONNECT = "reconnect"  #: A connection needs its owner to sign in again.
    ALLOWANCE = "allowance"  #: An allowance is used up.
    IN_DOUBT = "in_doubt"  #: Whether a tool call took effect.
    FAILURE = "failure"  #: The work cannot continue without a decision.
    INPUT = "input"  #: The server of a connection asks for something during a call.


#: To answer these is to consent. A chat message never does: a yes binds to exactly what was shown.
CONSENT = frozenset(
    {
        *(Purpose.PROPOSAL, Purpose.CHANGE, Purpose.APPROVAL, Purpose.ALLOWANCE),
        *(Purpose.IN_DOUBT, Purpose.INPUT),
    }
)


#: But for these: an exact yes or no decides one that our own words showed last in the chat.
DECIDED_IN_CHAT = frozenset({Purpose.PROPOSAL, Purpose.CHANGE})


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
    #: The call, proposal or allowance that an answer applies to.
    binds_to: Mapping[str, Any] = field(default_factory=dict)
    remind_at: datetime | None = None
    reminders: int = 0
    #: Set together: when it expires, it counts as answered with the default.
    expires_at: datetime | None = None
    default: str | None = None
    #: Asked in a session that had read outside text.
    outside: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NewQuestion:
    """A valid question that has not been asked yet."""

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
    """Make a question, or refuse one that cannot be answered."""
    check_text("The question", prompt, limit=MAX_PROMPT_CHARS)
    if not prompt.strip():
        raise BadRequest("The question is empty.", hint="Give it a prompt.")
    options = _check_options(kind, options)
    if (default is None) != (expires_in is None):
        raise BadRequest(
            "A default and an expiry go together.", hint="Give both of them, or neither."
        )
    if expires_in is not None and not MIN_EXPIRY <= expires_in <= MAX_EXPIRY:
        raise BadRequest("A question must expire after 10 minutes to 366 days.")
    if default is not None and match_answer(kind, options, default) is None:
        raise BadRequest("The default is not a valid answer.", hint="Use one of the options.")
    return NewQuestion(
        type=kind, prompt=prompt, options=options, default=default, expires_in=expires_in
    )


def accept_answer(question: Question, text: str) -> str:
    """Return the option that an explicit answer means, or refuse it and list the options."""
    check_text("The answer", text, limit=MAX_ANSWER_CHARS)
    answer = match_answer(question.type, question.options, text)
    if answer is None:
        options = list_options(question.options)
        raise BadAnswer(
            f"{text[:60]!r} is not a valid answer." if text.strip() else "The answer is empty.",
            hint=f"Answer with one of: {options}." if options else "Answer with any text.",
            options=question.options,
        )
    return answer


def is_exact_answer(text: str) -> bool:
    """Return whether a message is yes or no, and nothing else."""
    return text.strip().casefold() in (YES, NO)


def answer_note(prompt: str, answer: str) -> str:
    """Return the message that keeps a question and its answer in the transcript."""
    return f"Question: {prompt}\nAnswer: {answer}"


def default_note(prompt: str, default: str) -> str:
    """Return the same for a question that nobody answered."""
    return f"Question: {prompt}\n{describe_default(default)}"


def withdrawal_note(prompt: str) -> str:
    """Return the same for a question that was withdrawn."""
    return f"Question: {prompt}\nIt was withdrawn; nobody answered it."


def describe_default(default: str) -> str:
    return f"Nobody answered in time; the default applies: {default}"


def match_chat_message(question: Question, text: str) -> str | None:
    """Return the answer that a chat message gives to this question; None if it gives none."""
    if question.purpose in CONSENT or len(text) > MAX_ANSWER_CHARS:
        return None
    return match_answer(question.type, question.options, text)


def match_answer(kind: QuestionType, options: tuple[str, ...], text: str) -> str | None:
    answer = _plain(text)
    if kind is QuestionType.INPUT:
        return text if answer else None
    if kind is QuestionType.CONFIRMATION:
        answer = _ABBREVIATIONS.get(answer, answer)
    named = next((option for option in options if _plain(option) == answer), None)
    is_choice = kind is QuestionType.CHOICE
    return match_number(options, answer) if named is None and is_choice else named


def are_distinct(options: Collection[str]) -> bool:
    """Return whether every answer means one option at most."""
    plain = {_plain(option) for option in options}
    return "" not in plain and len(plain) == len(options)


def list_options(options: Iterable[str]) -> str:
    """List options in a sentence; one with a comma in it is in quotes."""
    return ", ".join(f'"{option}"' if "," in option else option for option in options)


def match_number(options: tuple[str, ...], text: str) -> str | None:
    """Return the option with this number, unless options are numbers themselves."""
    number = _plain(text)
    if not number.isdecimal() or any(option.strip().isdecimal() for option in options):
        return None
    position = int(number) - 1 if len(number) <= len(str(MAX_OPTIONS)) else -1
    return options[position] if 0 <= position < len(options) else None


def remind(question: Question, *, now: datetime) -> Question:
    """Count a reminder and schedule the next one, after twice the interval."""
    count = question.reminders + 1
    interval = FIRST_REMINDER * (1 << min(count, 5))
    return replace(question, reminders=count, remind_at=now + interval)


def snooze(question: Question, *, until: datetime, now: datetime) -> Question:
    """Postpone the next reminder; those after it are counted anew."""
    if until <= now:
        raise BadRequest("A question can only be snoozed until a later time.")
    return replace(question, reminders=0, remind_at=until)


def postponed_until(question: Question, *, now: datetime) -> datetime | None:
    """Return when a question asks again that its user has snoozed; None: it asks now."""
    remind_at = question.remind_at
    if remind_at is None or remind_at <= now or question.reminders:
        return None
    # The first reminder of a question that nobody has snoozed.
    is_own = abs(remind_at - question.asked_at - FIRST_REMINDER) < timedelta(seconds=1)
    return None if is_own else remind_at


def _check_options(kind: QuestionType, options: tuple[str, ...]) -> tuple[str, ...]:
    if kind is QuestionType.CONFIRMATION and not options:
        return (YES, NO)
    for option in options:
        check_text("An option", option, limit=MAX_OPTION_CHARS)
    plain = {_plain(option) for option in options}
    if not are_distinct(options):
        raise BadRequest("The options must be different from each other and not empty.")
    if kind is QuestionType.INPUT and options:
        raise BadRequest("A question of type input takes no options.", hint="Use type choice.")
    if kind is QuestionType.CONFIRMATION and plain != {YES, NO}:
        raise BadRequest(
            "A confirmation takes only the options yes and no.", hint="Use type choice."
        )
    if kind is QuestionType.CHOICE and not 2 <= len(options) <= MAX_OPTIONS:
        raise BadRequest(f"A question of type choice needs 2 to {MAX_OPTIONS} options.")
    return options


def _plain(text: str) -> str:
    words = " ".join(text.split()).casefold()
    # A lone "." can be an answer: the current folder, for example.
    return words.rstrip(".! ") or words
