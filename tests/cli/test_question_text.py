"""How to answer a question, as the command line says it."""

from typing import Any

import pytest

from backburner.cli.live.question_text import how_to_answer


def question(*options: str) -> Any:
    return {"id": "q_abcdefgh", "purpose": "input", "options": options}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("try again", "skip"), "try again` (or skip)"),
        ((), "...`"),
        # Whoever copies the command runs nothing but that.
        (("yes; rm -r ~", "no"), "'yes; rm -r ~'` (or no)"),
        (("$(date)",), "'$(date)'`"),
        # One option with a comma is not two.
        (("yes", "no, never", "later"), 'yes` (or "no, never", later)'),
    ],
)
def test_a_question_names_the_command_that_answers_it(options: tuple[str, ...], said: str) -> None:
    told = how_to_answer(question(*options))

    assert told.startswith("answer with `")
    assert told.endswith(f" {said}")
