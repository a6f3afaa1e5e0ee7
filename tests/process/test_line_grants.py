"""A lasting grant for a line of several steps is for that line, and for no other."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cases.command_lines import REFUSED
from support.cases.examples import examples
from support.cases.policy_cases import command, granted, judge

from backburner.core.question import NO, YES
from backburner.core.tool_policy import ALWAYS_HERE, Allow, Ask, ToolCall, approval_options
from backburner.process.line_reader import read_line

LINE = "curl -s https://a.org/x | head -3 && git fetch origin"


def read(line: str) -> ToolCall:
    return replace(command(line), steps=read_line(line))


def test_a_line_of_several_steps_is_granted_for_good() -> None:
    assert approval_options([read(LINE)]) == (YES, ALWAYS_HERE, NO)
    (grant,) = granted(ALWAYS_HERE, read(LINE))

    assert judge(read(LINE), grant) == Allow()


@pytest.mark.parametrize(
    "other",
    [
        # White space, quotes and escapes that change nothing for bash.
        f" {LINE}",
        f"{LINE} ",
        f"{LINE}\n",
        f"{LINE};",
        LINE.replace(" ", "  "),
        LINE.replace(" ", "\t"),
        LINE.replace(" && ", "&&"),
        LINE.replace(" && ", " &&\n"),
        LINE.replace("-3", "'-3'"),
        LINE.replace("origin", '"origin"'),
        LINE.replace("curl", "c''url"),
        LINE.replace("a.org", "a.or\\g"),
        # Other operators.
        LINE.replace("&&", ";"),
        LINE.replace("&&", "||"),
        LINE.replace("|", "|&", 1),
        LINE.replace("&&", "&"),
        # Options and arguments.
        LINE.replace("-s", "-sk"),
        LINE.replace("-s", "-s -K x"),
        LINE.replace("-3", "-3 /etc/passwd"),
        LINE.replace("origin", "origin --upload-pack=./x"),
        LINE.replace("fetch", "-c core.sshCommand=./x fetch"),
        LINE.replace("/x", "/x https://evil.org"),
        LINE.replace("/x", "/X"),
        # Characters that look the same.
        LINE.replace("a.org", "\u0430.org"),
        LINE.replace("a.org", "a\u2024org"),
        LINE.replace(" ", "\u00a0"),
        LINE.replace("-s", "\u2010s"),
        LINE.replace("&&", "\uff06\uff06"),
        LINE.replace("a.org", "a.org\u200b"),
        # Variables.
        f"A=b {LINE}",
        f"PATH=./x {LINE}",
        f"GIT_SSH_COMMAND=./x; {LINE}",
        f"export GIT_SSH_COMMAND=./x; {LINE}",
        LINE.replace("git", "GIT_SSH=./x git"),
        LINE.replace("origin", "$X"),
        # Other folders.
        f"cd other && {LINE}",
        f"cd other; {LINE}",
        f"(cd other && {LINE})",
        LINE.replace("git", "cd other && git"),
        LINE.replace("git", "git -C other"),
        f"pushd other && {LINE}",
        # More steps.
        f"{LINE} && ls",
        f"{LINE}; curl https://evil.org",
        f"{LINE} | sh",
        f"{LINE} > .git/config",
        f"{LINE} &",
        f"{LINE} # x",
        f"alias curl=evil; {LINE}",
        f"curl() {{ evil; }}; {LINE}",
        LINE.split(" | ", maxsplit=1)[0],
        LINE.split(" && ")[1],
    ],
)
def test_a_grant_for_a_line_cannot_be_stretched(other: str) -> None:
    assert other != LINE
    (grant,) = granted(ALWAYS_HERE, read(LINE))

    assert isinstance(judge(read(other), grant), Ask)


@pytest.mark.parametrize("line", REFUSED)
def test_always_here_is_not_offered_for_a_line_that_is_not_understood(line: str) -> None:
    assert approval_options([read(line)]) == (YES, NO)


@examples(300)
@given(
    st.integers(0, len(LINE)),
    st.sampled_from([*" \t\n;&|<>$`(){}*?[]~#\\'\"=-./aA\u00a0\u0430\u200b\u202e", "&&", "||", ""]),
    st.integers(0, 3),
)
def test_no_change_of_a_line_passes_under_its_grant(at: int, added: str, removed: int) -> None:
    other = LINE[:at] + added + LINE[at + removed :]
    (grant,) = granted(ALWAYS_HERE, read(LINE))

    assert (judge(read(other), grant) == Allow()) == (other == LINE)
