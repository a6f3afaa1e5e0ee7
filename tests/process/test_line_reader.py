"""Command lines are read whole, or not at all."""

import re
import subprocess
import sys
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cases.command_lines import REFUSED, UNDERSTOOD
from support.cases.examples import examples

from backburner.core.commands import MAX_LINE_CHARS, Join, LineStep, Redirection
from backburner.core.shown_call import describe_steps
from backburner.process.line_reader import MAX_STEPS, read_line

#: The words that say which operator stands before a step.
NAMED = {
    Join.THEN: "Then ",
    Join.IF_SUCCEEDED: "If the last step that ran succeeded: ",
    Join.IF_FAILED: "If the last step that ran failed: ",
    Join.PIPE: "With the output of step ",
    Join.PIPE_WITH_ERRORS: "With the output and the errors of step ",
}
BLANKS = r"[ \t\n]*"
WORDS_OF_REDIRECTIONS = {
    ">": "write ",
    ">|": "write ",
    ">>": "append ",
    "<": "read ",
    ">&": "send ",
    "&>": "write its output and its errors",
    "&>>": "append its output and its errors",
}
ALPHABET = [
    *r"a b curl cd export A=1 A= $X ${X} {X} $( ` ( ) { } [ ] * ~ # ! = \ ' é".split(),
    *"& && | || |& ; > >> < 2> 2>&1 10> &> << <<< <( 'p' /dev/null 1 2 . , -n time".split(),
    *("\n", "\t", " ", " ", " ", '"', '"x y"', "\\\n", "\\ ", "\u202e", "\x1b", "\u00a0"),
]


def check_that_all_is_shown(line: str) -> None:
    """Check that a line is nothing but what its steps show, and operators that their words name."""
    steps = read_line(line)
    pattern = ""
    for step, shown in zip(steps, describe_steps(steps), strict=True):
        if step.join is not Join.START:
            assert NAMED[step.join] in shown
        for words in filter(None, (step.assignments, step.words)):
            assert f"`{' '.join(words)}`" in shown
        for one in step.redirections:
            assert WORDS_OF_REDIRECTIONS[one.operator] in shown
            assert all(f"`{text}`" in shown for text in (one.descriptor, one.target) if text)
        operator = r"[;\n]" if step.join is Join.THEN else re.escape(step.join)
        pattern += BLANKS + operator
        for word in (*step.assignments, *step.words):
            pattern += BLANKS + re.escape(word)
        for one in step.redirections:
            texts = (one.descriptor + one.operator, one.target)
            pattern += "".join(BLANKS + re.escape(text) for text in texts)
    assert re.fullmatch(f"{pattern}{BLANKS};?{BLANKS}", line)


def as_bash_reads(line: str) -> str:
    """Return a line as bash prints it after parsing; it is not run."""
    script = 'eval "f() {\n$1\n}" && declare -f f'
    done = subprocess.run(
        ["/bin/bash", "--norc", "-c", script, "bash", line],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def written_anew(line: str) -> str:
    """Write a line from its steps, with redirections in front: so they are of that program."""
    text = ""
    for step in read_line(line):
        redirections = (f"{one.descriptor}{one.operator}{one.target}" for one in step.redirections)
        text += f" {step.join.value} {' '.join([*redirections, *step.assignments, *step.words])}"
    return text


@pytest.mark.parametrize("line", UNDERSTOOD)
def test_every_character_of_a_line_that_is_understood_is_shown_or_named(line: str) -> None:
    assert read_line(line)
    check_that_all_is_shown(line)


@pytest.mark.parametrize("line", UNDERSTOOD)
def test_bash_reads_the_same_steps(line: str) -> None:
    assert as_bash_reads(written_anew(line)) == as_bash_reads(line)


@pytest.mark.parametrize("line", REFUSED)
def test_a_line_of_which_anything_is_not_understood_has_no_steps(line: str) -> None:
    assert read_line(line) == ()


@examples(500)
@given(st.lists(st.sampled_from(ALPHABET), max_size=12).map("".join))
def test_whatever_is_understood_is_shown_whole(line: str) -> None:
    if read_line(line):
        check_that_all_is_shown(line)


def test_the_steps_of_a_line_are_its_programs_in_order() -> None:
    line = 'cd repo && A="x y" npm publish --tag $T 2>&1 | head -3 >> out.txt; ls || exit'

    assert read_line(line) == (
        LineStep(words=("cd", "repo")),
        LineStep(
            join=Join.IF_SUCCEEDED,
            assignments=('A="x y"',),
            words=("npm", "publish", "--tag", "$T"),
            redirections=(Redirection("2", ">&", "1"),),
        ),
        LineStep(
            join=Join.PIPE,
            words=("head", "-3"),
            redirections=(Redirection("", ">>", "out.txt"),),
        ),
        LineStep(join=Join.THEN, words=("ls",)),
        LineStep(join=Join.IF_FAILED, words=("exit",)),
    )


def test_a_new_line_ends_a_step_and_an_operator_continues_it() -> None:
    assert read_line("a\n\nb &&\n c\n") == (
        LineStep(words=("a",)),
        LineStep(join=Join.THEN, words=("b",)),
        LineStep(join=Join.IF_SUCCEEDED, words=("c",)),
    )


def test_a_line_has_a_bounded_number_of_steps() -> None:
    assert len(read_line(" | ".join(["a"] * MAX_STEPS))) == MAX_STEPS
    assert read_line(" | ".join(["a"] * (MAX_STEPS + 1))) == ()


def test_a_line_that_is_too_long_is_refused_and_not_parsed() -> None:
    read_line("a | b")
    before = process_time()

    assert read_line("a;" * 50_000) == ()
    assert process_time() - before < 0.01
    assert read_line(f"a | b {'c' * MAX_LINE_CHARS}") == ()


@pytest.mark.parametrize(
    "part", ["a && ", "$((", "$(", "[[ ", "<<A\n", "{", '"', "`", "a|", "A=(", "((a", "$[[", ">&"]
)
def test_a_line_of_any_kind_is_read_in_little_time(part: str) -> None:
    line = (part * MAX_LINE_CHARS)[:MAX_LINE_CHARS]
    before = process_time()

    read_line(line)

    assert process_time() - before < 1


def test_the_grammar_is_loaded_when_a_line_is_read_and_not_before() -> None:
    script = (
        "import sys; from backburner.app import build; from backburner.process import line_reader;"
        "print('tree_sitter' in sys.modules); line_reader.read_line('a|b');"
        "print('tree_sitter' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=Path.cwd()
    )

    assert done.stdout.split() == ["False", "True"]
