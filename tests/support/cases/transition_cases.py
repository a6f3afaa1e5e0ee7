"""Conversations, runs and outcomes for tests of the transitions."""

from dataclasses import replace
from datetime import timedelta

from backburner.core import transitions
from backburner.core.conversation import Conversation, State, Status
from backburner.core.outcome import Complete, NeedsInput
from backburner.core.question import NewQuestion, QuestionType
from backburner.core.run import Failure, FailureKind
from backburner.core.schedule import Cron, Scheduled
from backburner.core.transitions import Brief
from support.stage import make
from support.stage.make import NOON, USER

HOUR = timedelta(hours=1)
DAILY = Cron("0 9 * * *", "UTC")
#: The slot of `DAILY` after NOON.
NINE = NOON + 21 * HOUR
WORK = State(context={"prompt": "Watch the build."})
BRIEF = Brief(title="watch", prompt="Watch the build.", schedule=DAILY)
RUN = make.run(schedule_revision=1, slot_at=NINE)
DONE = Complete(message="All green.", result="green")
BROKEN = Failure(FailureKind.TIMEOUT, "It took too long.")
ASKS = NeedsInput(
    message="There are two.", question=NewQuestion(type=QuestionType.INPUT, prompt="Which one?")
)


def working(**changes: object) -> Conversation:
    """Make a chat whose daily work was claimed at nine and is running."""
    settled = make.conversation(
        status=Status.BACKGROUND,
        schedule=DAILY,
        schedule_revision=1,
        next_run_at=NINE,
        settled_until=NINE,
        state=WORK,
    )
    return replace(settled, **changes)  # type: ignore[arg-type]


def once(**changes: object) -> Conversation:
    return working(**{"schedule": Scheduled(NINE), **changes})


def with_tool_failure(conversation: Conversation) -> Conversation:
    failure = Failure(FailureKind.TOOL, "No calendar.")
    return transitions.fail(conversation, RUN, failure, now=NINE).conversation


def proposed(**changes: object) -> Conversation:
    brief = replace(BRIEF, **changes)  # type: ignore[arg-type]
    return transitions.propose(
        make.CONVERSATION, USER, brief, why="It broke twice.", now=NOON
    ).conversation
