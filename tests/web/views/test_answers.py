"""The buttons of a question."""

import pytest
from support.stage import make
from support.stage.make import CONVERSATION

from backburner.core.question import Purpose, QuestionType
from backburner.web.rendering import load_words
from backburner.web.views.question import list_answers

NAMES = ("miso", "pixel", "olive")


@pytest.mark.parametrize(
    ("asked", "mains"),
    [
        ({}, ["Yes"]),
        # Dark, one of several names would look as if it were chosen already.
        ({"type": QuestionType.CHOICE, "options": NAMES}, []),
        ({"purpose": Purpose.APPROVAL, "options": ("yes", "always here", "no")}, ["Allow once"]),
    ],
)
def test_the_main_answer_lets_work_go_on_and_is_none_of_several_choices(
    asked: dict[str, object], mains: list[str]
) -> None:
    answers = list_answers(make.question(**asked), load_words().question, CONVERSATION)

    assert [one.label for one in answers if one.is_main] == mains
