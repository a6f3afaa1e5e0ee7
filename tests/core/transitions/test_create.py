"""New conversations, and the question of a proposal."""

from dataclasses import replace

import pytest
from support.cases.transition_cases import BRIEF, HOUR, NINE, proposed
from support.stage import make
from support.stage.make import NOON, USER

from backburner.core import transitions
from backburner.core.conversation import Kind, OnRepeatedFailure, Status
from backburner.core.errors import BadRequest
from backburner.core.ids import QuestionId
from backburner.core.schedule import Immediate, Interval


def test_a_chat_is_born_active_and_nothing_is_due() -> None:
    chat = transitions.start_chat(make.CONVERSATION, USER, now=NOON).conversation

    assert (chat.status, chat.schedule, chat.next_run_at) == (Status.ACTIVE, None, None)


def test_a_task_is_born_at_work_with_what_its_brief_says() -> None:
    brief = replace(BRIEF, description="CI", params={"branch": "main"}, max_runs=3)
    task = transitions.start_task(make.CONVERSATION, USER, brief, now=NOON).conversation

    assert (task.kind, task.status, task.next_run_at) == (Kind.TASK, Status.BACKGROUND, NINE)
    assert task.state.context == {
        "prompt": "Watch the build.",
        "description": "CI",
        "branch": "main",
    }
    assert task.on_repeated_failure is OnRepeatedFailure.PAUSE


def test_a_job_is_born_to_run_at_once_whatever_its_brief_says() -> None:
    job = transitions.start_job(make.CONVERSATION, USER, BRIEF, now=NOON).conversation

    assert (job.kind, job.schedule, job.next_run_at) == (Kind.JOB, Immediate(), NOON)


def test_discovery_looks_first_after_one_interval() -> None:
    born = transitions.start_discovery(make.CONVERSATION, USER, every=HOUR, now=NOON).conversation

    assert (born.kind, born.next_run_at) == (Kind.DISCOVERY, NOON + HOUR)


@pytest.mark.parametrize(
    "changes",
    [{"title": " "}, {"prompt": ""}, {"max_runs": 0}, {"title": "x" * 201}],
    ids=["no name", "no prompt", "no runs", "too long a name"],
)
def test_work_that_makes_no_sense_is_not_begun(changes: dict[str, object]) -> None:
    with pytest.raises(BadRequest):
        transitions.start_task(make.CONVERSATION, USER, replace(BRIEF, **changes), now=NOON)  # type: ignore[arg-type]


def test_a_proposal_waits_and_says_what_and_why() -> None:
    waiting = proposed()

    question = waiting.pending_question
    assert question is not None
    assert (waiting.status, waiting.next_run_at) == (Status.WAITING_INPUT, None)
    assert question.prompt.startswith("Proposed task: watch\n> It broke twice.")
    assert question.options == ("yes", "no")


def test_changing_a_proposal_asks_anew_so_that_a_yes_is_for_what_was_shown() -> None:
    waiting = proposed()
    other = make.question(id=QuestionId("q_other"))
    both = transitions.ask_owner(waiting, other).conversation
    step = transitions.set_schedule(both, Interval(HOUR, NOON), now=NOON)

    assert step.withdrawn == (waiting.questions[0].id, other.id)
    assert step.conversation.questions == step.asked
    assert "It broke twice." in step.asked[0].prompt
    assert step.conversation.next_run_at is None
