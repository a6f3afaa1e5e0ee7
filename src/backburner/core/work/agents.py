"""Agents: names with instructions, a set of tools, and perhaps a profile.

A profile is a model; an agent is what is asked of it, and what it may use.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from backburner.core.errors import BadRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    name: str
    instructions: str = ""
    #: The only tools it may use; None: all that its work may use.
    tools: tuple[str, ...] | None = None
    #: None: the one that the work has anyway.
    profile: str | None = None


GENERAL = Agent(name="general")
RESEARCHER = Agent(
    name="researcher",
    instructions="You find things out, and change nothing. Read what you need, compare sources, and"
    " report what you found, where, and how sure you are. Say what you could not find.",
    tools=(
        *("read_file", "list_files", "fetch_url", "memory_search"),
        *("list_work", "task_list", "task_history"),
    ),
)
CODER = Agent(
    name="coder",
    instructions="You work on code, with files and commands. Read before you change anything, keep"
    " changes small and in the manner of the code around them, and run its tests. Report what you"
    " changed, and what you have not tried.",
    tools=("read_file", "write_file", "list_files", "run_command", "memory_search"),
)
BUILT_IN: Mapping[str, Agent] = {agent.name: agent for agent in (GENERAL, RESEARCHER, CODER)}


def find_agent(
    agents: Mapping[str, Agent], name: str | None, *, profiles: Iterable[str] = ()
) -> Agent | None:
    """Find an agent by name; the name of a profile is an agent with that model and all tools."""
    if name is None:
        return None
    if name in agents:
        return agents[name]
    others = [profile for profile in profiles if profile not in agents]
    if name in others:
        return Agent(name=name, profile=name)
    raise BadRequest(
        f"There is no agent {name[:80]!r}.", hint=f"Available: {', '.join([*agents, *others])}."
    )


def allow_both(
    tools: tuple[str, ...] | None, others: tuple[str, ...] | None
) -> tuple[str, ...] | None:
    """Return the tools that two restrictions allow; None is no restriction."""
    if tools is None or others is None:
        return others if tools is None else tools
    return tuple(name for name in tools if name in others)


def check_tools(agent: Agent | None, tools: Iterable[str] | None) -> None:
    """Refuse tools that are named for work whose agent may not use them."""
    if agent is None or agent.tools is None or tools is None:
        return
    refused = [name for name in tools if name not in agent.tools]
    if refused:
        raise BadRequest(
            f"The agent {agent.name!r} may not use {', '.join(refused)}.",
            hint=f"It may use: {', '.join(agent.tools) or 'nothing'}.",
        )
