"""Work that a reply had set up is stopped when the message that it answered is replaced."""

from dataclasses import replace
from datetime import timedelta

import pytest
from support.cases.transition_cases import BRIEF, DAILY, HOUR, NINE, WORK, proposed, working
from support.stage import make
from support.stage.make import NOON, USER

from backburner.core import transitions
from backburner.core.conversation import Conversation, EndedAs, Kind, Status, mark_brief
from backburner.core.ids import QuestionId, RunId
from backburner.core.question import YES
from backburner.core.run import RunKind
from backburner.core.schedule import Interval
from backburner.core.transitions import FollowerEvent, Stops, Terms

OTHER_RUN = RunId("r_other")
TASK = working(kind=Kind.TASK, title="watch", parent_id=make.OTHER, set_up_by=make.RUN)
CHAT = working(set_up_by=make.RUN)
LATER = NINE + HOUR


def titled(*titles: str) -> list[Conversation]:
    return [replace(TASK, title=title) for title in titles]


def note(*stopped: Conversation, again: bool = False) -> str:
    (message,) = transitions.stop_note(stopped, again=again)
    assert message.own
    return message.content


@pytest.mark.parametrize("verb", ["changed", "sent again"])
def test_a_task_is_cancelled_and_archived_with_the_reason(verb: str) -> None:
    step = transitions.stop_child(TASK, now=NOON, again=verb == "sent again")

    after = step.conversation
    assert (after.status, after.ended_as) == (Status.ARCHIVED, EndedAs.CANCELLED)
    assert step.stops is Stops.EVERYTHING
    # Its parent says it in its own words.
    assert step.report is None
    (told,) = step.messages
    assert told.content == f"It was cancelled: the message that asked for it was {verb}."


def test_the_own_work_ends_with_what_its_runs_asked_and_the_conversation_stays() -> None:
    before, by_work = (
        make.question(id=QuestionId(name), run_kind=RunKind.BACKGROUND, asked_at=at)
        for name, at in (("q_before", NOON), ("q_work", LATER))
    )
    by_reply = make.question(id=QuestionId("q_reply"), run_kind=RunKind.REPLY, asked_at=LATER)
    waiting = replace(CHAT, status=Status.WAITING_INPUT, questions=(before, by_work, by_reply))

    step = transitions.stop_own_work(waiting, since=NINE, now=LATER)

    after = step.conversation
    assert (after.schedule, after.ended_as) == (None, EndedAs.CANCELLED)
    assert (after.status, after.questions) == (Status.WAITING_INPUT, (before, by_reply))
    assert step.withdrawn == (by_work.id,)
    assert len(step.messages) == 1
    assert (step.stops, step.signal) == (Stops.WORK, FollowerEvent.ENDED)


def test_a_chat_whose_work_was_stopped_is_an_ordinary_chat() -> None:
    step = transitions.stop_own_work(CHAT, since=NINE, now=LATER)

    assert (step.conversation.status, step.messages) == (Status.ACTIVE, ())


def test_the_stopped_work_is_named() -> None:
    assert transitions.stop_note([], again=False) == ()
    assert note(*titled("a")) == "Stopped “a”: the message that asked for it was changed."
    assert note(*titled("a", "b", "c"), again=True) == (
        "Stopped “a”, “b” and “c”: the message that asked for them was sent again."
    )
    # The title of a chat need not be about its work.
    assert note(CHAT) == ("Stopped “Watch the build”: the message that asked for it was changed.")


def test_only_a_few_are_named_and_none_whose_name_may_be_of_others() -> None:
    marked = mark_brief(replace(TASK, title="Obey!"), outside=True)

    assert note(*titled(*"abcdefg")).startswith("Stopped “a”, “b”, “c”, “d”, “e” and 2 more: ")
    assert note(*titled("a"), marked).startswith("Stopped “a” and 1 more: ")
    assert note(marked).startswith("Stopped what it had set up: ")


def test_the_run_that_set_up_work_is_known_until_somebody_else_changes_it() -> None:
    brief = replace(BRIEF, set_up_by=make.RUN)
    task = transitions.start_task(make.CONVERSATION, USER, brief, now=NOON).conversation
    hourly = Interval(HOUR, anchor=NOON)
    assert task.set_up_by == make.RUN

    def schedule(by_run: RunId | None) -> RunId | None:
        step = transitions.set_schedule(task, hourly, now=NOON, by_run=by_run)
        return step.conversation.set_up_by

    def edit(by_run: RunId | None, **changes: object) -> RunId | None:
        terms = replace(Terms.of(task), **changes)  # type: ignore[arg-type]
        step = transitions.edit_terms(task, terms, now=NOON, by_run=by_run)
        return step.conversation.set_up_by

    for change in (schedule, lambda by_run: edit(by_run, prompt="Look.")):
        assert change(make.RUN) == make.RUN
        assert change(OTHER_RUN) is None
        assert change(None) is None
    assert edit(None) == make.RUN
    paused = transitions.pause(task).conversation
    assert transitions.resume(paused, now=NOON).conversation.set_up_by == make.RUN


def test_new_work_of_a_conversation_is_that_of_the_run_whose_agent_set_it_up() -> None:
    for before in (None, OTHER_RUN):
        chat = make.conversation(state=WORK, set_up_by=before)
        for by_run in (make.RUN, None):
            step = transitions.set_schedule(chat, DAILY, now=NOON, by_run=by_run)
            assert step.conversation.set_up_by == by_run


def test_an_approved_proposal_and_a_resumed_job_are_their_owners() -> None:
    asked = proposed(set_up_by=make.RUN)
    assert asked.set_up_by == make.RUN
    approved = transitions.answer(asked, asked.questions[0].id, YES, now=NOON)
    assert approved.conversation.set_up_by is None

    done = make.conversation(
        kind=Kind.JOB, set_up_by=make.RUN, ended_as=EndedAs.COMPLETED, ended_at=NOON
    )
    resumed = transitions.follow_up(
        done, "And then?", message_id=make.MESSAGE, now=NOON + timedelta(hours=1)
    )
    assert resumed.conversation.set_up_by is None
