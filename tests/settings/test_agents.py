"""Agents in the settings file."""

from pathlib import Path

import pytest
from support.requirements import requirement

from backburner.core.errors import BadSetting
from backburner.core.work.agents import BUILT_IN, CODER, Agent
from backburner.settings import Settings, load

REVIEWER = """
[agents.reviewer]
instructions = "Review what changed."
tools = ["read_file", "github/list_pulls"]
profile = "demo"
"""


def load_from(folder: Path, text: str) -> Settings:
    file = folder / "backburner.toml"
    file.write_text(text, encoding="utf-8")
    return load(data=str(folder), config=str(file))


@requirement("C-agents")
def test_agents_are_added_to_the_built_in_ones(tmp_path: Path) -> None:
    agents = load_from(tmp_path, REVIEWER).agents

    assert list(agents) == [*BUILT_IN, "reviewer"]
    assert agents["coder"] == CODER
    assert agents["reviewer"] == Agent(
        name="reviewer",
        instructions="Review what changed.",
        tools=("read_file", "github/list_pulls"),
        profile="demo",
    )


def test_a_built_in_agent_can_be_replaced(tmp_path: Path) -> None:
    agents = load_from(tmp_path, '[agents.coder]\ninstructions = "Be quick."\n').agents

    assert agents["coder"] == Agent(name="coder", instructions="Be quick.")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("agents = 3", "use a table of agents"),
        ("[agents]\nx = 3", "x is not a table such as"),
        ('[agents."A B"]', "'A B' is not a name such as reviewer"),
        ("[agents.x]\nmodel = 1", "x has 'model'; the keys are instructions, tools, profile"),
        ("[agents.x]\ninstructions = 3", "x has instructions that are not text of at most 8000"),
        ('[agents.x]\ntools = "read_file"', "x has tools that are not a list of names"),
        ('[agents.x]\ntools = ["no such"]', "x has tools that are not a list of names"),
        ("[agents.x]\nprofile = 3", "x has a profile that is not a name"),
        ('[agents.x]\nprofile = "y"', "The agent x has the profile 'y', but no profile has this"),
        ("[agents.demo]", "demo is the name of an agent and of a profile."),
    ],
)
def test_an_invalid_agent_is_one_clear_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadSetting) as caught:
        load_from(tmp_path, text)

    assert said in str(caught.value)
