"""A server with tools that no model API takes as they are, beside good ones: it breaks no work."""

from collections.abc import Iterator
from typing import Any

import pytest
from support.faults.outside import Outside
from support.faults.postgres_proxy import in_thread
from support.mcp_peers.scripted import SEND, Asked, Reply, ScriptedPeer, scripted, texts
from support.model_api import CallTool, GiveOutcome, ModelApi, ModelRequest
from support.model_api import Reply as Said
from support.people.api_users import api_user
from support.programs.real_workers import RealWorkers
from support.requirements import requirement
from support.servers.model_threads import newest
from support.stage.make import USER

from backburner.core.question import YES, Purpose

TEXT = {"type": "string"}
#: What each is called with, in the order of its schema.
ODD: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "list.items": (
        {"$filter": TEXT, "page size": {"type": "integer"}},
        {"$filter": "a", "page size": 9},
    ),
    "top_level": ({}, {"kind": "b"}),
    "older_draft": (
        {"n": {"minimum": 0, "exclusiveMinimum": True}, "m": {"items": [TEXT]}},
        {"n": 1},
    ),
    "lost": ({"a": {"$ref": "#/$defs/lost"}, "b": {"type": "array"}}, {"a": 1, "b": [2]}),
    "pattern": ({"c": TEXT | {"pattern": r"^\p{Lu}(?=\.)"}}, {"c": "A."}),
}
ALTERNATIVES = [{"properties": {"kind": {"const": kind}}} for kind in "ab"]
BAD: dict[str, dict[str, Any]] = {
    "no_map": {"properties": ["x"]},
    "no_list": {"required": "a"},
    "no_type": {"properties": {"a": {"type": "int"}}},
}


def answer(asked: Asked) -> Reply | None:
    is_call = asked.method == "tools/call"
    return texts(asked, f"{asked.params['name']} was here.") if is_call else None


@pytest.fixture
def peer() -> Iterator[ScriptedPeer]:
    schemas = {name: {"properties": given} for name, (given, _) in ODD.items()} | BAD
    schemas["top_level"] = {"oneOf": ALTERNATIVES, "not": {"required": ["other"]}}
    tools = [
        {"name": name, "description": name, "inputSchema": {"type": "object", **schema}}
        for name, schema in schemas.items()
    ]
    with in_thread(scripted("modern", answer, tools=[SEND, *tools])) as peer:
        yield peer


def call_all(heard: ModelRequest) -> Said:
    """Be an agent that calls every tool of the server, with the names that it is shown."""
    first, *others = ODD
    told = newest(heard)
    if f"{others[-1]} was here." in told:
        return [GiveOutcome({"complete": True, "message": "That is all."})]
    if f"{first} was here." not in told:
        return [call(heard, first)]
    return [CallTool("send"), *(call(heard, name) for name in others)]


def call(heard: ModelRequest, name: str) -> CallTool:
    arguments = ODD[name][1].values()
    shown = heard.schema_of(name)["properties"]
    return CallTool(heard.name_of(name), dict(zip(shown, arguments, strict=False)))


@requirement("A-mcp-load")
def test_tools_that_no_model_api_takes_as_they_are_break_no_work(
    workers: RealWorkers, model: ModelApi, outside: Outside, peer: ScriptedPeer
) -> None:
    address = f"{model.address}/v1"
    workers.profiles["other"] = {"engine": "openai", "address": address, "model": "m"}
    _, address = workers.serve(profile="claude", private_networks=["127.0.0.1/32"])
    model.otherwise = call_all
    with api_user(outside, address, USER) as ann:
        added = ann.ask("POST", "/connections", {"name": "shop", "url": peer.url})
        assert added["left_out"].keys() == BAD.keys()
        assert added["left_out"]["no_type"].endswith(
            "not valid JSON Schema at 'properties/a/type'."
        )
        ann.tick(added["connection"]["id"], "send", *list(ODD)[1:])
        for profile in ("claude", "other"):
            task = ann.task(profile, connections=("shop",), profile=profile)
            # Whoever decides sees the arguments as the server gets them.
            question = outside.question(task)
            assert question.purpose is Purpose.APPROVAL
            assert 'shop/list.items {"$filter":"a","page size":9}' in question.prompt
            outside.answer(task, question, YES)
            ann.wait_until_completed(task)

    made = [(call.params["name"], call.params.get("arguments", {})) for call in peer.calls()]
    first, *others = [(name, arguments) for name, (_, arguments) in ODD.items()]
    for calls in (made[: len(made) // 2], made[len(made) // 2 :]):
        assert calls[0] == first
        assert sorted(calls[1:]) == sorted([("send", {}), *others])
