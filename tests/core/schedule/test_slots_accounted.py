"""In every sequence of events, each slot ends as a run or in one skipped entry."""

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import takewhile

from hypothesis import given
from hypothesis import strategies as st
from support.cases.examples import examples
from support.stage import make

from backburner.core import transitions
from backburner.core.conversation import Conversation, State, Status
from backburner.core.outcome import Complete, Continue, NeedsInput
from backburner.core.question import NewQuestion, QuestionType
from backburner.core.run import Failure, FailureKind, SkippedSlots
from backburner.core.schedule import CatchUp, Cron, Interval, Schedule, slots
from backburner.core.transitions import Step

NOON = make.NOON
SCHEDULES = st.sampled_from(
    [
        Interval(timedelta(minutes=10), anchor=NOON),
        Interval(timedelta(minutes=10), anchor=NOON, catch_up=CatchUp.SKIP),
        Cron("*/20 * * * *", "UTC"),
        Cron("0 8-20 * * *", "Europe/Berlin", CatchUp.SKIP),
    ]
)
ENDINGS = st.sampled_from(["complete", "continue", "fail", "ask", "crash"])
LENGTHS = st.integers(0, 50).map(lambda minutes: timedelta(minutes=minutes, seconds=7))


class Ledger:
    """Keeps who answered for which slot."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.settled: list[datetime] = []

    def skip(self, skipped: tuple[SkippedSlots, ...]) -> None:
        for row in skipped:
            passed = slots(self.schedule, after=row.gap.first_at - timedelta.resolution)
            found = [next(passed) for _ in range(row.gap.count)]
            assert (found[0], found[-1]) == (row.gap.first_at, row.gap.last_at)
            self.settled += found

    def run_for(self, slot_at: datetime | None) -> None:
        if slot_at is not None:
            self.settled.append(slot_at)


def end_run(conversation: Conversation, ending: str, *, now: datetime) -> Step:
    run = make.run(schedule_revision=conversation.schedule_revision)
    asks = NewQuestion(type=QuestionType.INPUT, prompt="Which?")
    match ending:
        case "complete":
            return transitions.finish(conversation, run, Complete(), now=now)
        case "continue":
            return transitions.finish(conversation, run, Continue(), now=now)
        case "ask":
            outcome = NeedsInput(message="Two.", question=asks)
            return transitions.finish(conversation, run, outcome, now=now)
        case "crash":
            return transitions.crash(replace(conversation, crashes=0), run, now=now)
        case _:
            failure = Failure(FailureKind.TIMEOUT, "Too long.")
            return transitions.fail(conversation, run, failure, now=now)


@examples(100)
@given(
    schedule=SCHEDULES,
    lives=st.lists(st.tuples(LENGTHS, LENGTHS, ENDINGS, LENGTHS), min_size=1, max_size=12),
)
def test_every_slot_ends_as_a_run_or_in_one_skipped_row(
    schedule: Schedule, lives: list[tuple[timedelta, timedelta, str, timedelta]]
) -> None:
    ledger, now = Ledger(schedule), NOON
    work = State(context={"prompt": "Look."})
    conversation = transitions.set_schedule(
        make.conversation(), schedule, now=now, state=work
    ).conversation
    first = conversation.next_run_at
    assert first is not None
    for late, length, ending, silence in lives:
        assert conversation.next_run_at is not None
        now = max(now, conversation.next_run_at) + late
        beginning = transitions.begin(conversation, now=now)
        ledger.skip(beginning.step.skipped)
        conversation = beginning.step.conversation
        if not beginning.runs:
            continue
        ledger.run_for(beginning.slot_at)
        now += length
        step = end_run(conversation, ending, now=now)
        ledger.skip(step.skipped)
        conversation = step.conversation
        if conversation.status is Status.WAITING_INPUT:
            now += silence
            step = transitions.answer(conversation, conversation.questions[0].id, "It.", now=now)
            ledger.skip(step.skipped)
            conversation = step.conversation

    until = max(ledger.settled)
    due = slots(schedule, after=first - timedelta.resolution)
    assert sorted(ledger.settled) == list(takewhile(lambda slot: slot <= until, due))
