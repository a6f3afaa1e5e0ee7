"""Output for people."""

import pytest
from support.programs.cli_server import Ask, Call
from support.programs.terminals import terminal

from backburner.cli.output import _may_shrink, print_table, printable, shrink_columns

LONG = "Check the file notes.txt and tell me when it changes, please"


def test_outside_text_cannot_control_the_terminal() -> None:
    assert printable("a\x1b[2Jb\u202ec\n") == "a\\u001b[2Jb\\u202ec\n"


@pytest.mark.parametrize(
    ("widths", "columns", "shrunk"),
    [
        ([12, 16, 72], 120, [12, 16, 72]),
        ([12, 16, 72], 80, [12, 16, 48]),
        ([12, 60, 40], 80, [12, 32, 32]),
        # Ids, times and states are never cut, whatever happens to the line.
        ([12, 16, 19, 60], 40, [12, 16, 19, 8]),
        ([12, 16], 10, [12, 16]),
    ],
)
def test_only_wide_columns_shrink(widths: list[int], columns: int, shrunk: list[int]) -> None:
    assert shrink_columns(widths, columns) == shrunk


def test_names_are_never_cut() -> None:
    assert shrink_columns([40, 30, 60], 80, {0}) == [40, 18, 18]
    assert [_may_shrink(["TOOL", name]) for name in ("mail/" + "x" * 60, "Send a mail")] == [
        False,
        True,
    ]


def test_wide_and_combining_characters_keep_columns_aligned(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_table([{"A": "日本", "B": "x"}, {"A": "e\u0301", "B": "x"}], empty="")

    assert capsys.readouterr().out.splitlines() == ["A     B", "日本  x", "e\u0301     x"]


def test_a_table_fits_a_terminal_of_80_columns_and_is_whole_in_a_pipe(talk: Call, ask: Ask) -> None:
    ask("say", "--no-wait", LONG)
    ask("tasks", "add", LONG, LONG, "--when", "every weekday at 9")
    for command in ("conversations", "tasks", "agents"):
        with terminal(command) as shown:
            assert shown.end() == 0
        lines = shown.seen.splitlines()

        assert max(map(len, lines)) <= 80
        assert "..." in shown.seen
    assert any(LONG in line for line in talk("tasks").out)
