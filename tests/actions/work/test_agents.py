"""Agents at work: their instructions, their tools, and the limits of what they hand out."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

from support.doubles.engine import ScriptedEngine
from support.requirements import requirement
from support.stage.job_stage import House, outside
from support.stage.stage import Stage

from backburner.actions.work import jobs
from backburner.actions.work.jobs import JobRequest
from backburner.bus.local import LocalBus
from backburner.core.conversation import Conversation
from backburner.core.ids import ConversationId
from backburner.core.routing import Routes
from backburner.core.work.agents import BUILT_IN, RESEARCHER, Agent
from backburner.ports import EngineEvent, Gate, Offer, SessionEntries, TurnEnded, TurnRequest
from backburner.store.db import Database
from backburner.tools.define import Arguments, define_tool
from backburner.tools.toolbox import Toolbox

REVIEWER = Agent(
    name="reviewer",
    instructions="Review like a pirate.",
    tools=("list_work", "background_task", "task_list"),
    profile="local",
)


def job(agent: str | None) -> JobRequest:
    return JobRequest(description="Job", prompt="say Hello.", agent=agent)


def load(stage: Stage, which: ConversationId) -> Conversation:
    return stage.database.run(lambda tx: tx.jobs.load(stage.user(), [which])[which])


def with_agents(house: House, **more: Any) -> None:
    agents = {**BUILT_IN, REVIEWER.name: REVIEWER}
    deps = replace(house.deps, agents=agents, **more)
    house.deps = replace(deps, toolbox=Toolbox(deps))
    house.claiming.deps = house.deps


def offered(request: TurnRequest) -> set[str]:
    return {offer.tool.name for offer in request.tools} - {"report_progress"}


@requirement("C-agents")
async def test_an_agent_has_its_instructions_tools_and_profile(house: House) -> None:
    routes = Routes(names=("scripted", "local"), chat="scripted")
    engines = {**house.deps.engines, "local": house.engine}
    with_agents(house, routes=routes, engines=engines)
    chat = await house.chat()
    (started,) = await jobs.start(house.deps, outside(chat), [job("reviewer")])
    await house.take_one()
    await house.idle()

    made = load(house, started.id)
    assert (started.agent, made.agent, made.profile) == ("reviewer", "reviewer", "local")
    (request,) = house.engine.requests
    assert request.prompt.startswith("# How you work\nReview like a pirate.\n\n# Your work\n")
    assert offered(request) == set(REVIEWER.tools or ())


@requirement("C-agents")
async def test_general_has_all_tools_and_a_profile_is_still_a_name(house: House) -> None:
    with_agents(house, routes=Routes(names=("scripted",), chat="scripted"))
    chat = await house.chat()
    started = await jobs.start(house.deps, outside(chat), [job("general"), job("scripted")])
    made = [load(house, one.id) for one in started]

    assert [one.agent for one in started] == ["general", "scripted"]
    assert [(one.agent, one.tools) for one in made] == [("general", None), (None, None)]
    assert [one.requested_profile for one in made] == [None, "scripted"]


@requirement("C-agents")
async def test_jobs_of_a_job_have_no_more_tools_than_its_agent(house: House) -> None:
    with_agents(house)
    chat = await house.chat()
    house.deps.agents["reviewer"] = replace(REVIEWER, profile=None)  # type: ignore[index]
    (parent,) = await jobs.start(house.deps, outside(chat), [job("reviewer")])
    below = outside(load(house, parent.id))
    children = await jobs.start(house.deps, below, [job(None), job("general"), job("researcher")])
    made = [load(house, child.id) for child in children]

    assert [one.agent for one in made] == ["reviewer", "general", "researcher"]
    assert [one.tools for one in made] == [
        REVIEWER.tools,
        REVIEWER.tools,
        ("list_work", "task_list"),
    ]


class NoArguments(Arguments):
    pass


class DisobedientEngine:
    """Calls a tool that it was not offered."""

    def __init__(self, offer: Offer) -> None:
        self.offer = offer
        self.results = list[str]()

    async def run(self, request: TurnRequest, gate: Gate) -> AsyncGenerator[EngineEvent, None]:
        assert self.offer.tool.name not in [offer.tool.name for offer in request.tools]
        yield SessionEntries("session", ("asked",))
        result = await gate.call(self.offer, {})
        self.results.append(result.text)
        assert result.failed
        yield TurnEnded("", {"complete": True, "message": "Done."})


@requirement("C-agents")
async def test_the_gate_denies_a_tool_that_the_agent_was_not_offered(database: Database) -> None:
    made = list[str]()

    async def write(_arguments: NoArguments) -> str:
        """Write a file."""
        made.append("written")
        return "Done."

    engine = DisobedientEngine(define_tool("write_file", NoArguments, write, free=True))
    stage = Stage(
        database,
        LocalBus(),
        ScriptedEngine(),
        toolbox=Toolbox,
        engines={"scripted": engine},
    )
    chat = await stage.chat()
    await jobs.start(stage.deps, outside(chat), [job("researcher")])
    await stage.take_up()
    await stage.idle()

    assert made == []
    (refusal,) = engine.results
    assert refusal.startswith("write_file is not one of the tools allowed here: read_file,")


async def test_an_agent_that_left_the_settings_keeps_its_work_within_its_tools(
    house: House,
) -> None:
    chat = await house.chat()
    (started,) = await jobs.start(house.deps, outside(chat), [job("researcher")])
    deps = replace(house.deps, agents={})
    house.claiming.deps = house.deps = replace(deps, toolbox=Toolbox(deps))
    await house.take_one()
    await house.idle()

    (request,) = house.engine.requests
    assert not request.prompt.startswith("# How you work")
    assert offered(request) <= set(RESEARCHER.tools or ())
    assert load(house, started.id).agent == "researcher"
