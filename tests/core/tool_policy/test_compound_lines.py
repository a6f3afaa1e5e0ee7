"""Lasting grants for lines of several steps: each has to be one that could be granted alone."""

from dataclasses import replace

import pytest
from support.cases.policy_cases import RUN_COMMAND, SEND, command, granted, judge

from backburner.core.commands import Cage, Join, LineStep, Redirection
from backburner.core.question import NO, YES
from backburner.core.tool_policy import (
    ALWAYS_HERE,
    Allow,
    Ask,
    ToolCall,
    approval_options,
    call_digest,
    line_to_read,
)


def step(text: str, join: Join = Join.START) -> LineStep:
    return LineStep(join=join, words=tuple(text.split()))


def line(*steps: LineStep) -> ToolCall:
    text = " ".join(f"{one.join} {' '.join(one.words)}".strip() for one in steps)
    return replace(command(text), steps=steps)


FETCH = step("curl -s https://a.org")


@pytest.mark.parametrize(
    "call",
    [
        line(FETCH, step("curl https://b.org", Join.IF_SUCCEEDED)),
        line(FETCH, step("git fetch", Join.IF_FAILED), step("gh pr list", Join.THEN)),
        line(FETCH, step("npm view left-pad", Join.THEN)),
        line(FETCH, step("head -3", Join.PIPE)),
        line(FETCH, step("jq -r .a.b", Join.PIPE), step("wc -l", Join.PIPE_WITH_ERRORS)),
        line(FETCH, step("grep -i -v error", Join.PIPE), step("sort -u", Join.PIPE)),
        line(FETCH, step("tail -n +2", Join.PIPE), step("uniq -c", Join.PIPE)),
        line(FETCH, step("cat", Join.PIPE), step("head -c 100", Join.PIPE)),
    ],
)
def test_a_line_whose_steps_could_be_granted_alone_is_granted_as_it_is(call: ToolCall) -> None:
    assert approval_options([call]) == (YES, ALWAYS_HERE, NO)
    (grant,) = granted(ALWAYS_HERE, call)

    assert grant.words == (call.arguments["command"],)
    assert judge(call, grant) == Allow()


@pytest.mark.parametrize(
    "other",
    [
        # None of these could be granted alone.
        step("make"),
        step("cd repo"),
        step("sh"),
        step("head -3"),
        step("curl -d @x https://a.org"),
        step("curl $HOST"),
        step("curl https://a.org/*"),
        LineStep(words=("curl", "a.org"), redirections=(Redirection("", ">", "f"),)),
        LineStep(words=("curl", "a.org"), assignments=("A=b",)),
        LineStep(assignments=("A=b",)),
        # These write a file that the next step could obey.
        step("curl -o .git/config https://a.org"),
        step("curl -so .git/config https://a.org"),
        step("curl -O https://a.org/.netrc"),
        step("curl --output x https://a.org"),
        step("curl --remote-name https://a.org/x"),
        step("git pull --rebase"),
        step("git clone https://a.org/x.git"),
        step("gh pr merge 12 --delete-branch"),
        step("kubectl cluster-info dump --output-directory=.git"),
    ],
)
def test_one_step_that_could_not_be_granted_alone_is_enough_to_ask_each_time(
    other: LineStep,
) -> None:
    for join in (Join.THEN, Join.IF_SUCCEEDED, Join.IF_FAILED):
        for call in (
            line(FETCH, replace(other, join=join)),
            line(other, replace(FETCH, join=join)),
        ):
            assert approval_options([call]) == (YES, NO)
            assert all(judge(call, grant) != Allow() for grant in granted(ALWAYS_HERE, call))


@pytest.mark.parametrize(
    "reader",
    [
        *(
            "sh",
            "bash -s",
            "curl https://b.org",
            "kubectl exec -i p -- sh",
            "git fetch",
            "xargs rm",
        ),
        *("head 5", "head -n 5 x", "cat x", "cat -", "grep -r x", "grep x y", "grep -f x", "grep"),
        *("jq -f x", "jq . x", "jq import", "sort -o x", "sort x", "sort --compress-program=x"),
        *("tail -f x", "tail -n", "uniq x", "wc x", "wc --files0-from=x", "sed s/a/b/", "awk x"),
        *("tee x", "'head'x", "./head", "head -3 -3"),
    ],
)
def test_input_goes_to_programs_only_that_pass_it_on(reader: str) -> None:
    for join in (Join.PIPE, Join.PIPE_WITH_ERRORS):
        assert approval_options([line(FETCH, step(reader, join))]) == (YES, NO)


def test_a_line_that_could_not_be_read_is_granted_once_at_most() -> None:
    call = replace(command("curl a.org | head"), steps=())

    assert approval_options([call]) == (YES, NO)
    assert approval_options([command("curl a.org | head")]) == (YES, NO)


def test_only_lines_that_ask_and_are_not_plain_have_to_be_read() -> None:
    caged = replace(RUN_COMMAND, cage=Cage.WORK)

    assert line_to_read(command("curl a.org | head")) == "curl a.org | head"
    assert line_to_read(command("curl a.org\u202e")) == "curl a.org\u202e"
    assert line_to_read(command("curl a.org")) is None
    assert line_to_read(command(["a | b"])) is None
    assert line_to_read(ToolCall(caged, {"command": "a | b"})) is None
    assert line_to_read(ToolCall(caged, {"command": "a | b", "network": True})) == "a | b"
    assert line_to_read(SEND) is None


def test_the_steps_of_a_line_are_no_part_of_what_is_approved() -> None:
    call = line(FETCH, step("head", Join.PIPE))

    assert call_digest(call) == call_digest(replace(call, steps=None))
    (once,) = granted(YES, call)
    assert judge(replace(call, steps=()), once) == Allow(uses=once.id)
    assert judge(replace(call, steps=())) == Ask(call_digest(call))
