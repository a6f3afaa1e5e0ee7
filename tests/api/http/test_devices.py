"""Browsers are named in words of ours, whatever they say of themselves."""

import pytest

from backburner.api.http.devices import describe_device

_WEBKIT = "AppleWebKit/537.36 (KHTML, like Gecko)"


@pytest.mark.parametrize(
    ("user_agent", "words"),
    [
        (
            "Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0",
            "Firefox on Linux",
        ),
        (
            f"Mozilla/5.0 (Windows NT 10.0) {_WEBKIT} Chrome/130.0 Safari/537.36 Edg/130.0",
            "Edge on Windows",
        ),
        (
            f"Mozilla/5.0 (Linux; Android 14) {_WEBKIT} Chrome/130.0 Mobile Safari/537.36",
            "Chrome on Android",
        ),
        (
            f"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15) {_WEBKIT} Version/18.0 Safari/605.1",
            "Safari on macOS",
        ),
        (
            f"Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) {_WEBKIT} Safari/604.1",
            "Safari on iPhone",
        ),
        ("Mozilla/5.0 (compatible)", "A browser"),
        ("curl/8.9 (Linux)", ""),
        ("", ""),
    ],
)
def test_a_browser_is_named_with_its_system(user_agent: str, words: str) -> None:
    assert describe_device(user_agent) == words
