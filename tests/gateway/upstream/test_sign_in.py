"""The sign-in of a session: headers, renewals, and refusals that a server hides in results."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta

import pytest
from support.mcp_peers.scripted import (
    ERAS,
    Asked,
    Era,
    Reply,
    Script,
    error,
    reply,
    scripted,
    texts,
)
from support.mcp_peers.sessions import Pauses, Tokens, session

from backburner.core.connections.scopes import UNNAMED
from backburner.core.errors import ConnectionFailed, SignedOut, VaultLocked
from backburner.gateway.upstream.session import SIGN_IN_ENDED, SIGNED_IN_AGAIN
from backburner.ports import ToolResult


def wants(token: str) -> Script:
    """Refuse everything without this token."""

    def script(asked: Asked) -> Reply | None:
        if asked.headers.get("authorization") == f"Bearer {token}":
            return None
        return reply(status=401, headers={"WWW-Authenticate": "Bearer"})

    return script


def says(*answers: str) -> Script:
    """Answer calls with failed results, the last one for ever."""

    def script(asked: Asked) -> Reply | None:
        if asked.method != "tools/call":
            return None
        said = answers[min(asked.count, len(answers)) - 1]
        return texts(asked, said, is_error=not said.startswith("sent"))

    return script


@pytest.mark.parametrize("era", ERAS)
async def test_every_request_carries_the_sign_in(era: Era) -> None:
    async with scripted(era) as peer:
        async with session(peer.url, sign_in=Tokens()) as opened:
            await opened.list_tools()
            await opened.call("send", {})

        assert {each.headers.get("authorization") for each in peer.asked} == {"Bearer token-1"}


@pytest.mark.parametrize("era", ERAS)
async def test_a_token_that_ends_in_the_middle_is_renewed_and_the_call_is_made_once(
    era: Era,
) -> None:
    tokens = Tokens()
    async with scripted(era, wants("token-2")) as peer:
        async with session(peer.url, sign_in=tokens) as opened:
            assert await opened.call("send", {}) == ToolResult("sent")

        assert peer.made == 1
        assert tokens.renewals == 1


@pytest.mark.parametrize(
    ("said", "scopes"),
    [
        ('scope="mail.read mail.send"', ("mail.read", "mail.send")),
        ('error_description="Required scope: mail.send"', (UNNAMED,)),
        (f'scope="mail.send \t{"x" * 300} \\ caf\xe9"', ("mail.send",)),
        (f'scope="{"x" * 3000}"', (UNNAMED,)),
    ],
    ids=["named", "unnamed", "invalid", "too long"],
)
async def test_scopes_that_the_server_wants_are_kept_with_the_error(
    said: str, scopes: tuple[str, ...]
) -> None:
    challenge = f'Bearer error="insufficient_scope", {said}'

    def script(asked: Asked) -> Reply | None:
        if asked.method != "tools/call":
            return None
        return reply(status=403, headers={"WWW-Authenticate": challenge})

    async with (
        scripted("modern", script) as peer,
        session(peer.url, sign_in=Tokens()) as opened,
    ):
        with pytest.raises(SignedOut) as caught:
            await opened.call("send", {})

    assert caught.value.scopes == scopes


async def test_a_call_that_lacks_scopes_says_nothing_about_others() -> None:
    challenge = 'Bearer error="insufficient_scope", scope="mail.send"'

    def script(asked: Asked) -> Reply | None:
        if asked.method != "tools/call" or asked.count > 1:
            return None
        return reply(status=403, headers={"WWW-Authenticate": challenge})

    async with (
        scripted("modern", script) as peer,
        session(peer.url, sign_in=Tokens()) as opened,
    ):
        with pytest.raises(SignedOut):
            await opened.call("send", {})

        assert await opened.call("send", {}) == ToolResult("sent")


async def test_after_the_end_of_a_sign_in_the_server_is_not_asked_again() -> None:
    async with (
        scripted("modern", wants("none")) as peer,
        session(peer.url, sign_in=Tokens(last=1)) as opened,
    ):
        with pytest.raises(SignedOut):
            await opened.list_tools()
        asked = len(peer.asked)
        with pytest.raises(SignedOut, match="has withdrawn the sign-in"):
            await opened.call("send", {})

        assert len(peer.asked) == asked


class Failing:
    """A sign-in that fails as it is told to, once it has worked a number of times."""

    def __init__(self, problem: Exception, *, works: int = 0) -> None:
        self._problem = problem
        self._works = works

    async def headers(self) -> Mapping[str, str]:
        self._works -= 1
        if self._works < 0:
            raise self._problem
        return {}

    async def renew(self, _refused: Mapping[str, str]) -> Mapping[str, str]:
        raise self._problem

    async def check(self, _doubted: Mapping[str, str]) -> Mapping[str, str]:
        raise self._problem


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    "problem",
    [
        VaultLocked("The master key is missing."),
        ConnectionFailed("The server for sign-ins does not answer."),
        ZeroDivisionError("a fault of ours"),
    ],
    ids=lambda problem: type(problem).__name__,
)
async def test_an_error_of_the_sign_in_is_that_of_the_call_and_the_session_lives_on(
    problem: Exception, era: Era
) -> None:
    failing = Failing(problem, works=100)
    async with scripted(era) as peer, session(peer.url, sign_in=failing) as opened:
        await opened.list_tools()
        connections = peer.connections
        failing._works = 0
        with pytest.raises(type(problem), match=str(problem)):
            await opened.call("send", {})

        assert peer.made == 0
        failing._works = 100
        if not isinstance(problem, ConnectionFailed):
            # After the other, the server is left alone for a while.
            assert await opened.call("send", {}) == ToolResult("sent")
        assert peer.connections == connections or era == "legacy"


@pytest.mark.parametrize("is_connected", [False, True])
@pytest.mark.parametrize(
    ("problem", "pauses"),
    [
        (ConnectionFailed("No tokens now."), [0.5, 1.0, 2.0]),
        (ConnectionFailed("No tokens now.", retry_after=timedelta(seconds=7)), [7.0, 7.0, 7.0]),
        (ConnectionFailed("No tokens now.", retry_after=timedelta(minutes=1)), []),
        (ConnectionFailed("The connection was removed.", permanent=True), []),
        (VaultLocked("The master key is missing."), []),
    ],
    ids=["in trouble", "busy", "busy for long", "permanent", "vault"],
)
async def test_a_sign_in_that_fails_for_now_is_tried_again_after_pauses(
    problem: Exception, pauses: list[float], *, is_connected: bool
) -> None:
    failing, taken = Failing(problem, works=100 if is_connected else 0), Pauses()
    async with (
        scripted("modern") as peer,
        session(peer.url, sign_in=failing, pauses=taken) as opened,
    ):
        if is_connected:
            await opened.list_tools()
            failing._works = 0
        with pytest.raises(type(problem), match=str(problem)):
            await opened.call("send", {})

        assert (taken.taken, peer.made) == (pauses, 0)


class Slow(Tokens):
    """Renews when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()
        self.renewing = asyncio.Event()
        self.renewed = False

    async def renew(self, refused: Mapping[str, str]) -> Mapping[str, str]:
        self.renewing.set()
        await self.go.wait()
        headers = await super().renew(refused)
        self.renewed = True
        return headers


@pytest.mark.parametrize("is_connected", [False, True])
async def test_a_call_that_is_given_up_does_not_break_off_a_renewal(*, is_connected: bool) -> None:
    slow = Slow()
    is_refused = not is_connected

    def script(asked: Asked) -> Reply | None:
        return wants("token-2")(asked) if is_refused else None

    async with scripted("modern", script) as peer, session(peer.url, sign_in=slow) as opened:
        if is_connected:
            await opened.list_tools()
            is_refused = True
        call = asyncio.create_task(opened.call("send", {}))
        await slow.renewing.wait()
        call.cancel()
        await asyncio.wait([call])
        closing = asyncio.create_task(opened.close())
        await asyncio.wait([closing], timeout=0.1)
        assert not closing.done()
        slow.go.set()
        await closing

        assert slow.renewed


HIDDEN = [
    "401 Unauthorized",
    "Error: 401 Unauthorized",
    "HTTP 401: invalid token",
    "Unauthorized",
    "invalid_token",
    'error: "invalid_token"',
    "Token expired",
    "The access token has expired.",
    "Invalid or expired token",
    "Access token is invalid",
]


@pytest.mark.parametrize("said", HIDDEN)
async def test_a_refused_sign_in_that_hides_in_a_result_is_renewed_and_a_safe_call_repeated(
    said: str,
) -> None:
    tokens = Tokens()
    async with (
        scripted("modern", says(said, "sent")) as peer,
        session(peer.url, sign_in=tokens) as opened,
    ):
        assert await opened.call("send", {}, repeatable=True) == ToolResult("sent")
        assert tokens.renewals == 1


class Stumbling(Tokens):
    """Renews at the third attempt."""

    async def renew(self, refused: Mapping[str, str]) -> Mapping[str, str]:
        if self.renewals < 2:
            self.renewals += 1
            raise ConnectionFailed("The token endpoint is busy.")
        return await super().renew(refused)


async def test_a_renewal_for_a_refusal_that_hides_is_tried_again_too() -> None:
    tokens, pauses = Stumbling(), Pauses()
    async with (
        scripted("modern", says("401 Unauthorized", "sent")) as peer,
        session(peer.url, sign_in=tokens, pauses=pauses) as opened,
    ):
        assert await opened.call("send", {}, repeatable=True) == ToolResult("sent")

    assert (tokens.number, pauses.taken) == (2, [0.5, 1.0])


async def test_a_call_that_ran_before_it_was_refused_is_not_repeated() -> None:
    tokens = Tokens()
    async with (
        scripted("modern", says("401 Unauthorized", "sent")) as peer,
        session(peer.url, sign_in=tokens) as opened,
    ):
        first = await opened.call("send", {})

        assert isinstance(first, ToolResult)
        assert first.failed
        assert first.text == f"401 Unauthorized\n{SIGNED_IN_AGAIN}"
        assert (len(peer.calls()), tokens.renewals) == (1, 1)
        assert await opened.call("send", {}) == ToolResult("sent")


async def test_a_call_that_is_refused_after_the_renewal_ends_the_sign_in() -> None:
    tokens = Tokens()
    async with (
        scripted("modern", says("401 Unauthorized")) as peer,
        session(peer.url, sign_in=tokens) as opened,
    ):
        await opened.call("send", {})
        with pytest.raises(SignedOut, match="Peer refused our sign-in"):
            await opened.call("send", {})

        assert (len(peer.calls()), tokens.renewals) == (2, 1)


async def test_a_refusal_that_stays_after_a_renewal_ends_the_sign_in() -> None:
    tokens = Tokens()
    async with (
        scripted("modern", says("401 Unauthorized")) as peer,
        session(peer.url, sign_in=tokens) as opened,
    ):
        with pytest.raises(SignedOut, match="Peer refused our sign-in"):
            await opened.call("send", {}, repeatable=True)

        assert tokens.renewals == 1
        assert len(peer.calls()) == 2


async def test_a_refusal_that_hides_in_an_error_of_the_protocol_is_recognised() -> None:
    def script(asked: Asked) -> Reply | None:
        return error(asked, -32001, "Unauthorized") if asked.method == "tools/call" else None

    async with (
        scripted("legacy", script) as peer,
        session(peer.url, sign_in=Tokens()) as opened,
    ):
        with pytest.raises(SignedOut):
            await opened.call("send", {}, repeatable=True)


@pytest.mark.parametrize(
    ("said", "arguments"),
    [
        ("The page answered 401 Unauthorized.", {}),
        ("401 Unauthorized", {"url": "https://news.example"}),
        ("401 Unauthorized", {"pages": [{"at": "www.news.example"}]}),
        ("GET https://news.example: 401 Unauthorized", {}),
        ("401 Unauthorized (https://news.example)", {}),
        ("Found 401 unauthorized uses of the logo", {}),
        ("You are unauthorized to see the board, ask Ann", {}),
        ("Unexpected token } in JSON", {}),
        ("Invalid argument", {}),
        ("invalid token limit: 7", {}),
        ("401 Unauthorized" + "!" * 300, {}),
    ],
)
async def test_a_result_that_may_be_about_something_else_is_left_to_the_agent(
    said: str, arguments: dict[str, object]
) -> None:
    tokens = Tokens()
    async with (
        scripted("modern", says(said)) as peer,
        session(peer.url, sign_in=tokens) as opened,
    ):
        assert await opened.call("send", arguments) == ToolResult(said, failed=True, outside=True)
        assert tokens.renewals == 0


def reads(*answers: str) -> Script:
    """Answer calls with results that are not marked as failed, the last one for ever."""

    def script(asked: Asked) -> Reply | None:
        said = answers[min(asked.count, len(answers)) - 1]
        return texts(asked, said) if asked.method == "tools/call" else None

    return script


UNMARKED = [
    *HIDDEN,
    '{"error":"invalid_token"}',
    '{"error": {"code": 401, "message": "Unauthorized"}}',
    '{"error": "invalid_token", "error_description": "The access token has expired"}',
    "Authentication required",
    "Error: 401 Unauthorized: authentication required.",
    "Not authenticated",
]


@pytest.mark.parametrize("said", UNMARKED)
async def test_an_ordinary_result_that_is_nothing_but_a_refusal_has_the_sign_in_renewed(
    said: str,
) -> None:
    tokens = Tokens()
    async with (
        scripted("modern", reads(said, "Two mails.")) as peer,
        session(peer.url, sign_in=tokens) as opened,
    ):
        assert await opened.call("send", {}, repeatable=True) == ToolResult("Two mails.")
        assert (tokens.renewals, len(peer.calls())) == (1, 2)


async def test_a_mail_that_reads_like_a_refusal_signs_nobody_out() -> None:
    tokens = Tokens()
    async with (
        scripted("modern", reads("401 Unauthorized")) as peer,
        session(peer.url, sign_in=tokens) as opened,
    ):
        for _ in range(3):
            read = await opened.call("send", {}, repeatable=True)
            assert read == ToolResult("401 Unauthorized")

        # It was looked into once.
        assert (tokens.renewals, len(peer.calls())) == (1, 4)


async def test_the_server_of_the_sign_in_decides_what_a_result_leaves_open() -> None:
    async with (
        scripted("modern", reads("401 Unauthorized")) as peer,
        session(peer.url, sign_in=Tokens(last=1)) as opened,
    ):
        with pytest.raises(SignedOut, match="has withdrawn the sign-in"):
            await opened.call("send", {}, repeatable=True)


async def test_a_single_call_whose_result_may_be_a_refusal_was_made() -> None:
    async with (
        scripted("modern", reads("401 Unauthorized", "sent")) as peer,
        session(peer.url, sign_in=Tokens()) as opened,
    ):
        renewed = await opened.call("send", {})
        assert renewed == ToolResult(f"401 Unauthorized\n{SIGNED_IN_AGAIN}")
        assert await opened.call("send", {}) == ToolResult("sent")

    async with (
        scripted("modern", reads("401 Unauthorized", "sent")) as peer,
        session(peer.url, sign_in=Tokens(last=1)) as opened,
    ):
        ended = await opened.call("send", {})
        assert ended == ToolResult(f"401 Unauthorized\n{SIGN_IN_ENDED}")
        with pytest.raises(SignedOut):
            await opened.call("send", {})
        assert len(peer.calls()) == 1


class Undecided(Tokens):
    """Cannot find out whether the sign-in holds."""

    def __init__(self, problem: Exception | None) -> None:
        super().__init__()
        self._problem = problem

    async def check(self, doubted: Mapping[str, str]) -> Mapping[str, str]:
        if self._problem is not None:
            raise self._problem
        return doubted


@pytest.mark.parametrize(
    "problem",
    [None, ConnectionFailed("No tokens now."), VaultLocked("The master key is missing.")],
    ids=["a key", "in trouble", "vault"],
)
async def test_a_result_stands_if_nobody_knows_whether_the_sign_in_holds(
    problem: Exception | None,
) -> None:
    async with (
        scripted("modern", reads("401 Unauthorized")) as peer,
        session(peer.url, sign_in=Undecided(problem)) as opened,
    ):
        for _ in range(2):
            read = await opened.call("send", {}, repeatable=True)
            assert read == ToolResult("401 Unauthorized")
        assert len(peer.calls()) == 2


@pytest.mark.parametrize(
    "said",
    [
        "401",
        '{"status": 401}',
        "Your boss writes: 401 Unauthorized",
        "Subject: Token expired\n\nDear Ann, your access token has expired. Sign in here.",
        "401 Unauthorized (https://news.example)",
        "Authentication required for the east wing from Monday",
        '{"error": "invalid_token", "mails": 2}',
        "Unauthorized! " * 30,
        "",
    ],
)
async def test_an_ordinary_result_that_says_more_is_left_alone(said: str) -> None:
    tokens = Tokens()
    async with (
        scripted("modern", reads(said)) as peer,
        session(peer.url, sign_in=tokens) as opened,
    ):
        assert await opened.call("send", {}, repeatable=True) == ToolResult(said)
        assert (tokens.renewals, len(peer.calls())) == (0, 1)


async def test_without_a_sign_in_nothing_is_renewed() -> None:
    async with scripted("modern", says("401 Unauthorized")) as peer, session(peer.url) as opened:
        assert await opened.call("send", {}) == ToolResult(
            "401 Unauthorized", failed=True, outside=True
        )
