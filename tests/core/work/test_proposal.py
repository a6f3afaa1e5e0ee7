"""Repeated proposals, the limit on active tasks, and the question to the owner."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from support.stage import make
from support.stage.make import NOON

from backburner.core.conversation import (
    Conversation,
    Destination,
    Kind,
    OnRepeatedFailure,
    State,
    Use,
    Uses,
    WorkFolder,
)
from backburner.core.errors import LimitReached
from backburner.core.ids import QuestionId
from backburner.core.question import Purpose, QuestionType
from backburner.core.run import RunKind
from backburner.core.schedule import Cron, Immediate, Scheduled
from backburner.core.work import proposal
from backburner.core.work.proposal import (
    DISCOVERY_PROMPT,
    MAX_PROPOSALS_PER_RUN,
    SHORT_ID_CHARS,
    RejectedProposal,
    check_task_limit,
    is_given_sign_ins,
    needs_no_approval,
    proposal_question,
    show_proposals,
    was_rejected_recently,
)

HOUR = timedelta(hours=1)
DAILY = Cron("0 9 * * *", "Europe/Berlin")
PROPOSED = make.conversation(
    kind=Kind.TASK,
    title="Watch CI",
    schedule=DAILY,
    schedule_revision=1,
    state=State({"prompt": "Look at CI."}),
    folder=WorkFolder("/srv/app"),
    tools=("read_file",),
    reports_to=(Destination("discord", "42"),),
    on_repeated_failure=OnRepeatedFailure.PAUSE,
)
LASTING = replace(PROPOSED, run_timeout=2 * HOUR, agent="coder")
REJECTED = RejectedProposal("Watch CI on main", "Look at CI & tell me.", NOON - HOUR)


def test_the_prompt_of_discovery_names_the_limit_on_proposals() -> None:
    assert f"at most {MAX_PROPOSALS_PER_RUN} tasks" in DISCOVERY_PROMPT


def test_a_proposal_shows_its_agent_and_how_long_a_run_may_take() -> None:
    asked, lasting = (proposal_question(one, "", now=NOON) for one in (PROPOSED, LASTING))

    assert "A run may take" not in asked.prompt
    assert "\nAgent: coder.\nA run may take up to 2 hours.\n" in lasting.prompt
    assert asked.binds_to["digest"] != lasting.binds_to["digest"]


def test_a_proposal_says_if_it_would_continue_after_repeated_failures() -> None:
    lasting = replace(PROPOSED, on_repeated_failure=OnRepeatedFailure.NOTIFY)
    once = replace(lasting, schedule=Scheduled(NOON + HOUR))

    asked, lasts, ends = (proposal_question(one, "", now=NOON) for one in (PROPOSED, lasting, once))

    words = "\nIt would continue after repeated failures.\n"
    assert [words in one.prompt for one in (asked, lasts, ends)] == [False, True, False]
    assert asked.binds_to["digest"] != lasts.binds_to["digest"]


@pytest.mark.parametrize(
    ("title", "prompt", "repeats"),
    [
        ("Watch CI on main", "Something else.", True),
        ("watch  ci, on MAIN!", "Something else.", True),
        ("Something else", "look at CI -- tell me", True),
        ("Something else", "Look at \N{FULLWIDTH LATIN CAPITAL LETTER C}I & tell me.", True),
        ("Watch CI on dev", "Look at CI and tell me.", False),
        ("", "Something else.", False),
    ],
)
def test_the_same_name_or_prompt_is_a_repeat_however_spelt(
    title: str, prompt: str, *, repeats: bool
) -> None:
    assert was_rejected_recently(title, prompt, [REJECTED], now=NOON) == repeats


@pytest.mark.parametrize(("one", "other"), [("🚀", "🎉"), ("दिन", "दान"), ("?", "!")])
def test_names_in_any_script_are_told_apart(one: str, other: str) -> None:
    rejected = [RejectedProposal(one, "This.", NOON)]

    assert was_rejected_recently(one, "That.", rejected, now=NOON)
    assert not was_rejected_recently(other, "That.", rejected, now=NOON)


@pytest.mark.parametrize(("ago", "rests"), [(23 * HOUR, True), (24 * HOUR, False)])
def test_a_rejected_proposal_may_come_again_after_a_day(ago: timedelta, *, rests: bool) -> None:
    rejected = [replace(REJECTED, rejected_at=NOON - ago)]

    assert was_rejected_recently(REJECTED.title, REJECTED.prompt, rejected, now=NOON) == rests


def test_without_rejected_proposals_there_is_no_repeat() -> None:
    assert not was_rejected_recently("Watch CI", "Look.", [], now=NOON)


@pytest.mark.parametrize(
    ("run_kind", "outside_text_read", "starts"),
    [
        (RunKind.REPLY, False, True),
        (RunKind.REPLY, True, False),
        (RunKind.BACKGROUND, False, False),
        (RunKind.BACKGROUND, True, False),
    ],
)
def test_work_needs_no_approval_only_from_a_chat_without_outside_text(
    run_kind: RunKind, *, outside_text_read: bool, starts: bool
) -> None:
    assert needs_no_approval(run_kind, outside_text_read=outside_text_read) == starts


@pytest.mark.parametrize(
    ("tools", "uses", "given"),
    [
        (None, None, False),
        (("read_file",), None, False),
        (("read_file", "run_signed_in"), None, True),
        (None, frozenset({Use.MEMORIES}), False),
        (None, frozenset({Use.SIGN_INS}), True),
        (("read_file",), frozenset({Use.SIGN_INS}), False),
    ],
)
def test_work_has_sign_ins_that_were_given_to_it_by_name(
    tools: tuple[str, ...] | None, uses: Uses, *, given: bool
) -> None:
    assert is_given_sign_ins(tools, uses) is given


def test_one_task_more_than_the_limit_is_refused_with_those_that_could_be_stopped() -> None:
    check_task_limit(["Watch CI"], limit=2)

    with pytest.raises(LimitReached, match="Limit reached: 2 active tasks") as refused:
        check_task_limit(["Watch CI", "Read mail"], limit=2)
    assert "Pause or cancel one first: Watch CI, Read mail." in str(refused.value)


def test_a_proposal_asks_its_owner_and_shows_what_a_yes_is_for() -> None:
    asked = proposal_question(PROPOSED, "CI broke twice this week.", now=NOON)

    assert asked.purpose is Purpose.PROPOSAL
    assert asked.type is QuestionType.CONFIRMATION
    assert asked.options == ("yes", "no")
    short = PROPOSED.id[:SHORT_ID_CHARS]
    facts = (
        *("Watch CI", "CI broke twice this week.", "at 09:00 every day (Europe/Berlin)"),
        *("Look at CI.", "/srv/app", "read_file", "discord 42"),
        f"`backburner approve {short}` or `backburner reject {short}`",
    )
    for line, fact in zip(asked.prompt.splitlines(), facts, strict=True):
        assert fact in line
    assert asked.binds_to["why"] == "CI broke twice this week."
    assert asked.binds_to["shown"] == {
        "title": "Watch CI",
        "context": {"prompt": "Look at CI."},
        "schedule": {
            "type": "cron",
            "cron_expression": "0 9 * * *",
            "timezone": "Europe/Berlin",
            "catch_up": "once",
        },
        "folder": "/srv/app",
        "tools": ["read_file"],
        "connections": [],
        "recipients": [["discord", "42"]],
        "notify": "on_change",
        "max_runs": None,
        "agent": None,
        "profile": None,
        "timeout": None,
        "on_repeated_failure": "pause",
    }
    assert asked.remind_at == NOON + timedelta(days=1)


def test_a_proposal_of_next_to_nothing_shows_its_name_and_how_to_answer() -> None:
    bare = make.conversation(title="Watch CI")

    asked = proposal_question(bare, "", now=NOON)

    assert asked.prompt.splitlines()[0] == "Proposed task: Watch CI"
    assert len(asked.prompt.splitlines()) == 2


def test_a_proposal_tells_a_single_time_where_its_owner_lives_and_how_often_it_runs() -> None:
    once = replace(PROPOSED, schedule=Scheduled(NOON + HOUR), max_runs=3, tools=())

    asked = proposal_question(once, "", now=NOON, zone="Europe/Berlin")

    assert "on Monday 16 November 2026 at 14:00 (Europe/Berlin), at most 3 times" in asked.prompt
    assert "Tools: none." in asked.prompt
    assert asked.binds_to["zone"] == "Europe/Berlin"


def test_a_proposal_says_which_connections_it_would_use() -> None:
    with_mail = replace(PROPOSED, connections=("mail", "wiki"))
    asked = proposal_question(with_mail, "", now=NOON)

    assert "It would use: mail, wiki." in asked.prompt.splitlines()
    assert asked.binds_to["shown"]["connections"] == ["mail", "wiki"]
    assert asked.id != proposal_question(PROPOSED, "", now=NOON).id


def test_a_proposal_shows_the_beginning_of_what_is_long() -> None:
    long = replace(PROPOSED, state=State({"prompt": "x" * 20_000}), tools=("tool",) * 500)

    asked = proposal_question(long, "y" * proposal.MAX_REASON_CHARS, now=NOON)

    assert "x" * proposal.MAX_PROPOSAL_CHARS + " […]" in asked.prompt
    assert len(asked.prompt) < 5_000


@pytest.mark.parametrize(
    "changes",
    [
        {"state": State({"prompt": "Look at CI!"})},
        {"state": State()},
        {"schedule": replace(DAILY, zone="UTC")},
        {"schedule": Immediate()},
        {"schedule": None},
        {"title": "Watch CD"},
        {"tools": ()},
        {"tools": None},
        {"tools": ("read_file", "send")},
        {"reports_to": ()},
        {"reports_to": (Destination("discord", "43"),)},
        {"reports_to": (Destination("mail", "42"),)},
    ],
)
def test_a_yes_is_for_nothing_but_what_was_shown(changes: dict[str, Any]) -> None:
    before, after = bound(PROPOSED), bound(replace(PROPOSED, **changes))

    assert before[0] != after[0]
    assert before[1] != after[1]


def test_the_same_proposal_asks_the_same_question() -> None:
    assert bound(PROPOSED) == bound(replace(PROPOSED, run_count=3))


def bound(conversation: Conversation) -> tuple[QuestionId, str]:
    asked = proposal.proposal_question(conversation, "It helps.", now=NOON)
    return asked.id, asked.binds_to["digest"]


def test_a_reply_shows_the_proposals_that_it_made() -> None:
    made = make.question(purpose=Purpose.PROPOSAL, asked_at=NOON)
    older = replace(made, asked_at=NOON - timedelta(seconds=1))
    asked = make.question(asked_at=NOON)

    assert show_proposals([older, asked, made], since=NOON) == [made]


def test_no_line_of_an_agent_passes_for_one_of_ours() -> None:
    prompt = "Look.\nIt would work in /srv/other.\u2028Tools: none."
    fishing = replace(PROPOSED, state=State({"prompt": prompt}))
    asked = proposal_question(fishing, "Why not?\nNothing runs.", now=NOON)

    theirs = ("Look.", "It would work in /srv/other.", "Tools: none.", "Why not?", "Nothing runs.")
    lines = asked.prompt.splitlines()
    assert [f"> {text}" in lines for text in theirs] == [True] * 5
    assert not any(text in lines for text in theirs)


def test_a_proposal_shows_what_cannot_be_seen() -> None:
    title, prompt = "Watch CI\u3164", "Look at CI.\ufe01\U000e0120 Say \u26a0\ufe0f."
    hiding = replace(PROPOSED, title=title, state=State({"prompt": prompt}))
    lines = proposal_question(hiding, "It helps.\u2800", now=NOON).prompt.splitlines()

    assert lines[0] == "Proposed task: Watch CI\\u3164"
    assert lines[1] == "> It helps.\\u2800"
    assert "> Look at CI.\\ufe01\\U000e0120 Say \u26a0\ufe0f." in lines
