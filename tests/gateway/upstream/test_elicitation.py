"""Servers that ask the user in the middle of a call."""

from typing import Any

import pytest
from support.mcp_peers.scripted import ERAS, Asked, Era, Reply, error, result, scripted
from support.mcp_peers.sdk import STATE, serving
from support.mcp_peers.sessions import session

from backburner.core.connections.input_request import (
    InputAction,
    InputAnswer,
    InputAnswers,
    InputField,
    InputKind,
    InputNeeded,
    InputOption,
    InputRequest,
)
from backburner.gateway.upstream.limits import MAX_STATE_CHARS
from backburner.ports import ToolResult

RED = InputAnswer(action=InputAction.ACCEPT, values={"color": "red", "count": 3, "gift": True})


def asks_for(properties: object, *, message: str = "Which?", state: str = "s") -> Any:
    """A server that answers every call with a question."""
    form = {"type": "object", "properties": properties}
    params = {"mode": "form", "message": message, "requestedSchema": form}

    def script(asked: Asked) -> Reply | None:
        if asked.method != "tools/call":
            return None
        request = {"method": "elicitation/create", "params": params}
        needed = {
            "resultType": "input_required",
            "inputRequests": {"k": request},
            "requestState": state,
        }
        return result(asked, needed)

    return script


async def test_a_question_reaches_the_caller_and_the_call_goes_on_with_the_answer() -> None:
    async with serving("modern") as url, session(url) as opened:
        needed = await opened.call("ask", {})

        assert needed == InputNeeded(
            requests=(
                InputRequest(
                    key="one",
                    message="Which one?",
                    fields=(
                        InputField(
                            name="color",
                            title="Color",
                            kind=InputKind.CHOICE,
                            required=True,
                            options=(InputOption("red", "red"), InputOption("blue", "blue")),
                        ),
                        InputField(
                            name="count",
                            description="How many",
                            kind=InputKind.INTEGER,
                            default=2,
                        ),
                        InputField(name="gift", kind=InputKind.SWITCH),
                    ),
                ),
            ),
            state=STATE,
        )
        answers = InputAnswers(answers={"one": RED}, state=needed.state)
        answered = await opened.call("ask", {}, answers=answers)

    expected = "accept {'color': 'red', 'count': 3, 'gift': True} state-of-the-server"
    assert answered == ToolResult(expected)


async def test_the_answer_can_be_given_in_a_later_session() -> None:
    async with serving("modern") as url:
        async with session(url) as first:
            needed = await first.call("ask", {})
        assert isinstance(needed, InputNeeded)
        declined = InputAnswer(action=InputAction.DECLINE)
        async with session(url) as second:
            answers = InputAnswers(answers={"one": declined}, state=needed.state)
            answered = await second.call("ask", {}, answers=answers)

    assert answered == ToolResult("decline None state-of-the-server")


async def test_a_server_that_cannot_wait_is_told_so_and_the_result_says_it() -> None:
    async with serving("legacy") as url, session(url) as opened:
        asked = await opened.call("ask", {})
        other = await opened.call("echo", {"text": "hello"})

    assert isinstance(asked, ToolResult)
    assert asked.text == (
        "cancel None\n[The server asked the user: 'Which one?'. Its revision of MCP (2025-11-25)"
        " does not allow to wait for an answer, so it was told that the user has cancelled.]"
    )
    assert other == ToolResult("hello")


async def test_a_request_for_a_password_is_refused_with_words() -> None:
    words = "The server asks for a password or another secret."
    async with serving("modern") as url, session(url) as opened:
        modern = await opened.call("ask_password", {})
    async with serving("legacy") as url, session(url) as opened:
        legacy = await opened.call("ask_password", {})

    assert isinstance(modern, ToolResult)
    assert modern.failed
    assert modern.text.startswith(words)
    assert isinstance(legacy, ToolResult)
    assert legacy.text.startswith(f"decline None\n[{words}")


@pytest.mark.parametrize("era", ERAS)
async def test_an_address_that_the_user_has_to_visit_reaches_the_caller(era: Era) -> None:
    async with serving(era) as url, session(url) as opened:
        needed = await opened.call("visit", {})

    assert isinstance(needed, InputNeeded)
    assert [(each.message, each.url) for each in needed.requests] == [
        ("Pay first.", "https://pay.example/7")
    ]


async def test_the_call_is_made_again_after_the_visit() -> None:
    async with serving("modern") as url, session(url) as opened:
        await opened.call("visit", {})
        visited = InputAnswers(answers={"one": InputAnswer(action=InputAction.ACCEPT)})

        assert await opened.call("visit", {}, answers=visited) == ToolResult("paid")


async def test_an_address_that_is_not_https_is_refused() -> None:
    data = {
        "elicitations": [{"message": "Go!", "url": "javascript:alert(1)", "elicitationId": "1"}]
    }
    async with (
        scripted(
            "legacy", lambda a: error(a, -32042, "", data) if a.method == "tools/call" else None
        ) as peer,
        session(peer.url) as opened,
    ):
        refused = await opened.call("send", {})

    assert isinstance(refused, ToolResult)
    assert refused.failed
    assert "only https is allowed" in refused.text


async def test_requests_to_use_our_model_are_refused() -> None:
    async with serving("modern") as url, session(url) as opened:
        modern = await opened.call("sample", {})
    async with serving("legacy") as url, session(url) as opened:
        legacy = await opened.call("sample", {})

    assert isinstance(modern, ToolResult)
    assert modern.failed
    assert "wants to use our model" in modern.text
    assert isinstance(legacy, ToolResult)
    assert "refused: " in legacy.text


async def test_a_server_that_wants_to_be_asked_again_is_asked_again() -> None:
    async with serving("modern") as url, session(url) as opened:
        assert await opened.call("again", {}) == ToolResult("after 2")


async def test_a_server_that_wants_to_be_asked_again_for_ever_is_given_up() -> None:
    def script(asked: Asked) -> Reply | None:
        if asked.method != "tools/call":
            return None
        return result(asked, {"resultType": "input_required", "requestState": "again"})

    async with scripted("modern", script) as peer, session(peer.url) as opened:
        given_up = await opened.call("send", {})

        assert given_up == ToolResult("Peer wanted to be asked again too often.", failed=True)
        assert len(peer.calls()) == 10


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"a": {"type": "object"}}, "a value of the type 'object'"),
        ({"a": {"type": ["string"]}}, "users cannot be asked for"),
        ({"a": 3}, "in a form that is not valid"),
        ({"a\u202e": {"type": "string"}}, "in a form that is not valid"),
        ([1], "in a form that is not valid"),
        ({str(number): {"type": "string"} for number in range(31)}, "more than 30 values"),
        (
            {"a": {"type": "string", "enum": [str(number) for number in range(201)]}},
            "more than 200 options",
        ),
        ({"a": {"type": "string", "enum": [1, 2]}}, "options that are not text"),
        ({"a": {"type": "string", "enum": ["x" * 201]}}, "text of up to 200 characters"),
        ({"token": {"type": "string"}}, "a password or another secret"),
    ],
)
async def test_a_question_that_nobody_can_be_asked_is_refused(
    properties: object, said: str
) -> None:
    async with scripted("modern", asks_for(properties)) as peer, session(peer.url) as opened:
        refused = await opened.call("send", {})

    assert isinstance(refused, ToolResult)
    assert refused.failed
    assert said in refused.text


async def test_options_have_labels_and_words_lose_what_cannot_be_seen() -> None:
    properties = {
        "to": {
            "type": "array",
            "title": "Who\u202e?",
            "items": {"anyOf": [{"const": "a", "title": "Ann"}, {"const": "b"}]},
            "default": ["a"],
        },
        "how": {"type": "string", "enum": ["x", "y"], "enumNames": ["Mail", "Letter"]},
        "why": {"type": "string", "default": "a" * 5_000},
    }
    script = asks_for(properties, message="Whom\u200b?\x1b[2J")
    async with scripted("modern", script) as peer, session(peer.url) as opened:
        needed = await opened.call("send", {})

    assert isinstance(needed, InputNeeded)
    (request,) = needed.requests
    assert request.message == "Whom?[2J"
    to, how, why = request.fields
    # Not cut: what is not shown in full is not sent.
    assert why.default == "a" * 5_000
    assert (to.title, to.kind, to.default) == ("Who?", InputKind.CHOICES, ("a",))
    assert to.options == (InputOption("a", "Ann"), InputOption("b", "b"))
    assert how.options == (InputOption("x", "Mail"), InputOption("y", "Letter"))


async def test_a_state_that_is_too_large_to_keep_is_refused() -> None:
    script = asks_for({"a": {"type": "string"}}, state="s" * (MAX_STATE_CHARS + 1))
    async with scripted("modern", script) as peer, session(peer.url) as opened:
        refused = await opened.call("send", {})

    assert isinstance(refused, ToolResult)
    assert refused.failed
    assert "wants a state of more than 100,000 characters back" in refused.text
