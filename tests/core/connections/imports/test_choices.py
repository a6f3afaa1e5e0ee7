"""Servers of a file as its user chooses among them: without secrets, and only addresses."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backburner.core.connections.imports.choices import (
    MAX_ASKED,
    MAX_ASKED_CHARS,
    ImportChoice,
    ImportKind,
    fill_in,
    list_choices,
)
from backburner.core.connections.imports.client_files import parse
from backburner.core.errors import BadRequest

CANARY = "canary-2b91"
URL = "https://mcp.example.com/mcp"


def write(*entries: Any, **more: Any) -> str:
    servers = {f"server {number}": entry for number, entry in enumerate(entries)}
    return json.dumps({"mcpServers": servers, **more})


def choose(*entries: Any, **more: Any) -> list[ImportChoice]:
    return list(list_choices(parse(write(*entries, **more), "The file")))


def remote(**headers: str) -> dict[str, Any]:
    return {"url": URL, "headers": headers}


def test_a_server_is_shown_with_the_names_of_its_secrets() -> None:
    [choice] = choose(remote(Authorization=f"Bearer {CANARY}", Empty=" "))

    assert (choice.kind, choice.name, choice.url) == (ImportKind.SERVER, "server 0", URL)
    assert choice.headers == ["Authorization"]
    assert choice.asks == []
    assert CANARY not in repr(choice)


def test_values_that_are_not_in_the_file_are_asked_for_and_filled_in() -> None:
    entry = remote(A="${input:key} ${env:TOKEN}", B="${REGION:-north}", C="${input:other}")
    inputs = [{"id": "key", "description": "Your\u202e key"}]
    [choice] = choose(entry, inputs=inputs)

    asked = [(one.key, one.label, one.is_needed) for one in choice.asks]
    assert asked == [
        ("input:key", "Your\\u202e key", True),
        ("input:other", "other", True),
        ("TOKEN", "TOKEN", True),
        ("REGION", "REGION", False),
    ]
    file = parse(write(entry, inputs=inputs), "The file")
    typed = {"input:key": "k", "input:other": "o", "TOKEN": CANARY}
    assert fill_in(file, 0, typed).headers == {"A": f"k {CANARY}", "B": "north", "C": "o"}
    with pytest.raises(BadRequest, match="The value of TOKEN is missing"):
        fill_in(file, 0, {**typed, "TOKEN": " "})


def test_programs_and_what_is_left_out_are_shown_and_not_taken_over() -> None:
    entries = {"command": "uvx", "env": {"KEY": CANARY}}, {"url": f"{URL}/sse"}
    program, old = choose(*entries)

    assert (program.kind, program.headers, program.url) == (ImportKind.PROGRAM, (), "")
    assert (old.kind, "older transport" in old.reason) == (ImportKind.LEFT_OUT, True)
    file = parse(write(*entries), "The file")
    with pytest.raises(BadRequest, match="server 0 is not imported here"):
        fill_in(file, 0, {})
    with pytest.raises(BadRequest, match="older transport"):
        fill_in(file, 1, {})
    with pytest.raises(BadRequest, match="no such server"):
        fill_in(file, 2, {})


def test_the_client_of_a_file_is_named_without_its_secret() -> None:
    known, unknown, long = choose(
        *(
            {"url": URL, "oauth": {"clientId": client, "clientSecret": CANARY}}
            for client in ("backburner-7", "${CLIENT}", "x" * 300)
        )
    )

    assert (known.client_id, unknown.client_id, long.client_id) == ("backburner-7", "", "")
    assert CANARY not in repr(known)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"url": "https://${HOST}/mcp"}, "A part of its address is not in the file."),
        ({"url": "https://${input:host}/mcp"}, "A part of its address is not in the file."),
        ({"url": f"https://me:{CANARY}@example.com/"}, "There is a secret in this address"),
        ({"url": f"{URL}?token={CANARY}"}, "There is a secret in this address"),
        ({"url": f"ftp://me:{CANARY}@example.com"}, "Its address is not that of a server."),
        ({"url": f"https://{CANARY} x/"}, "Its address is not that of a server."),
        (remote(Cookie=CANARY), "The header Cookie cannot be set."),
        (remote(A=f"{CANARY}\nB: c"), "The value of the header A cannot be sent."),
        (remote(A=f"${{a b:-{CANARY}}}"), "which only its client knows"),
        (remote(A="${HOME}"), "the variable HOME, which is not set"),
        (remote(**{"A\u202e": "b"}), "is not the name of a header"),
        (remote(**{f"A-{number}": "b" for number in range(11)}), "may have 10 headers"),
        (
            remote(A="".join(f"${{V{number}}}" for number in range(MAX_ASKED + 1))),
            "more than 20 values",
        ),
        (remote(A="${" + "V" * (MAX_ASKED_CHARS + 1) + "}"), "name of a value to type in is too"),
        (
            {"command": "npx", "args": ["mcp-remote@1.0.0", URL, f"--key={CANARY}"]},
            "The option '--key' of mcp-remote",
        ),
        (
            {"command": "npx", "args": ["mcp-remote@1.0.0", URL, CANARY]},
            "An argument of mcp-remote",
        ),
    ],
)
def test_what_cannot_be_taken_over_says_why_without_its_secret(entry: Any, reason: str) -> None:
    [choice] = choose(entry)

    assert choice.kind is ImportKind.LEFT_OUT
    assert reason in choice.reason
    assert CANARY not in repr(choice)


def test_one_value_is_not_multiplied_without_end() -> None:
    file = parse(write(remote(A="${TOKEN}" * 1_000)), "The file")

    with pytest.raises(BadRequest, match="too long with its values"):
        fill_in(file, 0, {"TOKEN": "x" * 8_000})


def test_an_address_may_have_parts_with_values_of_the_file() -> None:
    [choice] = choose({"url": "https://${HOST:-mcp.example.com}/mcp"})
    file = parse(write({"url": "https://${HOST:-mcp.example.com}/mcp"}), "The file")

    assert (choice.url, choice.asks) == (URL, [])
    # Its address is the one that was shown, whatever is typed in.
    assert fill_in(file, 0, {"HOST": "evil.example"}).url == URL


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4)
    ),
    max_leaves=12,
)
KEYS = st.sampled_from(["url", "command", "args", "headers", "env", "type", "oauth", "disabled"])


@given(st.dictionaries(st.text(max_size=20), st.dictionaries(KEYS, JSON, max_size=5), max_size=4))
def test_any_servers_can_be_looked_at(servers: dict[str, Any]) -> None:
    file = parse(json.dumps({"mcpServers": servers}), "The file")

    choices = list_choices(file)
    assert [choice.number for choice in choices] == list(range(len(servers)))
    for choice in choices:
        assert bool(choice.url) == (choice.kind is ImportKind.SERVER)
