"""Requests to push services: public ones only, no redirects, and answers of any kind."""

import logging
import socket
from collections.abc import Sequence
from datetime import timedelta
from ipaddress import ip_network

import pytest
from structlog.testing import capture_logs
from support.servers.push_service import Answer, PushServer, push_service

from backburner.core.errors import BadRequest, ConnectionFailed, NotAllowed
from backburner.gateway.push_service import MAX_RETRY_AFTER, CheckedPushService
from backburner.gateway.transport import Resolve
from backburner.ports import PushAnswer

LOOPBACK = [ip_network("127.0.0.1/32")]
HEADERS = {"ttl": "60"}


def names(**addresses: str) -> Resolve:
    async def resolve(host: str, _port: int) -> Sequence[str]:
        found = addresses.get(host.replace(".", "_"))
        if found is None:
            raise socket.gaierror(host)
        return found.split()

    return resolve


async def post(service: PushServer, answer: Answer, path: str = "/send/one") -> PushAnswer:
    service.answers.append(answer)
    checked = CheckedPushService(allow=LOOPBACK, within=timedelta(seconds=20))
    return await checked.post(f"http://127.0.0.1:{service.port}{path}", b"body", HEADERS)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer(201), PushAnswer(201)),
        (Answer(429, "", {"retry-after": "90"}), PushAnswer(429, timedelta(seconds=90))),
        (Answer(429, "", {"retry-after": "9" * 50}), PushAnswer(429, MAX_RETRY_AFTER)),
        (Answer(429, "", {"retry-after": "-1"}), PushAnswer(429)),
        (Answer(429, "", {"retry-after": "soon"}), PushAnswer(429)),
        (
            Answer(
                503,
                "",
                {
                    "date": "Mon, 16 Nov 2026 12:00:00 GMT",
                    "retry-after": "Mon, 16 Nov 2026 12:07:00 GMT",
                },
            ),
            PushAnswer(503, timedelta(minutes=7)),
        ),
        (
            Answer(
                503,
                "",
                {
                    "date": "Mon, 16 Nov 2026 12:00:00 GMT",
                    "retry-after": "Mon, 16 Nov 2026 11:00:00 GMT",
                },
            ),
            PushAnswer(503, timedelta()),
        ),
        (
            Answer(503, "", {"retry-after": "Mon, 16 Nov 2026 12:07:00 GMT"}),
            PushAnswer(503),
        ),
        (
            Answer(503, "", {"date": "nonsense", "retry-after": "Mon, 16 Nov 2026 12:07:00 GMT"}),
            PushAnswer(503),
        ),
        (
            Answer(
                503,
                "",
                {
                    "date": "Mon, 16 Nov 2026 12:00:00 -0000",
                    "retry-after": "Mon, 16 Nov 2026 12:07:00 GMT",
                },
            ),
            PushAnswer(503),
        ),
        (
            Answer(403, '{"reason": "BadJwtToken"}'),
            PushAnswer(403, reason="BadJwtToken"),
        ),
        (Answer(403, '{"reason": "<script>"}'), PushAnswer(403)),
        (Answer(403, '{"reason": 1}'), PushAnswer(403)),
        (Answer(403, "[" * 4000), PushAnswer(403)),
        (Answer(403, "x" * 100_000), PushAnswer(403)),
        (Answer(403, "\x80\xff"), PushAnswer(403)),
        (Answer(307, "", {"location": "http://127.0.0.1:1/"}), PushAnswer(307)),
    ],
)
async def test_an_answer_is_its_status_and_how_long_to_wait(
    answer: Answer, expected: PushAnswer
) -> None:
    async with push_service() as service:
        assert await post(service, answer) == expected
        assert service.asked == ["/send/one"]


async def test_no_library_logs_the_endpoint_or_the_address_of_the_message(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with push_service() as service:
        with caplog.at_level("DEBUG"):
            answer = Answer(201, "", {"location": "http://127.0.0.1:1/message/1"})
            await post(service, answer, "/send/canary")
            checked_before = len(caplog.records)
            logging.getLogger("httpx2").warning("Heard.")

    assert "canary" not in caplog.text
    assert "/message/1" not in caplog.text
    # Other requests are logged as before.
    assert len(caplog.records) == checked_before + 1


async def test_a_service_that_does_not_answer_is_a_failure_that_passes() -> None:
    async with push_service() as service:
        service.answers += [Answer(0), Answer(200, None)]
        checked = CheckedPushService(allow=LOOPBACK, within=timedelta(milliseconds=200))
        for _ in range(2):
            with pytest.raises(ConnectionFailed) as caught:
                await checked.post(f"http://127.0.0.1:{service.port}/send/secret", b"", HEADERS)
            assert not caught.value.permanent
            assert "secret" not in str(caught.value)


async def test_a_redirect_to_what_is_no_address_is_a_failure_without_the_endpoint() -> None:
    async with push_service() as service:
        with pytest.raises(ConnectionFailed) as caught:
            await post(
                service, Answer(307, "", {"location": "javascript:alert(1)"}), "/send/secret"
            )

    assert not caught.value.permanent
    assert "secret" not in str(caught.value)
    assert "alert" not in str(caught.value)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "10.0.0.1", "[::1]", "169.254.169.254", "100.100.100.200"]
)
async def test_what_is_not_public_is_refused_when_it_is_added_and_when_it_is_asked(
    host: str,
) -> None:
    async with push_service() as service:
        endpoint = f"https://{host}:{service.port}/send/secret"
        checked = CheckedPushService()
        with pytest.raises(NotAllowed) as refused:
            await checked.check(endpoint)
        with pytest.raises(ConnectionFailed) as caught:
            await checked.post(endpoint, b"", HEADERS)

    assert caught.value.permanent
    assert service.asked == []
    assert "secret" not in f"{refused.value} {caught.value}"


async def test_a_name_is_looked_up_and_one_private_address_is_enough_to_refuse_it() -> None:
    resolve = names(
        push_example="203.0.114.5 2a00:1450:4001:80b::200a", two_example="8.8.8.8 10.0.0.1"
    )
    checked = CheckedPushService(resolve=resolve)

    await checked.check("https://push.example/send")
    with capture_logs() as logs:
        with pytest.raises(NotAllowed, match=r"two\.example is not at a public") as refused:
            await checked.check("https://two.example/send")
        with pytest.raises(ConnectionFailed, match=r"two\.example is not at a public") as caught:
            await checked.post("https://two.example/send", b"", HEADERS)
    # Members would look up the names of a private network.
    assert "10.0.0.1" not in f"{refused.value} {refused.value.hint} {caught.value}"
    assert all("10.0.0.1" in entry["error"] for entry in logs)
    assert [entry["event"] for entry in logs] == ["push.address_refused"] * 2
    with pytest.raises(BadRequest, match=r"nowhere\.example of this subscription was not found"):
        await checked.check("https://nowhere.example/send")


@pytest.mark.parametrize(
    "endpoint",
    [
        "",
        "http://push.example/send",
        "javascript:alert(1)",
        "https://user:secret@push.example/",
        "https://push.example/#secret",
        "https://push.example:25/",
        "https://push.example/" + "x" * 2000,
        "https://pu\nsh.example/",
    ],
)
async def test_what_is_no_address_of_a_push_service_is_refused(endpoint: str) -> None:
    with pytest.raises(BadRequest) as caught:
        await CheckedPushService(resolve=names(push_example="8.8.8.8")).check(endpoint)

    assert "secret" not in str(caught.value)
