"""Connections with more tools than a request should have: found by words, asked about by name."""

from collections.abc import Iterator

import pytest
from support.faults.outside import Outside
from support.faults.postgres_proxy import in_thread
from support.mcp_peers import sdk
from support.mcp_peers.scripted import ScriptedPeer, scripted
from support.model_api import CallTool, GiveOutcome, ModelApi, ModelRequest, Reply
from support.people.api_users import ApiUser, api_user
from support.programs.real_workers import RealWorkers
from support.requirements import requirement
from support.servers.model_threads import newest
from support.stage.make import USER

from backburner.core.question import YES, Purpose

PAY = {"name": "pay_invoice", "arguments": {"amount $": 3}}
DONE = GiveOutcome({"complete": True, "message": "Done."})


@pytest.fixture
def hub() -> Iterator[ScriptedPeer]:
    schema = {"type": "object", "properties": {"amount $": {"type": "number"}}}
    names = ["pay_invoice", *(f"print_invoice_{number}" for number in range(300))]
    tools = [
        {"name": name, "description": f"Do {name}. {'Really. ' * 10}", "inputSchema": schema}
        for name in names
    ]
    with in_thread(scripted("modern", tools=tools)) as peer:
        yield peer


@pytest.fixture
def asking() -> Iterator[str]:
    with in_thread(sdk.serving("modern")) as url:
        yield url


@pytest.fixture
def ann(workers: RealWorkers, model: ModelApi, outside: Outside) -> Iterator[ApiUser]:
    address = f"{model.address}/v1"
    workers.profiles["openai"] = {"engine": "openai", "address": address, "model": "m"}
    _, address = workers.serve(profile="claude", private_networks=["127.0.0.1/32"])
    with api_user(outside, address, USER) as ann:
        yield ann


def find_and_pay(heard: ModelRequest) -> Reply:
    """Be an agent that is told to pay, and has no tool for it in its list."""
    told = newest(heard)
    if "sent" in told:
        return [DONE]
    if "hub/pay_invoice: Do pay_invoice." in told:
        return [CallTool("use_tool", {**PAY, "name": "hub/pay_invoice"})]
    return [CallTool("find_tools", {"words": "pay invoice"})]


def choose(heard: ModelRequest) -> Reply:
    """Be an agent that calls a tool whose server asks its user something."""
    return [DONE] if "'color': 'red'" in newest(heard) else [CallTool("ask")]


@requirement("A-mcp-load")
def test_a_tool_that_is_found_by_words_is_asked_about_by_its_name_with_both_engines(
    ann: ApiUser, model: ModelApi, outside: Outside, hub: ScriptedPeer
) -> None:
    model.otherwise = find_and_pay
    ann.connect("hub", url=hub.url)
    for profile in ("claude", "openai"):
        task = ann.task(profile, connections=("hub",), profile=profile)

        question = outside.question(task)
        assert question.purpose is Purpose.APPROVAL
        assert 'hub/pay_invoice {"amount $":3}' in question.prompt
        outside.answer(task, question, YES)

        ann.wait_until_completed(task)

    paid = [call.params for call in hub.calls()]
    assert [{name: one[name] for name in PAY} for one in paid] == [PAY, PAY]
    assert not [name for one in model.requests for name in one.tools if "invoice" in name]
    made = ann.ask("GET", "/connections/calls")["items"]
    assert [(one["tool"], one["outcome"]) for one in made] == [("pay_invoice", "done")] * 2


@requirement("Z-elicit")
def test_an_answer_for_a_server_reaches_the_call_that_is_made_again_with_both_engines(
    ann: ApiUser, model: ModelApi, outside: Outside, asking: str
) -> None:
    model.otherwise = choose
    ann.tick(ann.connect("shop", url=asking), "ask")
    for profile in ("claude", "openai"):
        task = ann.task(profile, connections=("shop",), profile=profile)

        question = outside.question(task)
        assert question.purpose is Purpose.INPUT
        ann.ask("POST", f"/questions/{question.id}/answer", {"answer": "color: red\ncount: 3"})

        ann.wait_until_completed(task)
