"""The page of a run: its facts, what to do about a failure, and calls that are opened."""

from typing import Any

import pytest
from markupsafe import escape
from support.stage import make
from support.stage.made_up_runs import at, display, ended_run, paid, run_page, tool_call
from support.stage.make import QUESTION

from backburner.actions.work.run_pages import RunPage
from backburner.core.allowance import Allowance, AllowanceScope, AllowanceState, Amount
from backburner.core.conversation import State, Status
from backburner.core.question import Purpose
from backburner.core.run import FailureKind, RunKind, RunStatus, StartedBy
from backburner.core.work.run_facts import CauseKind, RunCause
from backburner.core.work.timeline import AskedQuestion
from backburner.ports import RunCost
from backburner.web.markdown import RenderedMessages
from backburner.web.rendering import render
from backburner.web.views.runs.call import MAX_CHARS, show_details
from backburner.web.views.runs.page import MAX_TOLD, ShownRun, show_run

HOSTILE = "<img src=x onerror=alert(1)> \u202egnp.exe\u200b"
OPEN = AskedQuestion(
    id=QUESTION,
    purpose=Purpose.APPROVAL,
    prompt="May I?",
    asked_at=at(60),
    closed_at=None,
    answer=None,
)


def show(page: RunPage) -> ShownRun:
    return show_run(page, display(), RenderedMessages())


def write(page: RunPage) -> str:
    shown = show(page)
    return render("pages/run.html", display(), run=shown)


def failed(why: FailureKind, **changes: Any) -> RunPage:
    return run_page(run=ended_run(9, RunStatus.FAILURE, failure=make.failure(why), **changes))


def buttons(page: RunPage) -> list[str]:
    return [one.label for one in show(page).next_steps]


def test_a_run_says_when_it_was_how_it_went_and_what_it_cost() -> None:
    run = ended_run(108, result="Main is **green**.")
    allowance = AllowanceState(Allowance(AllowanceScope.RUN, micros=100_000), Amount())
    spent = Amount(micros=61_000, tokens=26_490)
    cost = RunCost(spent, output=2_180, cached=0, calls=2, is_all_priced=True)
    causes = [RunCause(kind=CauseKind.SCHEDULE, slot_at=at(0))]
    page = run_page(run=run, cost=cost, allowances=[allowance], causes=causes)

    shown = show(page)

    assert (shown.moment, shown.ending, shown.tone) == (
        "Monday 16 November, 13:00",
        "Went well",
        "ok",
    )
    assert "<strong>green</strong>" in shown.html
    facts = {
        fact.name: f"{fact.value} {fact.more}".strip().replace("\N{NO-BREAK SPACE}", " ")
        for fact in shown.facts
    }
    assert facts == {
        "Started by": "Its schedule",
        "Took": "1 min 48 s",
        "Cost": "$0.061 of $0.10",
        "Tokens": "24,310 in, 2,180 out",
        "Model": "claude-sonnet",
    }
    assert shown.tries == []


def test_a_cost_without_known_prices_is_not_said_to_be_nothing() -> None:
    cost = RunCost(Amount(0, 500), output=None, cached=None, calls=1, is_all_priced=False)
    some = RunCost(Amount(9_000, 500), output=None, cached=None, calls=2, is_all_priced=False)

    values = [
        next(fact.value for fact in show(run_page(cost=one)).facts if fact.name == "Cost")
        for one in (cost, some)
    ]

    assert values == ["no price known", "at least $0.009"]


@pytest.mark.parametrize(
    ("kind", "labels"),
    [
        (FailureKind.TIMEOUT, ["Run now"]),
        (FailureKind.SIGNED_OUT, ["Reconnect", "Run now"]),
        (FailureKind.ACCESS_DENIED, ["Open settings", "Run now"]),
    ],
)
def test_after_a_failure_there_is_what_to_do_and_a_button_for_it(
    kind: FailureKind, labels: list[str]
) -> None:
    page = failed(kind)

    assert buttons(page) == labels
    assert [one.is_main for one in show(page).next_steps] == [True] + [False] * (len(labels) - 1)
    assert str(escape(page.outcome.what_to_do or "")) in write(page)


def test_there_are_buttons_only_for_what_can_be_done() -> None:
    reply = failed(FailureKind.MODEL, kind=RunKind.REPLY)
    tried_again = run_page(
        run=ended_run(9, RunStatus.FAILURE, failure=make.failure()), next_try=ended_run(20)
    )
    archived = make.conversation(status=Status.ARCHIVED)

    assert buttons(reply) == ["Try again in the chat"]
    assert buttons(tried_again) == []
    assert buttons(run_page(conversation=archived)) == []
    assert buttons(run_page(run=make.run())) == ["Stop this run", "Stop for good"]
    assert buttons(run_page(run=make.run(kind=RunKind.REPLY))) == ["Stop"]


def test_what_was_said_is_shown_rather_than_what_is_compared() -> None:
    run = ended_run(9, result="3")

    assert show(run_page(run=run, report="Time to **drink**.")).html.striptags() == "Time to drink."
    assert show(run_page(run=run)).html.striptags() == "3"


def test_a_run_at_its_time_that_was_asked_for_is_named_as_in_lists() -> None:
    causes = [
        RunCause(kind=CauseKind.SCHEDULE, slot_at=at(0)),
        RunCause(kind=CauseKind.RUN_NOW),
    ]
    asked = run_page(run=ended_run(9, started_by=StartedBy.RUN_NOW), causes=causes)
    due = run_page(run=ended_run(9, started_by=StartedBy.SCHEDULE), causes=causes)

    assert [show(page).facts[0].value for page in (asked, due)] == [
        "You, with Run now",
        "Its schedule",
    ]


def test_what_it_was_told_begins_with_the_words_of_its_user() -> None:
    work = '{"description":"","prompt":"Look at CI. ' + "x" * MAX_TOLD + '"}'
    prompt = f"# Memories\n- tone: short\n\n# Your work\n{work}\n\n# Progress\nNot started yet."
    message = RunCause(kind=CauseKind.MESSAGE, text="Is it green?")
    reply = make.run(kind=RunKind.REPLY)
    here = make.conversation(state=State(context={"prompt": "Look at it."}))
    told = {
        "ended": show(run_page(prompts=[prompt])),
        "working": show(run_page(run=make.run(), conversation=here, prompts=[])),
        "reply": show(run_page(run=reply, causes=[message], prompts=[])),
        "other": show(run_page(prompts=["# Your work\n{cut off"])),
    }

    assert told["ended"].told_first.startswith("Look at CI. xxx")
    assert told["ended"].told_first.endswith("x…")
    assert "# Progress\nNot started yet." in told["ended"].told[0].html
    assert told["working"].told_first == "Look at it."
    assert told["reply"].told_first == "Is it green?"
    assert told["other"].told_first == "# Your work {cut off"
    html = write(run_page(run=make.run(), conversation=here, prompts=[]))
    assert "All of it stands here once the run has ended." in html


def test_a_run_that_waits_for_its_user_leads_to_the_question() -> None:
    page = run_page(run=make.run(status=RunStatus.QUEUED), parts=[(0, 60)], asked=[OPEN])

    shown = show(page)

    assert (shown.sign, shown.tone, shown.ending) == ("needs", "ember", "Waits")
    assert [(one.label, one.href) for one in shown.next_steps] == [("Answer", f"/q/{QUESTION}")]


def test_tries_lead_to_each_other() -> None:
    first = ended_run(5, RunStatus.FAILURE, failure=make.failure())
    third = ended_run(50, RunStatus.FAILURE, failure=make.failure())
    page = run_page(tries=[first], run=ended_run(9), next_try=third)
    page_of = run_page(
        run=make.run(id="r_second", status=RunStatus.SUCCESS, ended_at=at(9)),
        tries=[make.run(id="r_first", status=RunStatus.FAILURE)],
        next_try=make.run(id="r_third"),
    )

    assert [one.id for one in show(page_of).tries] == ["r_first", "", "r_third"]
    assert 'href="/r/r_first"' in write(page_of)
    assert len(show(page).tries) == 3


def test_nothing_of_others_becomes_markup_or_reorders_what_is_beside_it() -> None:
    call = tool_call(1, 1, 2, HOSTILE, server=HOSTILE, arguments={"path": HOSTILE}, result=HOSTILE)
    page = run_page(
        run=ended_run(9, result=HOSTILE),
        title=HOSTILE,
        calls=[call],
        prompts=[HOSTILE * 40],
        causes=[RunCause(kind=CauseKind.MESSAGE, text=HOSTILE)],
        model_calls=[paid(1)],
    )

    html = write(page)
    details = render(
        "pages/call.html", display(), call=show_details(call), run_id="r_1", in_row=False
    )

    assert "<img" not in html + details
    assert "U+202E" in details
    assert "\u202e" not in details
    # What was told is shown with its hidden characters.
    assert html.count("U+202E") >= 40


def test_a_large_result_is_cut_and_shown_whole_on_request() -> None:
    call = tool_call(1, 1, 2, result="x" * 100_000, arguments={"command": "y" * 90_000})

    cut, whole = show_details(call), show_details(call, whole=True)

    assert len(cut.gave) == MAX_CHARS
    assert cut.cut.startswith("20,000 of 190,0")
    assert (len(whole.gave), whole.cut) == (100_000, "")
    assert "y" * 90_000 in whole.asked.html
    assert "?whole=true" in render(
        "pages/call.html", display(), call=cut, run_id="r_1", in_row=False
    )


def test_json_in_one_line_is_written_over_several() -> None:
    assert show_details(tool_call(1, 1, 2, result='{"a":[1]}')).gave.count("\n") == 4
    for odd in ("{not json", "[" * 100_000, "", "[1]\n[2]"):
        assert show_details(tool_call(1, 1, 2, result=odd), whole=True).gave == odd


def test_a_call_whose_effect_is_not_known_says_so() -> None:
    details = show_details(tool_call(1, 1, 2, state="unknown"))

    html = render("pages/call.html", display(), call=details, run_id="r_1", in_row=False)

    assert "It is not known whether this took effect." in html
    assert "No result yet." in html


def test_a_running_page_looks_again_and_an_ended_one_does_not() -> None:
    assert 'data-every="2"' in write(run_page(run=make.run(), calls=[tool_call(1, 1, None)]))
    assert "data-every" not in write(run_page())
