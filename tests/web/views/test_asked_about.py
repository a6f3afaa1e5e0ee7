"""Answered questions in a line."""

import pytest
from support.stage import make

from backburner.core.question import Purpose
from backburner.web.views.asked_about import MAX_CHARS, name_question

MAIL = {
    "connection": "x_1",
    "server": "post",
    "tool": "send",
    "arguments": {"to": "bob@example.com"},
}
PUSH = {"server": "", "tool": "run_command", "arguments": {"command": "git push"}}


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        ({"prompt": "Which name?\nAny will do."}, "Which name?"),
        ({"prompt": "a\u202eb"}, r"a\u202eb"),
        ({"prompt": "a" * 1_000}, "a" * MAX_CHARS),
        (
            {"purpose": Purpose.APPROVAL, "binds_to": {"calls": [MAIL]}},
            'post/send { "to": "bob@example.com" }',
        ),
        (
            {"purpose": Purpose.APPROVAL, "binds_to": {"calls": [PUSH, PUSH]}},
            "$ git push, $ git push",
        ),
        ({"purpose": Purpose.APPROVAL}, "Shall I go on?"),
    ],
)
def test_a_question_is_named_by_its_calls_or_its_first_line(
    asked: dict[str, object], line: str
) -> None:
    assert name_question(make.question(**asked)) == line
