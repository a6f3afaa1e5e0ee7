"""Agents: those that are built in, how they are found, and what they may use."""

import pytest

from backburner.core.errors import BadRequest
from backburner.core.work.agents import (
    BUILT_IN,
    CODER,
    GENERAL,
    RESEARCHER,
    Agent,
    allow_both,
    check_tools,
    find_agent,
)


def test_general_may_use_everything_and_the_researcher_only_reads() -> None:
    assert GENERAL.tools is None
    assert RESEARCHER.tools is not None
    assert not {"write_file", "run_command", "task_add", "memory_set"} & set(RESEARCHER.tools)
    assert CODER.tools is not None
    assert {"read_file", "write_file", "run_command"} <= set(CODER.tools)


def test_an_agent_or_a_profile_is_found_by_its_name() -> None:
    assert find_agent(BUILT_IN, None) is None
    assert find_agent(BUILT_IN, "coder", profiles=("coder",)) == CODER
    assert find_agent(BUILT_IN, "local", profiles=("local",)) == Agent(
        name="local", profile="local"
    )


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    with pytest.raises(BadRequest) as caught:
        find_agent(BUILT_IN, "nobody", profiles=("general", "local"))

    assert str(caught.value) == (
        "There is no agent 'nobody'. Available: general, researcher, coder, local."
    )


@pytest.mark.parametrize(
    ("tools", "others", "both"),
    [
        (None, None, None),
        (("a", "b"), None, ("a", "b")),
        (None, ("a", "b"), ("a", "b")),
        (("a", "b"), ("b", "c"), ("b",)),
        ((), ("a",), ()),
    ],
)
def test_only_tools_that_both_restrictions_allow_are_left(
    tools: tuple[str, ...] | None, others: tuple[str, ...] | None, both: tuple[str, ...] | None
) -> None:
    assert allow_both(tools, others) == both


def test_tools_that_an_agent_may_not_use_are_refused() -> None:
    check_tools(None, ["anything"])
    check_tools(GENERAL, ["anything"])
    check_tools(CODER, None)
    check_tools(CODER, ["read_file"])
    with pytest.raises(BadRequest, match=r"'none' may not use read_file\. It may use: nothing\."):
        check_tools(Agent(name="none", tools=()), ["read_file"])
