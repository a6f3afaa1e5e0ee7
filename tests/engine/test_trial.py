"""Trying a model: the request, and how each failure is reported."""

import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from support.servers.model_servers import ModelServer, model_server

from backburner.core.errors import EngineFailed
from backburner.engine.addresses import check_address
from backburner.engine.trial import CLAUDE_CODE_IDENTITY, Target, list_models, try_model
from backburner.ports import Trouble

CANARY = "sk-canary-31415926535"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as server:
        yield server


@pytest.fixture
def claude(server: ModelServer) -> Target:
    return Target(engine="claude", model="claude-x", address=server.address, key=CANARY)


@pytest.fixture
def local(server: ModelServer) -> Target:
    return Target(engine="openai", model="small", address=f"{server.address}/v1", key=CANARY)


async def test_a_trial_of_claude_asks_for_one_word_with_the_key(
    server: ModelServer, claude: Target
) -> None:
    trial = await try_model(claude)

    assert trial.works
    assert trial.message == "claude-x answers."
    (asked,) = server.asked
    assert (asked.method, asked.path) == ("POST", "/v1/messages")
    assert asked.headers["x-api-key"] == CANARY
    assert "authorization" not in asked.headers
    assert (asked.body["model"], asked.body["max_tokens"]) == ("claude-x", 1)
    assert "system" not in asked.body


async def test_a_trial_with_a_token_identifies_as_claude_code(
    server: ModelServer, claude: Target
) -> None:
    assert (await try_model(replace(claude, key=None, token=CANARY))).works

    (asked,) = server.asked
    assert asked.headers["authorization"] == f"Bearer {CANARY}"
    assert asked.headers["anthropic-beta"] == "oauth-2025-04-20"
    assert "x-api-key" not in asked.headers
    assert asked.body["system"][0] == {"type": "text", "text": CLAUDE_CODE_IDENTITY}


async def test_a_trial_of_another_server_uses_chat_completions(
    server: ModelServer, local: Target
) -> None:
    assert (await try_model(local)).works
    assert (await try_model(replace(local, key=None))).works

    with_key, without = server.asked
    assert with_key.path == "/v1/chat/completions"
    assert with_key.headers["authorization"] == f"Bearer {CANARY}"
    assert "authorization" not in without.headers


async def test_a_server_with_another_name_for_the_limit_is_asked_again(
    server: ModelServer, local: Target
) -> None:
    complaint = {"error": {"message": "Use 'max_completion_tokens' instead."}}
    server.answers["/v1/chat/completions"] = (400, complaint)
    await try_model(local)

    first, second = server.asked
    assert "max_tokens" in first.body
    assert "max_tokens" not in second.body
    assert second.body["max_completion_tokens"] == 1


async def test_a_trial_of_the_demo_always_works() -> None:
    assert (await try_model(Target(engine="demo", model="demo", address=""))).works


@pytest.mark.parametrize(
    ("status", "answer", "trouble", "words"),
    [
        (401, {"error": {"message": f"bad key {CANARY}"}}, Trouble.REFUSED, "The key was refused"),
        (403, "", Trouble.REFUSED, "The key was refused (403)."),
        (404, {"error": {"message": "model: clod"}}, Trouble.MODEL, "Model not found: 'claude-x'"),
        (404, "no", Trouble.UNREACHABLE, "does not respond as a model API does."),
        (302, "", Trouble.UNREACHABLE, "does not respond as a model API does."),
        (200, "<html>", Trouble.UNREACHABLE, "does not respond as a model API does."),
        (200, [1], Trouble.UNREACHABLE, "does not respond as a model API does."),
        (429, {"error": {"message": "slow down"}}, Trouble.LIMIT, "(429): slow down."),
        (402, {"error": "pay first"}, Trouble.LIMIT, "(402): pay first."),
        (529, {"error": {"message": "over\nloaded."}}, Trouble.OTHER, "(529): over loaded."),
        (500, {"error": f"{CANARY} \x1b[31m"}, Trouble.OTHER, "(500): [secret] [31m."),
        (400, {"error": {"message": "credit is low"}}, Trouble.OTHER, "(400): credit is low."),
    ],
)
async def test_a_failed_trial_is_explained_without_the_secret(
    server: ModelServer,
    claude: Target,
    status: int,
    answer: Any,
    trouble: Trouble,
    words: str,
) -> None:
    server.answers["/v1/messages"] = (status, answer)
    trial = await try_model(claude)

    assert (trial.works, trial.trouble) == (False, trouble)
    assert words in trial.message
    assert CANARY not in repr(trial)
    assert len(server.asked) == 1


async def test_a_trial_without_a_needed_key_asks_for_one(
    server: ModelServer, local: Target
) -> None:
    server.answers["/v1/chat/completions"] = (401, "")
    trial = await try_model(replace(local, key=None))

    assert trial.message == "A key is needed (401)."


async def test_a_trial_reports_an_address_without_a_server(claude: Target) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    trial = await try_model(replace(claude, address=address))

    assert trial.trouble is Trouble.UNREACHABLE
    assert trial.message.startswith(f"{address} cannot be reached")


async def test_a_trial_of_a_silent_server_times_out(claude: Target) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        trial = await try_model(replace(claude, address=address), timeout_seconds=0.1)

    assert trial.message == f"{address} does not respond in time."


async def test_models_are_listed_by_name(server: ModelServer, local: Target) -> None:
    assert await list_models(local) == ("large", "small")
    (asked,) = server.asked
    assert asked.headers["authorization"] == f"Bearer {CANARY}"


@pytest.mark.parametrize("answer", [(200, {"models": []}), (401, CANARY), (404, ""), (200, "[]")])
async def test_a_server_without_a_list_of_models_is_reported_without_the_secret(
    server: ModelServer, local: Target, answer: tuple[int, Any]
) -> None:
    server.answers["/v1/models"] = answer
    with pytest.raises(EngineFailed) as refused:
        await list_models(local)

    assert CANARY not in str(refused.value)


async def test_listing_models_of_an_unreachable_server_fails_with_the_reason(local: Target) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(EngineFailed, match="cannot be reached"):
        await list_models(replace(local, address=f"http://127.0.0.1:{port}"))


def test_a_target_does_not_show_its_secrets(claude: Target) -> None:
    assert CANARY not in repr(claude) + repr(replace(claude, key=None, token=CANARY))


@pytest.mark.parametrize(
    "url", ["https://api.anthropic.com", "http://10.0.0.1", "http://localhost.example.org", "x"]
)
async def test_a_test_run_cannot_reach_a_model_elsewhere(claude: Target, url: str) -> None:
    with pytest.raises(EngineFailed, match="only models on this machine") as refused:
        await try_model(replace(claude, address=url))

    assert refused.value.permanent


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/v1", "http://localhost:2", "http://[::1]:3/s/secret"]
)
def test_models_on_this_machine_are_always_allowed(url: str) -> None:
    assert check_address(url) == url


def test_any_address_is_allowed_outside_test_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BACKBURNER_TEST_ONLY_LOOPBACK_MODELS")

    assert check_address("https://api.example.org")
