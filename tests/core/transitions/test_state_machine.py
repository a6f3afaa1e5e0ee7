"""Every event in every status, allowed or not, in any order, follows the table."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from support.cases.examples import examples
from support.cases.state_table import CONFLICT, TABLE, EventCase, expected
from support.requirements import requirement
from support.stage import make

from backburner.core import transitions
from backburner.core.conversation import (
    Conversation,
    EndedAs,
    Kind,
    OnRepeatedFailure,
    State,
    Status,
)
from backburner.core.errors import Conflict
from backburner.core.ids import ConversationId
from backburner.core.outcome import Complete, Continue, NeedsInput, Outcome
from backburner.core.question import YES, NewQuestion, Purpose, Question, QuestionType
from backburner.core.run import Failure, FailureKind, Run, RunKind
from backburner.core.schedule import After, Cron, Event, Immediate, Interval, Schedule, Scheduled
from backburner.core.transitions import Brief, Step

#: Which cells were ever entered, over all examples.
seen: set[tuple[str, Status]] = set()

WORK = State(context={"prompt": "Look after it."})
INPUT = NewQuestion(type=QuestionType.INPUT, prompt="Which one?")
CHOICE = NewQuestion(
    type=QuestionType.CHOICE, prompt="Which one?", options=("the blue one", "none")
)
FAILURES = st.sampled_from(
    [
        Failure(FailureKind.TIMEOUT, "It took too long."),
        Failure(FailureKind.MODEL, "The key is wrong.", permanent=True),
        Failure(FailureKind.MODEL, "Busy.", retry_after=timedelta(minutes=7)),
        Failure(FailureKind.TOOL, "The calendar does not answer."),
    ]
)


def schedules(now: datetime) -> st.SearchStrategy[Schedule]:
    return st.sampled_from(
        [
            Immediate(),
            Scheduled(now + timedelta(hours=1)),
            Interval(timedelta(minutes=10), anchor=now),
            Cron("0 9 * * *", "Europe/Berlin"),
            Event("file", {"path": "notes.txt"}),
            After(make.OTHER),
            After(make.OTHER, once=True),
        ]
    )


class Life(RuleBasedStateMachine):
    conversation: Conversation
    run: Run
    now: datetime
    epoch = 0
    #: The last question that proposed its work, until it is approved.
    proposed: Question | None = None

    @initialize(kind=st.sampled_from(list(Kind)), data=st.data())
    def is_born(self, kind: Kind, data: st.DataObject) -> None:
        self.now = make.NOON
        brief = Brief(
            title="watch",
            prompt="Look after it.",
            schedule=data.draw(schedules(self.now)),
            max_runs=data.draw(st.sampled_from([None, None, 3])),
            on_repeated_failure=data.draw(st.sampled_from(list(OnRepeatedFailure))),
        )
        new, user = ConversationId("c_life"), make.USER
        births: dict[Kind, Callable[[], Step]] = {
            Kind.CHAT: lambda: transitions.start_chat(new, user, now=self.now),
            Kind.TASK: lambda: transitions.start_task(new, user, brief, now=self.now),
            Kind.JOB: lambda: transitions.start_job(new, user, brief, now=self.now),
            Kind.DISCOVERY: lambda: transitions.start_discovery(
                new, user, every=timedelta(minutes=30), now=self.now
            ),
        }
        step = births[kind]()
        if kind is Kind.TASK and data.draw(st.booleans()):
            step = transitions.propose(new, user, brief, why="It may help.", now=self.now)
        self.conversation = step.conversation
        self.remember_proposal(step)
        self.claim()

    def claim(self) -> None:
        """Take the turn for a background run under the schedule as it is."""
        self.epoch += 1
        self.run = make.run(epoch=self.epoch, schedule_revision=self.conversation.schedule_revision)

    def remember_proposal(self, step: Step) -> None:
        for question in step.asked:
            if question.purpose is Purpose.PROPOSAL:
                self.proposed = question

    def happen(self, event: str, case: EventCase, transition: Callable[[], Step]) -> Step | None:
        """Let something happen and compare what follows with the table."""
        before = self.conversation
        seen.add((event, before.status))
        wanted = expected(event, before, case)
        if wanted == CONFLICT:
            with pytest.raises(Conflict) as refused:
                transition()
            assert refused.value.message
            return None
        step = transition()
        assert step.conversation.status == wanted, (event, before, case)
        self.conversation = step.conversation
        self.remember_proposal(step)
        return step

    def ends(
        self, *, final: bool = False, asks: bool = False, permanent: bool = False
    ) -> EventCase:
        current = self.run.schedule_revision == self.conversation.schedule_revision
        return EventCase(self.now, current=current, final=final, asks=asks, permanent=permanent)

    @rule(passed=st.sampled_from([timedelta(seconds=5), timedelta(hours=3), timedelta(days=2)]))
    def time_passes(self, passed: timedelta) -> None:
        self.now += passed

    @rule()
    def the_user_talks(self) -> None:
        shown = self.conversation.pending_question
        if shown is not None and shown.type is QuestionType.INPUT:
            return  # that would be an answer
        self.happen(
            "message",
            EventCase(self.now),
            lambda: transitions.receive_message(
                self.conversation, "How is it going?", message_id=make.MESSAGE, now=self.now
            ),
        )

    @rule(data=st.data())
    def a_schedule_is_set(self, data: st.DataObject) -> None:
        chosen = data.draw(schedules(self.now))
        self.happen(
            "set_schedule",
            EventCase(self.now),
            lambda: transitions.set_schedule(self.conversation, chosen, now=self.now, state=WORK),
        )

    @rule()
    def a_worker_looks(self) -> None:
        def begin() -> Step:
            beginning = transitions.begin(self.conversation, now=self.now)
            assert beginning.runs or beginning.step.skipped
            return beginning.step

        self.happen("slot", EventCase(self.now), begin)
        self.claim()

    @rule()
    def something_happens_outside(self) -> None:
        self.happen(
            "event",
            EventCase(self.now),
            lambda: transitions.receive_event(self.conversation, {"n": 1}),
        )

    @rule()
    def a_run_is_asked_for(self) -> None:
        self.happen("run_now", EventCase(self.now), lambda: transitions.run_now(self.conversation))

    @rule(asked=st.sampled_from([INPUT, CHOICE]))
    def a_run_needs_input(self, asked: NewQuestion) -> None:
        outcome = NeedsInput(message="There are two.", question=asked, state_update={"n": 2})
        step = self.finishes("needs_input", outcome)
        assert [message.content for message in step.messages] == ["There are two."]

    @rule()
    def a_run_goes_on(self) -> None:
        self.finishes("continue", Continue(again_in=timedelta(minutes=5)))

    @rule(final=st.booleans(), message=st.sampled_from([None, "All is well."]))
    def a_run_completes(self, *, final: bool, message: str | None) -> None:
        outcome = Complete(message=message, result="well", final=final)
        self.finishes("complete", outcome, final=final)

    def finishes(self, event: str, outcome: Outcome, *, final: bool = False) -> Step:
        """Let a run end with an outcome."""
        step = self.happen(
            event,
            self.ends(final=final),
            lambda: transitions.finish(self.conversation, self.run, outcome, now=self.now),
        )
        assert step is not None
        self.claim()
        return step

    @rule(failure=FAILURES)
    def a_run_fails(self, failure: Failure) -> None:
        asks = failure.kind is FailureKind.TOOL
        was_waiting = self.conversation.status is Status.WAITING_INPUT
        step = self.happen(
            "fail",
            self.ends(asks=asks, permanent=failure.permanent),
            lambda: transitions.fail(self.conversation, self.run, failure, now=self.now),
        )
        assert step is not None
        if was_waiting and asks and step.asked:
            assert self.conversation.questions[-1].purpose is Purpose.FAILURE
        self.claim()

    @rule()
    def a_run_crashes(self) -> None:
        self.happen(
            "crash",
            self.ends(),
            lambda: transitions.crash(self.conversation, self.run, now=self.now),
        )
        self.claim()

    @rule(data=st.data())
    def a_question_is_answered(self, data: st.DataObject) -> None:
        if not self.conversation.questions:
            self.happen(
                "answer",
                EventCase(self.now),
                lambda: transitions.answer(self.conversation, make.QUESTION, "yes", now=self.now),
            )
            return
        question = data.draw(st.sampled_from(self.conversation.questions))
        said = data.draw(st.sampled_from(question.options or ("the blue one",)))
        step = self.happen(
            "answer",
            EventCase(self.now, question=question, answer=said),
            lambda: transitions.answer(self.conversation, question.id, said, now=self.now),
        )
        assert step is not None
        assert step.answered == ((question.id, said),)
        assert question.id not in {q.id for q in self.conversation.questions}
        if question.purpose is Purpose.PROPOSAL and said == YES:
            self.proposed = None

    @rule()
    def the_user_pauses(self) -> None:
        self.happen("pause", EventCase(self.now), lambda: transitions.pause(self.conversation))

    @rule()
    def the_user_resumes(self) -> None:
        self.happen(
            "resume",
            EventCase(self.now),
            lambda: transitions.resume(self.conversation, now=self.now),
        )

    @rule()
    def the_user_cancels(self) -> None:
        self.happen(
            "cancel",
            EventCase(self.now),
            lambda: transitions.cancel(self.conversation, now=self.now),
        )

    @rule()
    def a_follow_up_is_given(self) -> None:
        self.happen(
            "follow_up",
            EventCase(self.now),
            lambda: transitions.follow_up(
                self.conversation, "And then?", message_id=make.MESSAGE, now=self.now
            ),
        )

    @rule()
    def the_user_archives(self) -> None:
        step = self.happen(
            "archive",
            EventCase(self.now),
            lambda: transitions.archive(self.conversation, now=self.now),
        )
        if step is not None:
            assert step.stops is transitions.Stops.EVERYTHING

    @rule()
    def the_user_reopens(self) -> None:
        self.happen(
            "reopen",
            EventCase(self.now, question=self.proposed),
            lambda: transitions.reopen(self.conversation, proposed=self.proposed, now=self.now),
        )

    @rule(unattended=st.booleans())
    def a_reply_is_given(self, *, unattended: bool) -> None:
        facts = (self.conversation.failures, self.conversation.crashes, self.conversation.ended_as)
        run = replace(self.run, kind=RunKind.REPLY)
        if (
            unattended
            and self.conversation.unattended_replies == transitions.MAX_UNATTENDED_REPLIES - 1
        ):
            return  # it asks instead: shown by a test of its own
        self.happen(
            "reply",
            EventCase(self.now),
            lambda: transitions.reply(
                self.conversation, run, "Well.", now=self.now, unattended=unattended
            ),
        )
        assert facts == (
            self.conversation.failures,
            self.conversation.crashes,
            self.conversation.ended_as,
        )

    @rule(signal=st.sampled_from(list(transitions.FollowerEvent)))
    def a_predecessor_is_heard_of(self, signal: transitions.FollowerEvent) -> None:
        self.conversation = transitions.apply_follower_event(self.conversation, signal).conversation

    @rule(parked=st.booleans())
    def an_allowance_changes(self, *, parked: bool) -> None:
        if parked:
            self.conversation = transitions.pause_for_allowance(self.conversation).conversation
        else:
            self.conversation = transitions.resume_after_allowance(
                self.conversation, now=self.now
            ).conversation

    @invariant()
    def waiting_means_an_open_question(self) -> None:
        waits = self.conversation.status is Status.WAITING_INPUT
        assert waits == bool(self.conversation.questions)

    @invariant()
    def what_is_in_the_background_has_work_that_nothing_paused(self) -> None:
        if self.conversation.status is Status.BACKGROUND:
            assert self.conversation.schedule is not None
            assert self.conversation.pause_reason is None

    @invariant()
    def what_is_active_is_not_due(self) -> None:
        if self.conversation.status in (Status.ACTIVE, Status.ARCHIVED):
            assert self.conversation.next_run_at is None

    @invariant()
    def a_time_belongs_to_a_schedule(self) -> None:
        if self.conversation.schedule is None:
            assert self.conversation.next_run_at is None
            assert self.conversation.pause_reason is None
            assert not self.conversation.resuming

    @invariant()
    def work_under_way_has_not_ended(self) -> None:
        if self.conversation.schedule is not None:
            assert self.conversation.ended_as is None
            assert self.conversation.ended_at is None

    @invariant()
    def timed_work_in_the_background_has_a_time(self) -> None:
        timed = isinstance(self.conversation.schedule, Immediate | Scheduled | Cron | Interval)
        if timed and self.conversation.status is Status.BACKGROUND:
            assert self.conversation.next_run_at is not None

    @invariant()
    def what_nobody_has_approved_asks_or_is_archived(self) -> None:
        if self.proposed is not None and self.conversation.status is not Status.ARCHIVED:
            purposes = {question.purpose for question in self.conversation.questions}
            assert Purpose.PROPOSAL in purposes

    @invariant()
    def what_is_archived_is_over(self) -> None:
        if self.conversation.status is Status.ARCHIVED:
            assert self.conversation.schedule is None
            assert self.conversation.ended_as is not EndedAs.DISMISSED or (
                self.conversation.kind is Kind.TASK
            )


SETTINGS = settings(examples(250), stateful_step_count=60)

TestLife = Life.TestCase
TestLife.settings = SETTINGS


@requirement("A-transitions")
def test_every_cell_of_the_table_is_entered() -> None:
    if not seen:
        # The machine has not run in this process.
        run_state_machine_as_test(Life, settings=SETTINGS)

    assert {(event, status) for event in TABLE for status in Status} - seen == set()
