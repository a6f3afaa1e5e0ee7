"""How much one caller may use at once, and that others do not notice."""

from contextlib import ExitStack

import pytest
from support.stage.api_stage import AskAs
from support.stage.make import MATE, USER
from support.stage.stage import Stage

from backburner.api.http.caller_limits import CallerLimits, HeldRequest
from backburner.api.http.problems import Problem
from backburner.core.accounts import Scope


async def test_a_credential_sends_so_many_requests_a_minute(ask_as: AskAs) -> None:
    mine, my_other, mate = await ask_as(USER), await ask_as(USER, Scope.READ), await ask_as(MATE)
    mine.api.state.limits = CallerLimits(requests_per_minute=5, clock=lambda: 0.0)

    statuses = [(await mine("GET", "/api/me")).status_code for _ in range(5)]
    refused = await mine("GET", "/api/me")

    assert statuses == [200] * 5
    assert refused.status_code == 429
    assert refused.headers["retry-after"] == "12"
    assert "more than 5 requests a minute" in refused.json()["detail"]
    assert (await my_other("GET", "/api/me")).status_code == 200
    assert (await mate("GET", "/api/me")).status_code == 200


def test_a_pause_earns_further_requests() -> None:
    seconds = [0.0]
    limits = CallerLimits(requests_per_minute=60, clock=lambda: seconds[0])
    for _ in range(60):
        limits.count_request("one")
    with pytest.raises(Problem):
        limits.count_request("one")

    seconds[0] = 1.0

    limits.count_request("one")
    with pytest.raises(Problem):
        limits.count_request("one")


def test_credentials_that_rest_are_forgotten() -> None:
    limits = CallerLimits(requests_per_minute=60_000_000)
    for number in range(30_000):
        limits.count_request(f"{number}")

    assert len(limits._left) < 20_000


async def test_a_user_has_so_many_streams_open(ask_as: AskAs, stage: Stage) -> None:
    ask, mate = await ask_as(USER), await ask_as(MATE)
    limits: CallerLimits = ask.api.state.limits
    chat = await stage.chat()
    path, stream = f"/api/conversations/{chat.id}/messages", {"accept": "text/event-stream"}
    with ExitStack() as opened:
        for _ in range(10):
            opened.enter_context(limits.hold(USER, HeldRequest.STREAM))

        refused = await ask("GET", "/api/events")
        unsent = await ask("POST", path, {"content": "Hello"}, headers=stream)
        sent = await ask("POST", path, {"content": "Hello"})

        assert (refused.status_code, unsent.status_code, sent.status_code) == (429, 429, 202)
        assert "You have 10 streams open" in refused.json()["detail"]
        limits.hold(MATE, HeldRequest.STREAM)
        assert (await mate("GET", "/api/me")).status_code == 200
    assert len(stage.messages(chat)) == 1
    limits.hold(USER, HeldRequest.STREAM)
