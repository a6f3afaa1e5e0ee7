"""Discovery finds work and proposes it; what the owner says yes to is done, and nothing else."""

from datetime import timedelta
from typing import Any

import pytest
from support.doubles.engine import COMPLETE, Call, End, Say, ScriptedEngine
from support.requirements import requirement
from support.stage.make import USER
from support.stage.silences import let_pass
from support.stage.stage import Stage, prompts

from backburner.actions.deps import DiscoverySettings
from backburner.bus.local import LocalBus
from backburner.core.conversation import Conversation, Kind, Status
from backburner.core.question import Purpose
from backburner.core.work.views import TaskStatus, task_status
from backburner.ports import ConversationFilter, ConversationRow, View
from backburner.store.db import Database
from backburner.tools.toolbox import Toolbox

MINUTE = timedelta(minutes=1)
NUMBER = 42
WATCH = {
    "name": f"watch-pr-{NUMBER}",
    "prompt": f"Look at CI and the review of pull request {NUMBER}, and tell what is new.",
    "why": f"Pull request {NUMBER} was talked about and is not merged. Shall I watch it?",
    "interval": "30m",
}


@pytest.fixture
async def stage(either: Database) -> Stage:
    """Set up a user who has switched discovery on."""
    stage = Stage(
        either,
        LocalBus(),
        ScriptedEngine(otherwise=lambda _: [Say("I see."), End(COMPLETE)]),
        toolbox=Toolbox,
        discovery=DiscoverySettings(allowed=True),
    )
    stage.user()
    stage.switch_discovery(on=True)
    return stage


def looks(stage: Stage) -> Conversation:
    return stage.database.run(
        lambda tx: tx.conversations.load(USER, *tx.discovery.conversation_ids(USER))
    )


def tasks(stage: Stage) -> list[Conversation]:
    def find(tx: Any) -> list[ConversationRow]:
        found = tx.browse.conversations(USER, ConversationFilter(view=View.TASKS), None, limit=9)
        return list(found.conversations)

    return [seen.conversation for seen in stage.database.run(find)]


async def look(stage: Stage, *calls: Call) -> list[str]:
    """Let discovery look once, and tell what its calls gave."""
    before = len(stage.engine.results)
    let_pass(stage, 40 * MINUTE)
    stage.engine.then(*calls, End({"complete": True}))
    await stage.work()
    return [result.text for result in stage.engine.results[before:]]


def propose(**changes: Any) -> Call:
    return Call("task_propose", {**WATCH, **changes})


async def talk(stage: Stage, text: str = "Good morning.") -> Conversation:
    chat = await stage.chat()
    await stage.say(chat, text)
    await stage.work()
    return chat


@requirement("B-discovery", "B-discovery-context")
async def test_a_pull_request_that_was_talked_about_is_watched_once_its_owner_agrees(
    stage: Stage,
) -> None:
    await talk(stage, f"I will merge pull request {NUMBER} after lunch.")
    await look(stage, propose())

    assert f"I will merge pull request {NUMBER}" in prompts(stage.engine, looks(stage).id)[0]
    (proposed,) = tasks(stage)
    (question,) = proposed.questions
    assert (proposed.kind, proposed.status) == (Kind.TASK, Status.WAITING_INPUT)
    assert question.purpose is Purpose.PROPOSAL
    assert question.prompt.startswith(f"Proposed task: watch-pr-{NUMBER}\n> {WATCH['why']}")
    assert stage.notices() == [question.prompt]
    # It may use what its owner may, and tells of what changes.
    assert (proposed.tools, proposed.notify.value) == (None, "on_change")
    await stage.work()
    assert stage.history(proposed) == ()

    await stage.answer(proposed, "yes")
    stage.engine.then(End({"complete": True, "message": "CI passed."}))
    await stage.work()

    active = stage.load(proposed)
    assert (task_status(active), active.run_count) == (TaskStatus.ACTIVE, 1)
    assert stage.said(proposed)[-1] == "CI passed."
    assert stage.notices()[-1] == "CI passed."


@requirement("B-discovery-limits")
async def test_one_look_proposes_three_things_at_most(stage: Stage) -> None:
    await talk(stage)
    calls = [propose(name=f"task-{n}", prompt=f"Do the thing called {n}.") for n in range(4)]
    told = await look(stage, *calls)

    assert len(tasks(stage)) == 3
    assert "Limit reached: 3 proposals" in told[3]


@requirement("B-discovery-limits")
async def test_what_was_rejected_is_not_proposed_again_within_a_day(stage: Stage) -> None:
    await talk(stage)
    await look(stage, propose())
    await stage.answer(tasks(stage)[0], "no")

    await talk(stage)
    (same_name,) = await look(stage, propose(prompt="Something else.", name=f"Watch PR {NUMBER}!"))
    await talk(stage)
    (same_prompt,) = await look(stage, propose(name="another"))
    assert "rejected this within the last day" in same_name
    assert "rejected this within the last day" in same_prompt
    assert tasks(stage) == []

    let_pass(stage, timedelta(hours=24))
    await talk(stage)
    await look(stage, propose())
    assert len(tasks(stage)) == 1


@requirement("B-discovery-limits")
async def test_nothing_is_looked_for_when_the_user_has_been_gone_for_two_hours(
    stage: Stage,
) -> None:
    await talk(stage)
    let_pass(stage, timedelta(hours=2, minutes=1))
    before = len(stage.engine.requests)

    await stage.work()

    assert len(stage.engine.requests) == before
    assert stage.history(looks(stage)) == ()


async def test_it_can_begin_nothing_itself(stage: Stage) -> None:
    await talk(stage)
    await look(stage)

    offered = {offer.tool.name for offer in stage.engine.requests[-1].tools}
    assert offered == {"task_propose", "task_list", "memory_search"}


async def test_what_was_agreed_to_goes_on_when_discovery_is_switched_off(stage: Stage) -> None:
    await talk(stage)
    await look(stage, propose())
    (proposed,) = tasks(stage)
    await stage.answer(proposed, "yes")

    stage.switch_discovery(on=False)

    assert task_status(stage.load(proposed)) is TaskStatus.ACTIVE
