"""Names, titles and addresses of connections."""

import pytest

from backburner.core.connections.naming import (
    MAX_NAME_CHARS,
    check_name,
    check_title,
    check_url,
    is_same_url,
    make_name,
    name_of_host,
)
from backburner.core.errors import BadRequest


@pytest.mark.parametrize("name", ["mail", "mail-2", "a", "x" * MAX_NAME_CHARS])
def test_a_name_is_lower_case_letters_digits_and_hyphens(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        *("", "Mail", "2mail", "-mail", "mail-", "ma--il", "ma_il", "mail/send", "mäil", "mail\n"),
        *("x" * (MAX_NAME_CHARS + 1), "backburner", "all", "none"),
    ],
)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(BadRequest):
        check_name(name)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Gmail", "gmail"),
        ("My  Mail: work!", "my-mail-work"),
        ("2nd server", "nd-server"),
        ("日本", "server"),
        ("x" * 40, "x" * MAX_NAME_CHARS),
        ("x" * 31 + " more", "x" * 31),
    ],
)
def test_a_name_is_made_from_a_title(text: str, name: str) -> None:
    assert check_name(make_name(text)) == name


def test_a_made_name_is_not_one_that_is_taken_or_reserved() -> None:
    long = "x" * MAX_NAME_CHARS

    assert make_name("Mail", {"mail", "mail-2"}) == "mail-3"
    assert make_name("Backburner") == "backburner-2"
    assert make_name(long, {long}) == "x" * (MAX_NAME_CHARS - 2) + "-2"
    assert make_name("x" * 29 + "-yz", {"x" * 29 + "-yz"}) == "x" * 29 + "-2"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://mcp.linear.app/mcp", "linear"),
        ("https://gmail.mcp.example.com/", "example"),
        ("https://api.example.co.uk/mcp", "example"),
        ("https://mcp.ai", "mcp"),
        ("https://localhost:8000/mcp", "localhost"),
        ("https://192.0.2.7/mcp", "server"),
        ("https://[2001:db8::1]/mcp", "server"),
    ],
)
def test_a_host_is_named_by_who_runs_it(url: str, name: str) -> None:
    assert name_of_host(url) == name


def test_a_title_is_text_that_can_be_read() -> None:
    assert check_title("  My   mail ") == "My mail"
    for text in ("", " ", "Mail\u202eliaM", "x" * 101):
        with pytest.raises(BadRequest):
            check_title(text)


@pytest.mark.parametrize(
    "url",
    [
        "https://mcp.example.com/mcp",
        "https://mcp.example.com:8443/a?team=x",
        "http://localhost:8000/mcp",
    ],
)
def test_an_address_is_kept_as_it_is(url: str) -> None:
    assert check_url(url) == url
    assert is_same_url(url, f"{url}/")
    with pytest.raises(BadRequest, match="from # on"):
        check_url(f"{url}#part")


@pytest.mark.parametrize(
    "url",
    [
        *("", "mcp.example.com", "ftp://mcp.example.com", "https://", "https:///mcp"),
        *("javascript:alert(1)", "https://mcp.example.com/a b", "https://mcp.example.com/\u200b"),
        *("https://[::1/mcp", "https://mcp.example.com:http/"),
    ],
)
def test_what_is_no_address_of_a_server_is_refused(url: str) -> None:
    with pytest.raises(BadRequest, match="address of a server"):
        check_url(url)


@pytest.mark.parametrize(
    "url",
    [
        *("https://ada:pass@mcp.example.com/", "https://ada@mcp.example.com/"),
        *("https://mcp.example.com/?api_key=x", "https://mcp.example.com/?a=b&TOKEN=x"),
        *("https://mcp.example.com/?sig=x", "https://mcp.example.com/?key="),
    ],
)
def test_an_address_with_a_secret_is_refused_without_quoting_it(url: str) -> None:
    with pytest.raises(BadRequest, match="secret") as refused:
        check_url(url)

    assert url not in str(refused.value)
