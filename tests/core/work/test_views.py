"""Tasks and jobs as views: each combination of facts has the status of the table."""

from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import pytest
from support.requirements import requirement
from support.stage import make

from backburner.core.conversation import Conversation, EndedAs, Kind, PauseReason, State, Status
from backburner.core.question import Purpose
from backburner.core.schedule import Cron, Event, Immediate
from backburner.core.work.views import (
    JobStatus,
    TaskKind,
    TaskStatus,
    counts_as_active,
    is_listed_as_task,
    job_status,
    job_view,
    task_status,
    task_view,
)

PROPOSAL = make.question(purpose=Purpose.PROPOSAL)
QUESTION = make.question()
DAILY = Cron("0 9 * * *", "UTC")


@cache
def every_combination() -> list[Conversation]:
    facts = product(
        Kind,
        Status,
        [None, *EndedAs],
        [None, *PauseReason],
        [(), (PROPOSAL,), (QUESTION,)],
        [True, False],
        [None, Immediate(), DAILY, Event("file", {})],
    )
    return [
        make.conversation(
            kind=kind,
            status=status,
            ended_as=ended_as,
            pause_reason=pause_reason,
            questions=questions,
            resuming=resuming,
            schedule=schedule,
        )
        for kind, status, ended_as, pause_reason, questions, resuming, schedule in facts
    ]


#: The two tables, as rows that are tried in order: condition, task status, job status.
Row = tuple[bool, TaskStatus | None, JobStatus | None]


#: How a job that was archived shows its end.
ENDED = {None: JobStatus.CANCELLED, EndedAs.DISMISSED: JobStatus.CANCELLED} | {
    ended: JobStatus(ended.value) for ended in EndedAs if ended is not EndedAs.DISMISSED
}


def rows(c: Conversation) -> list[Row]:
    working = JobStatus.RESUMED if c.resuming else JobStatus.RUNNING
    dismissed = c.ended_as is EndedAs.DISMISSED
    archived = c.status is Status.ARCHIVED
    return [
        (archived and dismissed, None, ENDED[c.ended_as]),
        (archived, TaskStatus.DONE, ENDED[c.ended_as]),
        (PROPOSAL in c.questions, TaskStatus.PROPOSED, working),
        (QUESTION in c.questions, TaskStatus.ACTIVE, working),
        (c.status is Status.BACKGROUND, TaskStatus.ACTIVE, working),
        (
            c.pause_reason in (PauseReason.FAILURES, PauseReason.CRASHES),
            TaskStatus.PAUSED,
            JobStatus.ERROR,
        ),
        (c.pause_reason is not None, TaskStatus.PAUSED, JobStatus.RUNNING),
        (c.ended_as is EndedAs.COMPLETED, TaskStatus.DONE, JobStatus.COMPLETED),
        (c.ended_as is EndedAs.ERROR, TaskStatus.FAILED, JobStatus.ERROR),
        (c.ended_as is EndedAs.CANCELLED, TaskStatus.DONE, JobStatus.CANCELLED),
        (dismissed, None, JobStatus.CANCELLED),
        (True, None, None),
    ]


@requirement("B-status")
def test_the_status_of_every_combination_of_facts_is_the_first_row_that_fits() -> None:
    for conversation in every_combination():
        _, task, job = next(row for row in rows(conversation) if row[0])

        assert task_status(conversation) is task
        assert job_status(conversation) is (job if conversation.kind is Kind.JOB else None)


def test_a_view_exists_exactly_if_a_status_does() -> None:
    for conversation in every_combination():
        task, job = task_view(conversation), job_view(conversation)

        assert (task and task.status) is task_status(conversation)
        assert (job and job.status) is job_status(conversation)


@requirement("B-task")
def test_a_task_is_a_conversation_seen_as_standing_work() -> None:
    context = {"prompt": "Watch the build.", "description": "CI"}
    conversation = make.conversation(
        title="watch", status=Status.BACKGROUND, schedule=DAILY, state=State(context)
    )
    view = task_view(conversation)

    assert view is not None
    assert (view.prompt, view.description) == ("Watch the build.", "CI")
    assert (view.kind, view.status) == (TaskKind.SCHEDULED, TaskStatus.ACTIVE)
    assert not view.needs_you


@requirement("B-kinds")
@pytest.mark.parametrize(
    ("schedule", "kind"),
    [
        (DAILY, TaskKind.SCHEDULED),
        (Event("file", {"path": "notes.txt"}), TaskKind.EVENT),
        (Immediate(), TaskKind.ONESHOT),
        (None, TaskKind.ONESHOT),
    ],
)
def test_the_kind_of_a_task_follows_from_its_schedule(schedule: object, kind: TaskKind) -> None:
    task = make.conversation(schedule=schedule, ended_as=EndedAs.COMPLETED)
    view = task_view(task)

    assert view is not None
    assert view.kind is kind
    assert view.event_source == ("file" if kind is TaskKind.EVENT else None)


def test_the_task_list_has_what_was_born_a_task_and_chats_with_a_schedule() -> None:
    done = make.conversation(ended_as=EndedAs.COMPLETED)

    assert is_listed_as_task(replace(done, kind=Kind.TASK))
    assert is_listed_as_task(make.conversation(status=Status.BACKGROUND, schedule=DAILY))
    assert not is_listed_as_task(done)
    assert not is_listed_as_task(make.conversation(kind=Kind.JOB, schedule=Immediate()))
    assert not is_listed_as_task(make.conversation(kind=Kind.TASK))


def test_a_job_shows_whether_it_needs_somebody_or_was_paused() -> None:
    job = make.conversation(kind=Kind.JOB, schedule=Immediate(), requested_profile="researcher")
    asking = job_view(replace(job, status=Status.WAITING_INPUT, questions=(QUESTION,)))
    paused = job_view(replace(job, pause_reason=PauseReason.ALLOWANCE))

    assert asking is not None
    assert (asking.status, asking.needs_you, asking.agent) == (
        JobStatus.RUNNING,
        True,
        "researcher",
    )
    assert paused is not None
    assert (paused.status, paused.paused) == (JobStatus.RUNNING, True)


@pytest.mark.parametrize(
    ("facts", "takes"),
    [
        ({}, True),
        ({"kind": Kind.CHAT}, True),
        ({"kind": Kind.JOB}, False),
        ({"kind": Kind.DISCOVERY}, False),
        ({"schedule": None}, False),
        ({"status": Status.ACTIVE, "pause_reason": PauseReason.USER}, False),
        ({"status": Status.ACTIVE, "pause_reason": PauseReason.FAILURES}, False),
        ({"status": Status.ACTIVE, "pause_reason": PauseReason.ALLOWANCE}, True),
        ({"status": Status.WAITING_INPUT, "questions": (QUESTION,)}, True),
        ({"status": Status.WAITING_INPUT, "questions": (PROPOSAL,)}, False),
    ],
)
def test_only_work_that_continues_by_itself_counts_as_active(
    facts: dict[str, Any], *, takes: bool
) -> None:
    task = make.conversation(kind=Kind.TASK, status=Status.BACKGROUND, schedule=DAILY)

    assert counts_as_active(replace(task, **facts)) is takes
