"""Limits on jobs, when they have settled, and how they are described."""

from dataclasses import replace
from datetime import timedelta

import pytest
from support.stage import make
from support.stage.make import NOON, OTHER, USER

from backburner.core import transitions
from backburner.core.conversation import Author, Conversation, EndedAs, PauseReason, Status
from backburner.core.errors import BadRequest, Conflict, LimitReached
from backburner.core.ids import ConversationId
from backburner.core.outcome import Complete
from backburner.core.run import ItemKind, RunKind
from backburner.core.schedule import Immediate
from backburner.core.transitions import Brief, Report
from backburner.core.work.jobs import (
    MAX_OPEN_JOBS,
    check_new_jobs,
    describe_job,
    is_settled,
    result_text,
    summarize_jobs,
)
from backburner.core.work.views import JobStatus, JobView, WorkSummary, job_view

CHAT = make.conversation()
JOB = transitions.start_job(
    OTHER,
    USER,
    Brief(
        title="Search",
        prompt="Find it.",
        schedule=Immediate(),
        parent_id=CHAT.id,
        created_by=Author.AGENT,
    ),
    now=NOON,
).conversation
DONE = transitions.finish(
    JOB, make.run(schedule_revision=1), Complete(message="Found."), now=NOON
).conversation
WORK = WorkSummary(
    message="Found.",
    result_json='{"it":1}',
    failure="It broke.",
    calls=7,
    recent_tools=("read_file", "list_files"),
    updated_at=NOON + timedelta(seconds=5),
)


def view(job: Conversation, work: WorkSummary | None = None) -> JobView:
    found = job_view(job, work)
    assert found is not None
    return found


def test_jobs_of_jobs_start_no_jobs() -> None:
    below = replace(JOB, parent_id=OTHER)

    check_new_jobs([CHAT], open_jobs=0)
    check_new_jobs([JOB, CHAT], open_jobs=MAX_OPEN_JOBS - 1)
    with pytest.raises(LimitReached, match="cannot start jobs"):
        check_new_jobs([below, JOB, CHAT], open_jobs=0)


def test_the_number_of_open_jobs_is_limited() -> None:
    check_new_jobs([CHAT], open_jobs=MAX_OPEN_JOBS - 3, new_jobs=3)
    with pytest.raises(LimitReached, match=r"64 open jobs; 62 are open now.*cancel some"):
        check_new_jobs([CHAT], open_jobs=MAX_OPEN_JOBS - 2, new_jobs=3)


def test_an_archived_conversation_starts_no_jobs() -> None:
    with pytest.raises(Conflict, match="archived"):
        check_new_jobs([replace(CHAT, status=Status.ARCHIVED)], open_jobs=0)


def test_a_job_has_settled_when_nothing_more_happens_by_itself() -> None:
    asking = transitions.ask_owner(JOB, make.question()).conversation
    parked = transitions.pause_for_allowance(JOB).conversation
    archived = transitions.archive(JOB, now=NOON).conversation

    assert not is_settled(JOB)
    for settled in (asking, parked, archived, DONE):
        assert is_settled(settled)
        assert view(settled).is_settled
    assert not view(JOB).is_settled


@pytest.mark.parametrize(
    ("outcome", "output"),
    [
        (Complete(), "It is done."),
        (Complete(message="Found."), "Found."),
        (Complete(result=[1]), "[1]"),
        (Complete(result="gold"), "gold"),
        (Complete(message="Found.", result=[1]), "Found.\n\nResult: [1]"),
        (Complete(message="Found.", result=""), "Found."),
        (Complete(result=" "), "It is done."),
    ],
)
def test_a_job_reports_all_that_it_found(outcome: Complete, output: str) -> None:
    step = transitions.finish(JOB, make.run(schedule_revision=1), outcome, now=NOON)

    assert result_text(outcome) == output
    assert step.report == Report(output)


def test_a_job_shows_its_result_or_why_it_failed() -> None:
    done, failed = view(DONE, WORK), view(replace(DONE, ended_as=EndedAs.ERROR), WORK)

    assert (done.result, done.data, done.error) == ("Found.", {"it": 1}, None)
    assert (failed.status, failed.result, failed.data) == (JobStatus.ERROR, None, None)
    assert failed.error == "It broke."
    assert (done.calls, done.recent_tools, done.updated_at) == (
        7,
        ("read_file", "list_files"),
        NOON + timedelta(seconds=5),
    )
    assert view(DONE, WorkSummary(result="[1]")).result == "[1]"
    assert view(DONE, WorkSummary()).result == "It is done."
    assert "no longer available" in str(
        view(replace(DONE, ended_as=EndedAs.ERROR), WorkSummary()).error
    )
    assert (view(DONE).result, view(DONE).updated_at) == (None, NOON)
    assert (view(JOB, WORK).result, view(JOB).updated_at) == (None, NOON)


def test_the_message_has_the_request_and_the_result() -> None:
    step = transitions.receive_report(CHAT, JOB, Report("It broke.", failed=True))

    (message,) = step.messages
    assert message.content == "The job 'Search' has failed. Its request was: Find it.\n\nIt broke."
    (item,) = step.inbox
    assert (item.kind, item.run_kind) == (ItemKind.JOB_RESULT, RunKind.REPLY)
    assert item.content["conversation_id"] == OTHER
    assert item.content["request"] == "Find it."


def test_a_result_that_work_waits_for_is_for_that_work() -> None:
    step = transitions.receive_report(CHAT, JOB, Report("Found."), awaited_by=RunKind.BACKGROUND)

    assert [item.run_kind for item in step.inbox] == [RunKind.BACKGROUND]


@pytest.mark.parametrize(
    ("job", "why"),
    [
        (JOB, "this one is running. Wait until"),
        (replace(DONE, ended_as=EndedAs.ERROR), "this one is error. Start a new one"),
        (replace(DONE, ended_as=None), "this one is idle. Start a new one"),
    ],
)
def test_a_job_that_is_not_completed_says_so_when_it_is_to_be_resumed(
    job: Conversation, why: str
) -> None:
    with pytest.raises(Conflict, match=why):
        transitions.follow_up(job, "More.", message_id=make.MESSAGE, now=NOON)


def test_a_follow_up_has_to_say_something() -> None:
    with pytest.raises(BadRequest, match="empty"):
        transitions.follow_up(DONE, " ", message_id=make.MESSAGE, now=NOON)


def test_archiving_says_what_was_cancelled() -> None:
    step = transitions.archive(CHAT, now=NOON, stopped=["Search", "Count"])
    both = transitions.archive(JOB, now=NOON, stopped=["Search"])

    assert [message.content for message in step.messages] == [
        "Archived. Its tasks and jobs were cancelled: 'Search', 'Count'. Results are kept."
    ]
    assert both.messages[0].content.startswith(
        "Archived. Its background work was stopped. Its tasks"
    )
    assert transitions.archive(CHAT, now=NOON).messages == ()


@pytest.mark.parametrize(
    ("job", "said"),
    [
        (JOB, "running, 7 tool calls (last: read_file, list_files), last activity at"),
        (DONE, "completed at 2026-11-16 12:00:00 UTC."),
        (replace(DONE, resume_count=2), "12:00:00 UTC, resumed 2 times."),
        (
            replace(JOB, status=Status.ACTIVE, pause_reason=PauseReason.USER),
            "running, but paused",
        ),
        (
            transitions.ask_owner(JOB, make.question(prompt="Why? " * 99)).conversation,
            "running, waits for the user's answer to: Why? Why?",
        ),
    ],
)
def test_a_job_is_described_by_its_status(job: Conversation, said: str) -> None:
    line = describe_job(view(job, WORK))

    assert line.startswith(f"{OTHER} 'Search': ")
    assert said in line
    assert len(line) < 500


def test_a_job_says_for_which_sign_in_it_waits() -> None:
    waiting = replace(JOB, status=Status.ACTIVE, pause_reason=PauseReason.SIGNED_OUT)
    line = describe_job(replace(view(waiting, WORK), waits_for="Reconnect mail."))

    assert line.endswith("running, waits for the user: Reconnect mail.")


def test_a_summary_says_how_to_get_results() -> None:
    jobs = [view(DONE), view(JOB, WorkSummary(calls=1))]

    plain = summarize_jobs(jobs)
    output = summarize_jobs(jobs, shown=[OTHER], missing=[ConversationId("c_gone")])
    untold = summarize_jobs(jobs, shown=())

    assert plain.startswith("1 of 2 have settled.\n- ")
    assert "1 tool call, last activity" in plain
    assert "background_output" not in plain + output
    assert output.endswith("- c_gone: no longer exists.")
    assert untold.count("background_output returns its result.") == 1
