"""While you were away: what the two sentences say, where the bars are, and what came of it."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from support.stage.make import NOON, QUESTION

from backburner.actions.away import AwayLane, AwaySummary, LaneState
from backburner.core.allowance import Amount
from backburner.core.ids import ConversationId, RunId
from backburner.core.question import Purpose
from backburner.core.run import RunStatus
from backburner.core.work.timeline import AskedQuestion
from backburner.ports import ConversationRuns, RunBar, RunCounts, RunReport, SpendTotal
from backburner.web.display import Display
from backburner.web.rendering import render
from backburner.web.views.away import MAX_LANES, MIN_WIDTH, WIDTH, offer_away, show_away

HOUR = timedelta(hours=1)
SINCE = NOON - 14 * HOUR
DISPLAY = Display(NOON, "UTC")
HOSTILE = "<img src=x onerror=alert(1)>\u202e"


def bar(name: str, hours: float, minutes: float = 1, **changes: Any) -> RunBar:
    begin = SINCE + HOUR * hours
    made = RunBar(
        run_id=RunId(f"r_{name}"),
        conversation_id=ConversationId(f"c_{name}"),
        title=name,
        status=RunStatus.SUCCESS,
        started_at=begin,
        ended_at=begin + timedelta(minutes=minutes),
    )
    return replace(made, **changes)


def lane(name: str, state: LaneState, *bars: RunBar, asked: float | None = None) -> AwayLane:
    questions = [] if asked is None else [question(SINCE + HOUR * asked)]
    return AwayLane(
        conversation_id=ConversationId(f"c_{name}"),
        title=name,
        state=state,
        bars=bars,
        asked=questions,
    )


def question(at: datetime) -> AskedQuestion:
    return AskedQuestion(
        id=QUESTION,
        purpose=Purpose.QUESTION,
        prompt="Which?",
        asked_at=at,
        closed_at=None,
        answer=None,
    )


def ran(name: str, succeeded: int, failure: str | None = None) -> ConversationRuns:
    return ConversationRuns(
        conversation=ConversationId(f"c_{name}"),
        title=name,
        counts=RunCounts(succeeded=succeeded, failed=int(failure is not None)),
        last_at=NOON,
        failure=failure,
    )


def told(name: str, text: str) -> RunReport:
    return RunReport(conversation=ConversationId(f"c_{name}"), text=text, created_at=NOON)


def away(*lanes: AwayLane, **changes: Any) -> AwaySummary:
    made = AwaySummary(
        since=SINCE,
        until=NOON,
        totals=RunCounts(succeeded=sum(len(one.bars) for one in lanes)),
        conversations=[],
        questions=[],
        spent=SpendTotal(Amount(micros=1_120_000), is_all_priced=True),
        notices=[],
        reports=[],
        lanes=lanes,
        worked=timedelta(minutes=31),
        is_cut=False,
    )
    return replace(made, **changes)


def write(summary: AwaySummary, **values: Any) -> str:
    shown = {"cards": [], "period": "", "is_cut": summary.is_cut} | values
    return render("pages/away.html", DISPLAY, away=show_away(summary, DISPLAY), **shown)


def test_two_sentences_say_how_much_went_on_and_what_is_left() -> None:
    needs = [lane(name, LaneState.NEEDS_YOU, bar(name, 1), asked=2) for name in "ab"]
    broke = lane("c", LaneState.BROKE, bar("c", 3, status=RunStatus.FAILURE))
    done = lane("d", LaneState.DONE, bar("d", 4))

    assert show_away(away(*needs, broke, done), DISPLAY).lead == (
        "Since yesterday 22:00. Four conversations worked. Two ask you something and one broke."
    )
    assert show_away(away(done), DISPLAY).lead == (
        "Since yesterday 22:00. One conversation worked. All went well."
    )
    assert show_away(away(needs[0]), DISPLAY).lead.endswith("One asks you something.")


def test_seconds_in_which_nothing_began_or_ended_are_not_drawn() -> None:
    at_work = lane("a", LaneState.DONE, bar("a", 1, status=RunStatus.RUNNING))
    just_now = {"since": NOON - timedelta(seconds=9), "totals": RunCounts()}

    quiet = write(away(at_work, **just_now))
    ended = write(away(at_work, **just_now | {"totals": RunCounts(succeeded=1)}))
    longer = write(away(at_work, totals=RunCounts()))

    assert "One conversation worked." in quiet
    assert ("away-lanes" in quiet, "facts-row" in quiet) == (False, False)
    assert ("away-lanes" in ended, "away-lanes" in longer) == (True, True)


def test_an_empty_night_says_so_and_draws_nothing() -> None:
    html = write(away(worked=timedelta()))

    assert "Since yesterday 22:00. Nothing happened." in html
    assert "away-lanes" not in html
    assert "facts-row" not in html


def test_bars_and_dots_stand_at_their_times() -> None:
    shown = show_away(
        away(
            lane("a", LaneState.NEEDS_YOU, bar("a", 7, minutes=84), asked=7),
            lane("b", LaneState.BROKE, bar("b", 13.99, status=RunStatus.FAILURE)),
            lane("c", LaneState.DONE, bar("c", -2, minutes=180)),
            lane("d", LaneState.QUIET, bar("d", 13, ended_at=None, status=RunStatus.RUNNING)),
        ),
        DISPLAY,
    )

    first, short, before, running = (one.bars[0] for one in shown.lanes)
    assert (first.x, first.width, shown.lanes[0].dots) == (500, 100, [500])
    assert (short.width, short.tone) == (MIN_WIDTH, "failed")
    assert short.x + short.width <= WIDTH
    assert before.x == 0
    assert before.width == pytest.approx(WIDTH / 14, abs=0.1)
    assert running.x + running.width == pytest.approx(WIDTH, abs=0.1)
    assert shown.lanes[1].label == "b, one run, one failed"
    assert [tick.label for tick in shown.ticks] == ["22", "0", "2", "4", "6", "8", "10"]


@pytest.mark.parametrize(
    ("length", "labels"),
    [
        (timedelta(minutes=12), ["11:48", "11:50", "11:52", "11:54", "11:56", "11:58"]),
        (timedelta(days=7), ["10\N{NO-BREAK SPACE}Nov", "11\N{NO-BREAK SPACE}Nov"]),
    ],
)
def test_ticks_suit_the_period(length: timedelta, labels: list[str]) -> None:
    shown = show_away(away(lane("a", LaneState.DONE, bar("a", 1)), since=NOON - length), DISPLAY)

    assert [tick.label for tick in shown.ticks][: len(labels)] == labels
    assert 2 <= len(shown.ticks) <= 9


def test_what_broke_comes_before_what_is_done_and_quiet_ones_end_in_one_line() -> None:
    summary = away(
        lane("CI", LaneState.BROKE, bar("CI", 3, status=RunStatus.FAILURE)),
        lane("Flats", LaneState.DONE, bar("Flats", 4)),
        lane("Certificates", LaneState.QUIET, bar("Certificates", 5)),
        lane("Disk", LaneState.QUIET, bar("Disk", 5)),
        conversations=[ran("CI", 0, "No disk."), ran("Certificates", 14), ran("Disk", 2)],
        reports=[told("Flats", "**One** fits.")],
    )

    shown, html = show_away(summary, DISPLAY), write(summary)

    assert [(one.text, one.href) for one in shown.broke] == [("No disk.", "/r/r_CI")]
    assert [(one.text, one.href) for one in shown.done] == [("One fits.", "/c/c_Flats")]
    assert shown.quiet == "Certificates and Disk ran 16 times and had nothing to report."
    assert html.index("No disk.") < html.index("One fits.") < html.index(shown.quiet)


def test_many_quiet_conversations_are_counted() -> None:
    lanes = [lane(str(n), LaneState.QUIET, bar(str(n), 1)) for n in range(20)]
    summary = away(*lanes, conversations=[ran(str(n), 1) for n in range(20)])

    shown = show_away(summary, DISPLAY)

    assert (len(shown.lanes), shown.more_lanes) == (MAX_LANES, 20 - MAX_LANES)
    assert shown.quiet == "0, 1, 2 and 17 others ran 20 times and had nothing to report."


def test_only_the_summary_since_the_last_look_is_marked_as_seen() -> None:
    summary = away(lane("a", LaneState.DONE, bar("a", 1)))

    assert f'data-seen="{NOON.isoformat()}"' in write(summary)
    # It is not looked up anew from the moment at which it was marked.
    assert 'data-src="/page/away?since=2026-11-15T22%3A00%3A00%2B00%3A00"' in write(summary)
    assert "data-seen" not in write(summary, period="week")


def test_nothing_of_others_becomes_markup() -> None:
    summary = away(
        lane(HOSTILE, LaneState.BROKE, bar(HOSTILE, 1, status=RunStatus.FAILURE)),
        lane("b", LaneState.DONE, bar("b", 1)),
        conversations=[ran(HOSTILE, 0, HOSTILE)],
        reports=[told("b", HOSTILE)],
    )

    assert "<img" not in write(summary)


def test_a_line_offers_the_page_if_there_is_anything_to_see() -> None:
    broke = lane("c", LaneState.BROKE, bar("c", 3, status=RunStatus.FAILURE))
    offer = offer_away(away(broke, totals=RunCounts(succeeded=35, failed=1)), DISPLAY)

    assert offer is not None
    assert offer.text == "While you were away since yesterday 22:00: 36 runs, one broke."
    assert offer_away(away(), DISPLAY) is None
    html = render("pages/away_offer.html", DISPLAY, offer=offer)
    assert 'href="/away"' in html
    assert render("pages/away_offer.html", DISPLAY, offer=None).strip() == ""
