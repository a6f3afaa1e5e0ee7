"""The steps of a run in rows: where their bars are, what is short, what folds, what is said."""

import pytest
from support.stage import make
from support.stage.made_up_runs import at, ended_run, paid, run_page, tool_call
from support.stage.make import QUESTION

from backburner.core.question import Purpose
from backburner.core.run import RunStatus
from backburner.core.work.timeline import AskedQuestion
from backburner.web.views.runs.waterfall import (
    FOLD,
    MIN_WIDTH,
    SHOWN_LAST,
    WIDTH,
    FoldedSteps,
    Scale,
    ShownStep,
    show_fold,
    show_waterfall,
)

NOW = at(3600)


def steps(page: object) -> list[ShownStep]:
    rows = show_waterfall(page, NOW).rows  # type: ignore[arg-type]
    return [row for row in rows if isinstance(row, ShownStep)]


def test_bars_stand_where_the_steps_were_in_the_colours_of_their_kinds() -> None:
    calls = [
        tool_call(1, 10, 20, "read_file"),
        tool_call(2, 20, 40, "run_command", failed=True),
    ]
    page = run_page(run=ended_run(100), calls=calls, model_calls=[paid(10, 6120)])

    shown = steps(page)

    assert [(one.tone, one.bar.x, one.bar.width) for one in shown] == [
        ("thinking", 0, 100),
        ("call", 100, 100),
        ("failed", 200, 200),
        ("thinking", 400, 600),
    ]
    assert [one.text for one in shown] == ["Thought", "Read", "Ran", "Wrote the result"]
    assert (shown[1].name, shown[0].tokens) == ("a.py", "6,120")
    assert shown[2].label == "Step 3, Ran a.py, failed, from second 20 to 40"
    assert show_waterfall(page, NOW).tones == ["thinking", "call", "failed"]


def test_a_moment_is_wide_enough_to_be_seen_and_stays_on_the_lane() -> None:
    calls = [tool_call(1, 10, 10.01), tool_call(2, 99.999, 100)]

    shown = steps(run_page(run=ended_run(100), calls=calls))

    bars = [one.bar for one in shown if one.tone == "call"]
    assert [bar.width for bar in bars] == [MIN_WIDTH, MIN_WIDTH]
    assert all(bar.x >= 0 and bar.x + bar.width <= WIDTH for bar in bars)
    assert shown[1].took == "<0.1\N{NO-BREAK SPACE}s"


def test_hours_of_waiting_leave_room_for_seconds_of_work() -> None:
    asked = AskedQuestion(
        id=QUESTION,
        purpose=Purpose.APPROVAL,
        prompt="May I?",
        asked_at=at(10),
        closed_at=at(30_000),
        answer="yes",
    )
    page = run_page(
        run=ended_run(60_010, epoch=3),
        parts=[(0, 10), (30_000, 30_010), (60_000, 60_010)],
        asked=[asked],
        calls=[tool_call(1, 30_000, 30_005)],
    )

    shown = steps(page)

    waits = [one for one in shown if one.tone == "waiting"]
    assert [one.text for one in waits] == ["Waited for your approval", "Waited for its turn"]
    assert all(one.bar.width < WIDTH / 5 for one in waits)
    (call,) = [one for one in shown if one.tone == "call"]
    assert call.bar.width > WIDTH / 10
    # Ticks count the work, and have room between each other.
    ticks = show_waterfall(page, NOW).ticks
    assert [tick.label for tick in ticks] == ["0\N{NO-BREAK SPACE}s", "10", "20"]
    assert [tick.x for tick in ticks] == sorted(tick.x for tick in ticks)


def test_what_has_just_begun_or_only_waits_is_drawn_as_well() -> None:
    begun = run_page(run=make.run(), now=0)
    waits = run_page(run=make.run(status=RunStatus.QUEUED), now=0)
    never = run_page(run=ended_run(0, RunStatus.SKIPPED), now=0)

    assert [one.text for one in show_waterfall(begun, at(0)).rows] == ["Thinks"]
    assert [one.text for one in show_waterfall(waits, at(0)).rows] == ["Waits for its turn"]
    assert show_waterfall(never, at(0)).rows == []


def test_a_running_tool_has_its_age_and_ends_now() -> None:
    page = run_page(run=make.run(), calls=[tool_call(1, 10, None, "run_command")], now=40)

    running = show_waterfall(page, at(40)).rows[-1]

    assert isinstance(running, ShownStep)
    assert (running.is_running, running.took, running.text) == (
        True,
        "30\N{NO-BREAK SPACE}s",
        "Runs",
    )
    assert running.bar.x + running.bar.width == WIDTH
    assert running.label.endswith("since second 10")


def test_many_steps_fold_and_the_last_ones_do_not() -> None:
    calls = [tool_call(n, n, n + 0.5, failed=n == 7) for n in range(1, 301)]
    page = run_page(run=ended_run(302), calls=calls, model_calls=[])

    waterfall = show_waterfall(page, NOW)

    folds = [row for row in waterfall.rows if isinstance(row, FoldedSteps)]
    shown = len(waterfall.rows) - len(folds)
    assert SHOWN_LAST <= shown < SHOWN_LAST + FOLD
    assert waterfall.steps == shown + FOLD * len(folds) == 500
    assert waterfall.is_cut
    assert (folds[0].text, folds[0].failed) == ("Steps 1 to 50", 1)
    assert folds[0].label == "Steps 1 to 50, 1 failed"
    opened = show_fold(page, 1, NOW)
    assert len(opened) == len(folds[1].bars) == FOLD
    assert opened[0].label.startswith("Step 51, ")
    assert show_fold(page, 99, NOW) == []


def test_few_steps_do_not_fold() -> None:
    calls = [tool_call(n, n, n + 1) for n in range(1, 70)]

    assert len(steps(run_page(run=ended_run(70), calls=calls))) == 70


@pytest.mark.parametrize(
    ("seconds", "labels"),
    [
        (0.4, ["0 s", "0.1", "0.2", "0.3"]),
        (108, ["0 s", "30", "60", "90"]),
        (600, ["0 min", "2", "4", "6", "8"]),
        (4 * 3600, ["0 h", "1", "2", "3"]),
        (30 * 86_400, ["0 d", "10", "20"]),
    ],
)
def test_ticks_are_round_times_in_a_unit_that_suits(seconds: float, labels: list[str]) -> None:
    ticks = Scale([], seconds).list_ticks()

    assert [tick.label.replace("\N{NO-BREAK SPACE}", " ") for tick in ticks] == labels
    assert ticks[0].x == 0
