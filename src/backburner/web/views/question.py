"""Questions as cards: their kind, title, what exactly they are about, and their answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from backburner.core.ids import ConversationId
from backburner.core.question import (
    RECONNECT,
    YES,
    Purpose,
    Question,
    QuestionType,
    postponed_until,
)
from backburner.core.tool_policy import ALWAYS_HERE, GRANTS_TO_TASK
from backburner.web.display import Display, format_count, format_money
from backburner.web.rendering import Words, load_words
from backburner.web.views.exact_text import ExactText, show_exact, write_call
from backburner.web.views.explained_calls import (
    STEP,
    describe_lasting,
    describe_request,
    leave_out_calls,
    leave_out_uses,
    list_uses,
)
from backburner.web.views.input_form import InputForm, read_form
from backburner.web.views.proposal import read_proposal

MAX_TITLE = 300
#: The hours of "This evening" and "Tomorrow".
EVENING, MORNING = 18, 8
#: Nothing else is said about these than their answers.
_CLOSED = frozenset(
    {
        *(Purpose.APPROVAL, Purpose.ALLOWANCE, Purpose.IN_DOUBT, Purpose.RECONNECT),
        *(Purpose.PROPOSAL, Purpose.CHANGE, Purpose.INPUT),
    }
)

#: Asked in sentences of ours.
_SENTENCES = frozenset({Purpose.RECONNECT, Purpose.ALLOWANCE})


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownAnswer:
    label: str
    #: What is sent; None: it opens something else.
    answer: str | None
    is_main: bool = False
    #: Asked once more before it counts.
    confirm: str = ""
    #: The connection whose sign-in it begins.
    connect: str = ""
    #: The page that it opens.
    href: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionCard:
    id: str
    #: Where it stands in a conversation.
    key: str = ""
    conversation_id: ConversationId
    conversation_title: str
    kind: str
    title: str
    text: str
    calls: Sequence[ExactText]
    #: What the calls mean, step by step, and what would come of them.
    explained: str
    #: It begins with steps.
    has_steps: bool
    #: What the calls use: an icon, and words.
    uses: Sequence[tuple[str, str]]
    answers: Sequence[ShownAnswer]
    #: Something else can be said to the agent; the question stays open.
    takes_text: bool
    is_input: bool
    #: What a server asks for during a call.
    form: InputForm | None
    asked: str
    waited: str
    #: When it reminds, if it was put off.
    later: str
    hidden: int
    look_alike: int
    meter: int | None = None
    facts: Sequence[tuple[str, str]] = field(default=())
    #: Of a proposal: when it would run, and what it would do.
    schedule: str = ""
    times: Sequence[datetime] = field(default=())
    brief: str = ""


def show_question(
    question: Question, conversation_id: ConversationId, title: str, display: Display
) -> QuestionCard:
    words = load_words().question
    heading, text = _split(question)
    bound = question.binds_to.get("calls", ())
    form, is_approval = read_form(question), question.purpose is Purpose.APPROVAL
    # A server may say what its own call was for; the call was approved before.
    exact = map(leave_out_uses, bound) if is_approval else bound
    calls = [] if form else [show_exact(write_call(call)) for call in exact]
    explained = ""
    if is_approval:
        is_list = GRANTS_TO_TASK in question.binds_to
        # The lines of a list have numbers that it refers to.
        text, explained = "", text if is_list else leave_out_calls(text, bound)
        if len(bound) == 1 and not is_list:
            heading = describe_request(bound[0])[:MAX_TITLE] or heading
    if question.purpose is Purpose.IN_DOUBT:
        heading, text = words.in_doubt_title, ""
    proposal = read_proposal(question, display)
    if proposal is not None:
        heading, text = proposal.title, proposal.why
    if form is not None:
        heading, text = form.title, ""
    return QuestionCard(
        id=question.id,
        conversation_id=conversation_id,
        conversation_title=title,
        kind=words.kinds[_kind(question)],
        title=heading,
        text=text,
        calls=calls,
        explained=explained,
        has_steps=bool(STEP.match(explained)),
        uses=list_uses(bound) if is_approval else (),
        answers=list_answers(question, words, conversation_id),
        takes_text=question.purpose not in _CLOSED and question.type is not QuestionType.INPUT,
        is_input=question.type is QuestionType.INPUT and form is None,
        form=form,
        asked=display.time(question.asked_at),
        waited=display.since(question.asked_at),
        later=_later(question, display),
        hidden=sum(call.hidden for call in calls),
        look_alike=sum(call.look_alike for call in calls),
        meter=100 if question.purpose is Purpose.ALLOWANCE else None,
        facts=() if proposal is None else proposal.facts,
        schedule="" if proposal is None else proposal.schedule,
        times=() if proposal is None else proposal.times,
        brief="" if proposal is None else proposal.brief,
    )


def list_answers(
    question: Question, words: Words, conversation_id: ConversationId
) -> Sequence[ShownAnswer]:
    """List the buttons. Only the first may be the main one; a refusal looks like the others."""
    known: Words = words.answers
    is_choice = question.purpose is Purpose.QUESTION and question.type is QuestionType.CHOICE
    has_main = question.purpose is not Purpose.IN_DOUBT and not is_choice
    shown = list[ShownAnswer]()
    for number, option in enumerate(question.options):
        label = _label(question, option, known)
        confirm = ""
        if option == ALWAYS_HERE and question.purpose is Purpose.APPROVAL:
            covered = "\n".join(map(describe_lasting, question.binds_to.get("calls", ())))
            confirm = words.always_confirm.format(call=covered)
        connects = question.purpose is Purpose.RECONNECT and option == RECONNECT
        shown.append(
            ShownAnswer(
                label=label,
                answer=None if connects else option,
                is_main=has_main and number == 0,
                confirm=confirm,
                connect=question.binds_to["connection"] if connects else "",
            )
        )
    if question.purpose is Purpose.PROPOSAL:
        change = ShownAnswer(label=words.proposal.change, answer=None, href=f"/t/{conversation_id}")
        shown.insert(1, change)
    return shown


def _label(question: Question, option: str, known: Words) -> str:
    purpose = question.purpose.value
    if purpose in known and option in known[purpose]:
        text: str = known[purpose][option]
        bound = question.binds_to
        return text.format(server=bound.get("server", ""), raised=_describe_raised(bound))
    if question.type is QuestionType.CONFIRMATION:
        return str(known.confirmation["yes" if option == YES else "no"])
    return option[:1].upper() + option[1:]


def _describe_raised(bound: Mapping[str, Any]) -> str:
    """Name the limit after it was raised, which doubles it."""
    if bound.get("micros") is not None:
        return format_money(2 * bound["micros"])
    tokens = format_count(2 * (bound.get("tokens") or 0))
    return str(load_words().question.tokens.format(number=tokens))


def _kind(question: Question) -> str:
    if question.purpose is Purpose.QUESTION:
        return "input" if question.type is QuestionType.INPUT else "choice"
    return question.purpose.value


def _split(question: Question) -> tuple[str, str]:
    """Split the words into a title and the rest."""
    first, _, rest = question.prompt.strip().partition("\n")
    if question.purpose in _SENTENCES and not rest:
        # The title says what happened, and the text what comes of it.
        first, mark, rest = first.partition(". ")
        first += mark.strip()
    if len(first) <= MAX_TITLE:
        return first, rest.strip("\n")
    return first[:MAX_TITLE] + "…", question.prompt


def _later(question: Question, display: Display) -> str:
    """Say when it asks again, if its user has put it off."""
    until = postponed_until(question, now=display.now)
    return "" if until is None else display.moment(until)


def list_delays(display: Display) -> Sequence[tuple[str, str, str]]:
    """List how far a question can be put off: a name, the clock then, and how long it is."""
    local, now = display.local(display.now), display.now
    evening = local.replace(hour=EVENING, minute=0, second=0, microsecond=0)
    tomorrow = evening.replace(hour=MORNING) + timedelta(days=1)
    moments = [("hour", now + timedelta(hours=1))]
    # Shortly before the evening it is no other choice than an hour.
    if local.hour < EVENING - 1:
        moments.append(("evening", evening))
    moments.append(("tomorrow", tomorrow))
    return [
        # Across a change of the clocks, only times of one zone have a distance.
        (name, display.clock(at), f"{round((at.astimezone(UTC) - now).total_seconds())}s")
        for name, at in moments
    ]
