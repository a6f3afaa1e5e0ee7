"""The list of standing work: a row for each task, with its schedule, last outcome and cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from backburner.core.conversation import Conversation, MessageRole
from backburner.core.ids import ConversationId
from backburner.core.question import Purpose
from backburner.core.schedule import After, Scheduled
from backburner.ports import ConversationRow
from backburner.web.display import Display, format_money
from backburner.web.rendering import capitalize_first, load_words
from backburner.web.views.conversation_state import ShownState, show_state
from backburner.web.views.question import QuestionCard, show_question
from backburner.web.views.schedule import say_schedule

#: What there is to say of work that has not ended a run yet, by its burner.
_FIRST_RUN = {"working": "first_run", "needs": "first_run_waits"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTask:
    id: ConversationId
    title: str
    state: ShownState
    schedule: str
    #: When it runs next, or why it does not.
    plan: str
    next_at: datetime | None
    #: What came of it last, in a line.
    outcome: str
    last_at: datetime | None
    spent: str


@dataclass(frozen=True, slots=True)
class TaskGroup:
    name: str
    tasks: Sequence[ShownTask]


def show_tasks(rows: Sequence[ConversationRow], display: Display) -> Sequence[ShownTask]:
    titles = {row.conversation.id: row.conversation.title for row in rows}
    return [show_task_row(row, display, titles) for row in rows]


def group_tasks(active: Sequence[ShownTask], paused: Sequence[ShownTask]) -> Sequence[TaskGroup]:
    """Order active tasks by their next time; those without one come last."""
    known = [task for task in active if task.next_at is not None]
    known.sort(key=lambda task: (task.next_at, task.id))
    others = [task for task in active if task.next_at is None]
    groups = (TaskGroup("active", [*known, *others]), TaskGroup("paused", paused))
    return [group for group in groups if group.tasks]


def show_task_row(
    row: ConversationRow, display: Display, titles: Mapping[ConversationId, str]
) -> ShownTask:
    conversation = row.conversation
    schedule = conversation.schedule
    other = titles.get(schedule.conversation) if isinstance(schedule, After) else None
    spent, state = row.facts.spent.micros, show_state(row, display)
    said = "" if schedule is None else say_schedule(schedule, display, other=other)
    if isinstance(schedule, Scheduled):
        # Its time stands below.
        said = load_words().list.once
    return ShownTask(
        id=conversation.id,
        title=conversation.title or load_words().common.untitled,
        state=state,
        schedule=said,
        plan=_describe_plan(conversation, state, display),
        next_at=conversation.next_run_at,
        outcome=_describe_outcome(row, state),
        last_at=conversation.last_run_at,
        spent=format_money(spent) if spent else "",
    )


def _describe_plan(conversation: Conversation, state: ShownState, display: Display) -> str:
    words = load_words().tasks
    if state.tone or state.burner in ("paused", "working"):
        return state.line
    if conversation.next_run_at is not None:
        return capitalize_first(display.moment(conversation.next_run_at))
    if conversation.last_run_at is not None:
        return str(words.last.format(time=display.moment(conversation.last_run_at)))
    return str(words.nothing_next)


def show_proposals(rows: Sequence[ConversationRow], display: Display) -> Sequence[QuestionCard]:
    return [
        show_question(question, row.conversation.id, row.conversation.title, display)
        for row in rows
        for question in row.conversation.questions
        if question.purpose is Purpose.PROPOSAL
    ]


def list_cards(conversation: Conversation, display: Display) -> Sequence[QuestionCard]:
    """List the open questions of a conversation for its own page, to which none needs a way."""
    cards = (
        show_question(question, conversation.id, conversation.title, display)
        for question in conversation.questions
    )
    return [
        replace(card, answers=[answer for answer in card.answers if not answer.href])
        for card in cards
    ]


def is_proposal(conversation: Conversation) -> bool:
    return any(question.purpose is Purpose.PROPOSAL for question in conversation.questions)


def _describe_outcome(row: ConversationRow, state: ShownState) -> str:
    words, last = load_words().tasks, row.facts.last_message
    if row.conversation.failures:
        return str(words.failing)
    if last is not None and last.role is MessageRole.ASSISTANT and last.excerpt:
        return last.excerpt
    if row.conversation.last_run_at is not None:
        return str(words.nothing_to_report)
    if state.burner in _FIRST_RUN:
        return str(words[_FIRST_RUN[state.burner]])
    return str(words.no_outcome)
