"""Every promised scenario has a test or is openly pending, and no test names an unknown one."""

import ast
import re
from functools import cache
from pathlib import Path

from support.requirements import ALL, PENDING

TESTS = Path(__file__).parent
DOCUMENT = TESTS.parent / "docs" / "reference" / "requirements.md"


@cache
def named_by_tests() -> set[str]:
    """Read the marks from the source, so that the answer does not depend on what was selected."""
    return {
        ast.literal_eval(argument)
        for path in TESTS.rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        for mark in node.decorator_list
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "requirement"
        for argument in mark.args
    }


def test_every_requirement_has_a_test_or_is_pending() -> None:
    missing = ALL - PENDING - named_by_tests()

    assert missing == set()


def test_nothing_pending_has_a_test_already() -> None:
    assert PENDING & named_by_tests() == set()


def test_no_test_names_an_unknown_requirement() -> None:
    assert named_by_tests() - ALL == set()


def test_the_document_lists_just_these_requirements() -> None:
    rows = (line.split("|") for line in DOCUMENT.read_text(encoding="utf-8").splitlines())
    cells = (row[1].strip(" `") for row in rows if len(row) > 3)
    listed = [cell for cell in cells if re.fullmatch(r"[ABCZ]-[a-z-]+", cell)]

    assert sorted(listed) == sorted(ALL)
