"""Push messages: what they say, what browsers are called, and where pages can have them."""

import json

import pytest
from support.stage.make import NOON, USER

from backburner.core.channels.push import (
    MAX_BODY_CHARS,
    MAX_LABEL_CHARS,
    MAX_PAYLOAD_BYTES,
    MAX_TITLE_CHARS,
    MAX_WIDE_CHARS,
    PushSubscription,
    check_label,
    compose_payload,
    describe_browser,
    why_impossible,
)
from backburner.core.errors import BadRequest
from backburner.core.ids import PushId

KIT = "AppleWebKit/537.36 (KHTML, like Gecko)"
ANDROID = f"Mozilla/5.0 (Linux; Android 10; K) {KIT} "
IPHONE = f"Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) {KIT} "
WINDOWS = f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {KIT} "


def payload(text: str, title: str = "tidy") -> dict[str, str]:
    written = compose_payload(title=title, text=text, address="/q/q_1", tag="n_1", kind="question")
    assert len(written) <= MAX_PAYLOAD_BYTES
    read: dict[str, str] = json.loads(written)
    return read


def test_a_message_has_the_title_the_text_and_where_to_go() -> None:
    assert payload("Shall I?\n\nOptions: yes / no") == {
        "title": "tidy",
        "body": "Shall I?\n\nOptions: yes / no",
        "url": "/q/q_1",
        "tag": "n_1",
        "kind": "question",
    }
    assert payload("", title=" \n")["title"] == "Backburner"
    assert payload("", title="two\nlines")["title"] == "two lines"


@pytest.mark.parametrize(
    "wide", ["\U0001f600", "é", "\n", '"', "\\", "\u202e", "\0", "\ud800", "a"]
)
def test_long_texts_are_cut_to_what_a_message_may_have(wide: str) -> None:
    cut = payload(f"x{wide * 5000}x", title=f"x{wide * 5000}x")

    assert len(cut["title"]) <= MAX_TITLE_CHARS
    assert len(cut["body"]) <= MAX_BODY_CHARS
    assert cut["body"].endswith("…")
    assert "\u202e" not in cut["title"] + cut["body"]


def test_a_text_is_cut_no_shorter_than_necessary() -> None:
    assert len(payload("a" * 5000)["body"]) == MAX_BODY_CHARS
    assert len(payload("a" * MAX_BODY_CHARS)["body"]) == MAX_BODY_CHARS
    assert len(payload("\U0001f600" * 5000)["body"]) == MAX_WIDE_CHARS


@pytest.mark.parametrize(
    ("user_agent", "name"),
    [
        (f"{ANDROID}Chrome/140.0.0.0 Mobile Safari/537.36", "Chrome on Android"),
        (
            f"{ANDROID}SamsungBrowser/28.0 Chrome/130.0.0.0 Safari/537.36",
            "Samsung Internet on Android",
        ),
        (f"{IPHONE}Version/18.5 Mobile/15E148 Safari/604.1", "Safari on iPhone"),
        (f"{WINDOWS}Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0", "Edge on Windows"),
        (
            "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
            "Firefox on Linux",
        ),
        ("curl/8.9", "A browser"),
        ("", "A browser"),
    ],
)
def test_a_browser_is_called_by_its_name_and_system(user_agent: str, name: str) -> None:
    assert describe_browser(user_agent) == name


def test_a_label_is_written_as_it_is_shown() -> None:
    assert check_label("  My\tphone \n") == "My phone"
    assert "\u202e" not in check_label("My \u202ephone")
    for label in ("", " \n", "x" * (MAX_LABEL_CHARS + 1)):
        with pytest.raises(BadRequest, match="label"):
            check_label(label)


@pytest.mark.parametrize(
    ("origin", "is_possible"),
    [
        ("https://bb.example", True),
        ("http://localhost:8484", True),
        ("http://bb.localhost:8484", True),
        ("http://127.0.0.1:8484", True),
        ("http://[::1]:8484", True),
        ("http://192.168.1.5:8484", False),
        ("http://laptop:8484", False),
        ("http://", False),
    ],
)
def test_pages_have_them_where_browsers_trust_the_address(
    origin: str, *, is_possible: bool
) -> None:
    problem = why_impossible(origin)

    assert (problem == "") is is_possible
    assert is_possible or "https" in problem


def test_a_subscription_shows_its_service_and_none_of_its_secrets() -> None:
    subscription = PushSubscription(
        id=PushId("p_1"),
        user_id=USER,
        session="k_1",
        endpoint="https://push.example/send/secret",
        receiver_key=b"secret",
        auth=b"secret",
        server_key=b"secret",
        label="phone",
        created_at=NOON,
    )

    assert subscription.service == "push.example"
    assert "secret" not in repr(subscription)
    assert (subscription.sent_at, subscription.failed_at, subscription.error) == (None, None, None)
