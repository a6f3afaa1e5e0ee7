"""Charts, runs, jobs and schedules in words: what the pages of work show of their facts."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from support.stage.make import (
    CONVERSATION,
    NOON,
    OTHER,
    QUESTION,
    conversation,
    failure,
    question,
    run,
)

from backburner.actions.work.job_trees import JobNode
from backburner.actions.work.run_pages import ConversationStats, PastRun
from backburner.core.allowance import Allowance, AllowanceScope, AllowanceState, Amount
from backburner.core.conversation import PauseReason
from backburner.core.ids import RunId
from backburner.core.run import Run, RunStatus, SkippedSlots, SkipReason, StartedBy
from backburner.core.schedule import (
    After,
    AfterCondition,
    CatchUp,
    Cron,
    Gap,
    Immediate,
    Interval,
    Schedule,
    Scheduled,
)
from backburner.core.work.estimate import Estimate
from backburner.core.work.run_facts import RunMeasure, take_medians
from backburner.core.work.views import JobStatus, JobView
from backburner.ports import JobCounts, SpendingState
from backburner.web.display import Display
from backburner.web.views.schedule import describe_misses, say_schedule, split_hint
from backburner.web.views.work.jobs import describe_counts, show_job
from backburner.web.views.work.task_page import (
    describe_success,
    describe_trouble,
    show_allowance,
    show_charts,
    show_past_run,
    show_tried,
)

DISPLAY = Display(NOON, "UTC")
SECOND = timedelta(seconds=1)
CENT = 10_000


def plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


def stats(*costs: int, failed: int = 0, tokens: int = 7, limit: int | None = None) -> Any:
    """Make the statistics of runs with these costs, of which the first have failed."""
    measures = []
    for number, micros in enumerate(costs):
        status = RunStatus.FAILURE if number < failed else RunStatus.SUCCESS
        one = run(id=RunId(f"r_{number}"), status=status, ended_at=NOON + SECOND)
        measures.append(RunMeasure(one, (number + 1) * SECOND, micros, tokens))
    scope = AllowanceScope.CONVERSATION
    return ConversationStats(
        conversation_id=CONVERSATION,
        runs=measures,
        costs={},
        medians=take_medians(measures),
        failed=failed,
        root_id=CONVERSATION,
        state=AllowanceState(Allowance(scope, limit), Amount(sum(costs), 0)),
        account=SpendingState({}, [], [], []),
    )


def test_charts_show_the_last_runs_and_the_limit_of_one() -> None:
    time, cost, _ = show_charts(stats(CENT, CENT, 2 * CENT, failed=1), DISPLAY, run_limit=4 * CENT)

    assert [bar.part for bar in time.bars] == [33.3, 66.7, 100]
    assert [bar.tone for bar in time.bars] == ["bad", "", "now"]
    assert plain(time.texts.headline) == "2.0 s"
    assert plain(time.texts.sentence) == "Time per run, last 3: median 2.0 s, one failed"
    assert (cost.texts.headline, cost.texts.aside, cost.limit) == ("$0.010", "limit $0.040", 100)
    assert [bar.part for bar in cost.bars] == [25, 25, 50]
    # A limit that is far above would make all bars flat.
    far = show_charts(stats(CENT), DISPLAY, run_limit=100 * CENT)[1]
    assert (far.limit, far.bars[0].part, far.texts.aside) == (None, 100, "limit $1.00")


def test_work_that_failed_says_why_and_what_becomes_of_it() -> None:
    bad = replace(stats(CENT, failed=1))
    broken = replace(bad.runs[0].run, failure=failure())
    bad = replace(bad, runs=[replace(bad.runs[0], run=broken)])
    paused = conversation(failures=2, pause_reason=PauseReason.FAILURES)
    tries = conversation(failures=1, next_run_at=NOON + timedelta(hours=1))

    stands = describe_trouble(paused, bad, DISPLAY)
    goes_on = describe_trouble(tries, bad, DISPLAY)

    assert stands is not None
    assert goes_on is not None
    assert stands.text == "The last run failed: The model was overloaded."
    assert stands.what_next.endswith(
        "It has failed 2 times in a row, and does not run by itself until you resume it."
    )
    assert (stands.run_id, goes_on.what_next.endswith("It tries again today 13:00.")) == (
        broken.id,
        True,
    )
    assert describe_trouble(conversation(), stats(CENT), DISPLAY) is None
    assert describe_trouble(conversation(failures=1), stats(), DISPLAY) is None


def test_what_has_no_price_is_counted_in_tokens() -> None:
    (_, tokens) = show_charts(stats(0, 0), DISPLAY, run_limit=CENT)
    assert (tokens.texts.title, tokens.texts.headline, tokens.limit) == (
        "Tokens per run",
        "7",
        None,
    )
    assert len(show_charts(stats(0, tokens=0), DISPLAY, run_limit=None)) == 1
    assert show_charts(stats(), DISPLAY, run_limit=None) == []


@pytest.mark.parametrize(
    ("count", "failed", "said", "tone"),
    [
        (0, 0, "", ""),
        (1, 0, "The only run went well", "ok"),
        (1, 1, "The only run failed", "bad"),
        (3, 1, "2 of 3 runs went well", "ok"),
        (3, 2, "1 of 3 runs went well", ""),
        (3, 3, "None of 3 runs went well", "bad"),
        (20, 1, "19 of the last 20 runs went well", "ok"),
    ],
)
def test_success_is_said_in_a_sentence(count: int, failed: int, said: str, tone: str) -> None:
    shown = describe_success(stats(*[CENT] * count, failed=failed))
    assert (shown and shown.text) == (said or None)
    assert (shown and shown.tone) == (tone if said else None)


@pytest.mark.parametrize(
    ("changes", "more", "outcome", "burner"),
    [
        ({"status": RunStatus.SUCCESS}, {"message": "14 mails."}, "14 mails.", "done"),
        ({"status": RunStatus.SUCCESS}, {"is_quiet": True}, "Nothing to report", "done"),
        ({"status": RunStatus.SUCCESS}, {}, "Went well", "done"),
        ({"status": RunStatus.SUCCESS, "result": "All is green."}, {}, "All is green.", "done"),
        ({"status": RunStatus.SUCCESS, "result": '{"a": 1}'}, {}, "Went well", "done"),
        ({"status": RunStatus.FAILURE}, {}, "Failed", "failed"),
        (
            {"status": RunStatus.FAILURE, "failure": failure()},
            {},
            "The model was overloaded.",
            "failed",
        ),
        ({"status": RunStatus.CANCELLED}, {}, "Stopped", "paused"),
        ({"ended_at": None}, {"doing": "reads mail"}, "reads mail", "working"),
        ({"ended_at": None}, {}, "Working", "working"),
        ({"ended_at": None, "status": RunStatus.QUEUED}, {}, "Waits", "waits"),
    ],
)
def test_a_run_says_what_came_of_it(
    changes: Mapping[str, Any], more: Mapping[str, Any], outcome: str, burner: str
) -> None:
    usual = {"ended_at": NOON + SECOND, "started_by": StartedBy.RUN_NOW}
    shown = show_past_run(past(run(**{**usual, **changes}), **more), DISPLAY)

    assert (shown.outcome, shown.burner, shown.started_by) == (outcome, burner, "you, Run now")
    assert plain(shown.took) == ("1.0 s" if shown.burner not in ("working", "waits") else "")


def past(of: Run, **changes: Any) -> PastRun:
    usual: dict[str, Any] = {"spent": Amount(), "message": None, "is_quiet": False, "doing": ""}
    return PastRun(run=of, worked=SECOND, **{**usual, **changes})


def test_a_slot_without_a_run_says_why_and_has_no_page() -> None:
    gap = Gap(count=3, first_at=NOON - timedelta(days=1), last_at=NOON - timedelta(hours=20))
    skipped = run(
        status=RunStatus.SKIPPED, skipped=SkippedSlots(gap, SkipReason.MISSED), ended_at=NOON
    )
    shown = show_past_run(past(skipped), DISPLAY)

    assert shown.outcome == "Skipped: machine off or busy, or model unavailable (3 times)"
    assert (shown.when, shown.took, shown.started_by) == ("Sun 16:00", "", "schedule")
    assert not shown.has_page
    assert show_past_run(past(run(), spent=Amount(CENT, 7)), DISPLAY).cost == "$0.010"
    assert show_past_run(past(run(), spent=Amount(0, 7)), DISPLAY).cost == "7 tokens"


def test_an_allowance_says_what_is_left_and_what_to_expect() -> None:
    cost = Estimate(per_run=Amount(CENT, 7), runs=3, own=True, priced=True, runs_per_month=30)
    shown = show_allowance(stats(CENT, limit=4 * CENT), cost, conversation())
    assert (shown.text, shown.part, shown.limit) == ("$0.010 of $0.040 so far", 25, "$0.04")
    assert shown.estimate == "About $0.010 a run, $0.30 in thirty days"
    assert not shown.is_shared

    once = replace(cost, runs_per_month=1)
    shown = show_allowance(stats(CENT), once, conversation(id=OTHER))
    assert (shown.text, shown.part, shown.limit) == ("$0.010 so far, no limit", None, "")
    assert (shown.estimate, shown.is_shared) == ("About $0.010 a run", True)
    assert show_allowance(stats(), replace(cost, priced=False), conversation()).estimate == ""
    assert show_allowance(stats(CENT, limit=0), None, conversation()).part == 100


@pytest.mark.parametrize(
    ("schedule", "said", "misses"),
    [
        (Immediate(), "At once", ""),
        (Scheduled(NOON + timedelta(hours=2)), "Once, today 14:00", ""),
        (Cron("0 8 * * 1-5", "UTC"), "Weekdays at 8:00", "UTC · missed times run once"),
        (
            Cron("0 8 * * 1-5", "Asia/Tokyo", CatchUp.SKIP),
            "Weekdays at 8:00 (Asia/Tokyo)",
            "Asia/Tokyo · missed times are skipped",
        ),
        (Cron("*/10 * * * *", "UTC"), "Every 10th minute of every hour", None),
        (Cron("*/10 * * * *", "Asia/Tokyo"), "Every 10th minute of every hour (Asia/Tokyo)", None),
        (Interval(timedelta(hours=2), NOON), "Every 2 hours", "Missed times run once"),
        (After(OTHER), "After “Build”", ""),
        (After(OTHER, AfterCondition.ANY), "After “Build”, whatever comes of it", ""),
    ],
)
def test_a_schedule_is_said_shortly(schedule: Schedule, said: str, misses: str | None) -> None:
    assert plain(say_schedule(schedule, DISPLAY, other="Build")) == said
    if misses is not None:
        assert describe_misses(schedule) == misses


def test_examples_in_hints_are_set_apart() -> None:
    parts = split_hint("Use `every 30m` or `in 2h`.")
    assert [part.text for part in parts if part.is_example] == ["every 30m", "in 2h"]
    assert "".join(part.text for part in parts) == "Use every 30m or in 2h."
    assert split_hint("") == []


def job(**changes: Any) -> JobNode:
    usual: dict[str, Any] = dict.fromkeys(
        ("agent", "folder", "connections", "timeout", "question", "parent_id", "parent_run_id")
    )
    usual |= dict.fromkeys(("parent_message_id", "batch", "completed_at", "retrieved_at"))
    usual |= dict.fromkeys(("result", "data", "error", "progress", "running"))
    usual |= {"id": OTHER, "description": "Count", "prompt": "Count.", "resume_count": 0}
    usual |= {"status": JobStatus.RUNNING, "needs_you": False, "paused": False, "calls": 0}
    usual |= {"created_at": NOON, "updated_at": NOON, "recent_tools": ()}
    return JobNode(
        view=JobView(**usual | changes),
        elapsed=SECOND,
        spent=Amount(0, 7),
        counts=JobCounts(),
        children=(),
    )


def test_a_test_run_that_has_ended_says_what_came_of_it() -> None:
    ended = {"completed_at": NOON, "batch": "test run"}
    well = show_tried(job(status=JobStatus.COMPLETED, result="**7** mails", **ended).view, DISPLAY)
    bad = show_tried(job(status=JobStatus.ERROR, error="No such file.", **ended).view, DISPLAY)
    quiet = show_tried(job(status=JobStatus.COMPLETED, **ended).view, DISPLAY)

    assert well is not None
    assert bad is not None
    assert quiet is not None
    assert (well.text, well.is_failed, well.when) == ("7 mails", False, "Today 12:00")
    assert (bad.text, bad.is_failed) == ("No such file.", True)
    assert quiet.text == "Nothing to report"
    assert show_tried(job(status=JobStatus.CANCELLED, **ended).view, DISPLAY) is None
    assert show_tried(job().view, DISPLAY) is None
    assert show_tried(None, DISPLAY) is None


@pytest.mark.parametrize(
    ("changes", "burner", "line", "can"),
    [
        ({}, "waits", "It waits for its turn", "c"),
        ({"paused": True}, "paused", "Paused", "c"),
        ({"needs_you": True, "question": "Which?"}, "needs", "Asks: Which?", "c"),
        ({"status": JobStatus.COMPLETED, "result": "7"}, "done", "7", "fr"),
        ({"status": JobStatus.COMPLETED, "batch": "test run"}, "done", "Done", "r"),
        ({"status": JobStatus.CANCELLED}, "rest", "Cancelled", "r"),
        ({"status": JobStatus.ERROR}, "failed", "Failed: no reason is known", "r"),
    ],
)
def test_a_job_says_where_it_stands(
    changes: Mapping[str, Any], burner: str, line: str, can: str
) -> None:
    shown = show_job(job(**changes), DISPLAY)
    able = {"c": shown.can_cancel, "f": shown.can_follow_up, "r": shown.can_remove}

    assert (shown.burner, shown.line) == (burner, line)
    assert "".join(letter for letter, can_be in able.items() if can_be) == can
    assert plain(shown.facts) == "1.0 s · 7 tokens"


def test_a_job_leads_to_what_it_asks_and_says_what_it_waits_for() -> None:
    waits = replace(job(), waits_for="It waits for its jobs: 1 of 2 done.")
    asks = replace(
        job(needs_you=True), asked=question(prompt="Which?"), waits_for="It waits for you."
    )

    assert show_job(waits, DISPLAY).line == "It waits for its jobs: 1 of 2 done"
    shown = show_job(asks, DISPLAY)
    assert (shown.burner, shown.line, shown.href) == ("needs", "Asks: Which?", f"/q/{QUESTION}")


def test_jobs_are_counted_in_words() -> None:
    assert describe_counts(JobCounts()) == ""
    assert describe_counts(JobCounts(total=5, completed=2)) == "2 of 5 done"
    counts = JobCounts(total=9, completed=2, failed=1, cancelled=3)
    assert describe_counts(counts) == "2 of 9 done, one failed, 3 cancelled"
