"""Work is found by the name a user gives it."""

import pytest
from support.stage import make

from backburner.core.conversation import Conversation, State, Status
from backburner.core.ids import ConversationId
from backburner.core.schedule import Immediate
from backburner.core.work.lookup import find_named, is_open, means_all


def work(name: str, prompt: str, title: str = "") -> Conversation:
    return make.conversation(
        id=ConversationId(name), title=title, state=State(context={"prompt": prompt})
    )


OWN = work("c_own", "Watch the build.", "Hello there!")
TEA = work("c_tea", "Remind me to drink tea.", "Tea")
GREEN = work("c_green", "Remind me to drink green tea.", "Green tea")


def named(called: str, *, own: Conversation | None = OWN) -> list[str]:
    return [found.id for found in find_named(called, own, [TEA, GREEN])]


@pytest.mark.parametrize(
    ("called", "found"),
    [
        ("", ["c_own", "c_tea", "c_green"]),
        (" All. ", ["c_own", "c_tea", "c_green"]),
        ("everything", ["c_own", "c_tea", "c_green"]),
        ("this", ["c_own"]),
        ("IT!", ["c_own"]),
        (" c_green ", ["c_green"]),
        ("tea", ["c_tea"]),
        ("“Green  Tea”", ["c_green"]),
        ("watch the build", ["c_own"]),
        ("hello there", ["c_own"]),
        ("remind me", ["c_tea", "c_green"]),
        ("coffee", []),
    ],
)
def test_a_name_means_the_work_that_matches_best(called: str, found: list[str]) -> None:
    assert named(called) == found


def test_a_name_is_found_however_its_accents_are_written() -> None:
    for title, called in (("Caf\u00e9", "cafe\u0301"), ("Cafe\u0301", "caf\u00e9")):
        work = make.conversation(schedule=Immediate(), title=title)
        assert find_named(called, None, [work]) == [work]


def test_without_own_work_this_is_an_ordinary_name() -> None:
    assert named("this", own=None) == []
    assert named("", own=None) == ["c_tea", "c_green"]


def test_the_word_all_means_all_work() -> None:
    assert means_all("All of them.")
    assert not means_all("")
    assert not means_all("all tea")


def test_work_with_a_schedule_or_a_question_is_open() -> None:
    assert is_open(make.conversation(schedule=Immediate()))
    assert is_open(make.conversation(status=Status.WAITING_INPUT))
    assert not is_open(make.conversation())
