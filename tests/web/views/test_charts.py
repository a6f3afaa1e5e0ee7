"""Charts: bars of runs and days, their headlines, limits and sentences."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from support.stage.made_up_runs import display, ended_run
from support.stage.make import CONVERSATION, NOON

from backburner.actions.accounts.profile import SpendStatement, last_days
from backburner.core.allowance import Allowance, AllowanceScope, AllowanceState, Amount
from backburner.core.conversation import Kind
from backburner.core.run import RunStatus
from backburner.core.work.run_facts import RunMeasure
from backburner.ports import ConversationSpending
from backburner.web.rendering import render
from backburner.web.views.charts import (
    MAX_BARS,
    MIN_PART,
    Chart,
    ChartTexts,
    Measured,
    Tone,
    Unit,
    draw,
)
from backburner.web.views.run_charts import draw_runs
from backburner.web.views.spending import show_spending

NO_TEXTS = ChartTexts(sentence="")
DAYS = last_days(NOON, "UTC")


def plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


def measure(seconds: float, *, micros: int = 0, tokens: int = 0, failed: bool = False) -> Any:
    run = ended_run(seconds, RunStatus.FAILURE if failed else RunStatus.SUCCESS)
    return RunMeasure(run, timedelta(seconds=seconds), micros, tokens)


def write(chart: Chart) -> str:
    statement = replace(show_spending(spent(), DAYS, display()), chart=chart)
    return render("pages/spending.html", display(), spending=statement)


def spent(*days: tuple[int, Amount], limit: Allowance | None = None, **changes: Any) -> Any:
    total = Amount(sum(one.micros for _, one in days), sum(one.tokens for _, one in days))
    made = SpendStatement(
        zone="UTC",
        root=None,
        total=total if days else Amount(1, 1),
        today=dict(days).get(0, Amount()),
        conversation=None,
        allowances=[] if limit is None else [AllowanceState(limit, Amount())],
        own=[],
        ceilings=[],
        days=[(DAYS[back], amount) for back, amount in days],
        top=[],
    )
    return replace(made, **changes)


@pytest.mark.parametrize("number", [1, 2, 20])
def test_runs_are_drawn_from_one_to_twenty_with_those_that_failed(number: int) -> None:
    runs = [measure(10 + n, micros=1000 * n, failed=n == 0 and number > 1) for n in range(number)]

    charts = list(draw_runs(runs, display()))

    took = charts[0]
    assert (len(took.bars), took.places) == (number, 20)
    assert took.bars[-1].tone == "now"
    assert took.bars[-1].part == max(bar.part for bar in took.bars)
    assert took.texts.sentence.startswith(f"Time per run, last {number}: median ")
    assert took.texts.sentence.endswith("one failed") == (number > 1)
    assert (took.bars[0].tone == "bad") == (number > 1)
    html = write(took)
    assert html.count("<rect") == html.count('class="hit"') == number
    assert html.count('<th scope="row">') == number
    assert f'aria-label="{took.texts.sentence}"' in html
    assert "style=" not in html


def test_cost_and_tokens_are_drawn_where_they_are_known() -> None:
    priced = list(draw_runs([measure(1, micros=5, tokens=7)], display()))
    unpriced = list(draw_runs([measure(1, tokens=7)], display()))

    assert priced[1].texts.sentence == "Cost per run, last 1: median under $0.001"
    assert [one.texts.title for one in priced[1:]] == ["Cost per run", "Tokens per run"]
    assert [one.texts.headline for one in unpriced[1:]] == ["7"]
    assert len(list(draw_runs([measure(1)], display()))) == 1
    assert list(draw_runs([], display())) == []


def test_a_limit_is_a_line_if_it_is_near_and_words_if_it_is_not() -> None:
    measured = [Measured("today", 10, "10"), Measured("now", 0, "0"), Measured("now", 0.01, "0")]

    above, below, far, none = (
        draw(measured, Unit.TOKENS, NO_TEXTS, limit=limit) for limit in (20, 5, 500, None)
    )

    assert (above.limit, above.bars[0].part, above.top) == (100, 50, "20")
    assert (below.limit, below.top) == (50, "10")
    assert (far.limit, none.limit) == (None, None)
    assert [bar.part for bar in far.bars] == [100, 0, MIN_PART]


@pytest.mark.parametrize(
    ("unit", "highest", "top"),
    [
        (Unit.SECONDS, 0.02, "0.1 s"),
        (Unit.SECONDS, 42, "1 min"),
        (Unit.SECONDS, 61, "2 min"),
        (Unit.SECONDS, 8_000, "3 h"),
        (Unit.SECONDS, 3_000_000, "40 days"),
        (Unit.MICROS, 1, "$0.001"),
        (Unit.MICROS, 62_000, "$0.08"),
        (Unit.MICROS, 1_010_000_000_000, "$1.5M"),
        (Unit.TOKENS, 1, "1"),
        (Unit.TOKENS, 4_130, "5k"),
        (Unit.TOKENS, 10**15, "1,000,000B"),
    ],
)
def test_the_scale_ends_at_a_round_number_above_all_bars(
    unit: Unit, highest: float, top: str
) -> None:
    drawn = draw([Measured("now", highest, "")], unit, NO_TEXTS)

    assert plain(drawn.top) == top
    assert MIN_PART <= drawn.bars[0].part <= 100


@pytest.mark.parametrize("number", [0, 1, 2, 30, 400])
def test_charts_of_no_point_and_of_hundreds_can_be_seen_and_read(number: int) -> None:
    measured = [Measured(f"day {at}", at, str(at)) for at in range(number)]
    measured[17:18] = [Measured("day 17", 17, "17", Tone.BAD)] if number > 17 else measured[17:18]

    drawn = draw(measured, Unit.TOKENS, ChartTexts(sentence="What it is."), places=20)
    html = write(drawn)

    assert len(drawn.bars) == (min(number, MAX_BARS) if number < 400 else 58)
    assert html.count('<th scope="row">') == html.count('class="hit"') == len(drawn.bars)
    assert ("Nothing to draw yet." in html) == (number == 0)
    assert ("Each bar is the highest of 7." in html) == (number == 400)
    assert [bar.tone for bar in drawn.bars].count("bad") == (number > 17)
    if number == 400:
        assert (drawn.bars[0].label, drawn.bars[0].value) == ("day 0 to day 6", "6")


def test_spending_is_shown_for_thirty_days_against_what_may_be_spent() -> None:
    limit = Allowance(AllowanceScope.DAY, micros=2_000_000)
    days = (0, Amount(500_000, 10)), (3, Amount(2_000_000, 10))
    spender = ConversationSpending(CONVERSATION, "<b>CI</b>", Kind.TASK, Amount(900_000, 5))

    shown = show_spending(spent(*days, limit=limit, top=[spender]), DAYS, display())
    html = render("pages/spending.html", display(), spending=shown)

    assert shown.lead == "You have spent $0.50 of $2.00 today."
    assert shown.chart.texts.sentence == (
        "Spending per day, last 30 days: $2.50, at most $2.00 a day, one day at the limit"
    )
    assert [bar.tone for bar in shown.chart.bars][-4:] == ["bad", "", "", "now"]
    assert shown.chart.limit == 100
    assert "<line" in html
    assert "&lt;b&gt;CI&lt;/b&gt;" in html
    assert f'href="/c/{CONVERSATION}"' in html


def test_spending_without_prices_or_limits_says_so() -> None:
    limit = Allowance(AllowanceScope.DAY, micros=2_000_000)
    unpriced = show_spending(spent((0, Amount(0, 4_000)), limit=limit), DAYS, display())
    unlimited = show_spending(spent((0, Amount(10_000, 4_000))), DAYS, display())
    nothing = show_spending(spent(total=Amount()), DAYS, display())

    assert unpriced.lead.startswith("You have used 4k tokens today. Their price is not known")
    assert unlimited.lead == "You have spent $0.010 today. There is no limit for a day."
    assert not nothing.has_spent
    assert "Nothing was spent yet." in render("pages/spending.html", display(), spending=nothing)
