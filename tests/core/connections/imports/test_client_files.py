"""The files of other clients: every form that they have, and files that are none of theirs."""

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.requirements import requirement

from backburner.core.connections.imports.client_files import (
    MAX_SERVERS,
    inputs_of,
    parse,
    resolve,
    variables_of,
)
from backburner.core.connections.imports.client_server import (
    ClientServer,
    ImportedProgram,
    ImportedServer,
    LeftOut,
)
from backburner.core.connections.imports.references import Values
from backburner.core.errors import BadRequest

NOTHING = Values()
TIME = {"command": "uvx", "args": ["mcp-server-time"]}


def read(content: object, values: Values = NOTHING) -> list[ClientServer]:
    text = content if isinstance(content, str) else json.dumps(content)
    return [resolve(one, values) for one in parse(text, "The file").servers]


def only(entry: object, values: Values = NOTHING) -> ClientServer:
    [server] = read({"mcpServers": {"one": entry}}, values)
    return server


def reason(entry: object, values: Values = NOTHING) -> str:
    server = only(entry, values)
    assert isinstance(server, LeftOut), server
    return server.reason


@requirement("Z-import")
def test_programs_of_claude_desktop_are_read() -> None:
    content = {
        "globalShortcut": "",
        "mcpServers": {
            "filesystem": {
                "command": "npx",
                "args": ["-y", "@modelcontextprotocol/server-filesystem", "/srv/notes"],
                "env": {"KEY": "secret", "PORT": 80, "NONE": None},
            }
        },
    }
    [program] = read(content)
    assert program == ImportedProgram(
        name="filesystem",
        command=("npx", "-y", "@modelcontextprotocol/server-filesystem", "/srv/notes"),
        environment={"KEY": "secret", "PORT": "80"},
        sources={"KEY": "the file", "PORT": "the file"},
    )
    assert "secret" not in repr(program)


@requirement("Z-import")
def test_servers_of_claude_code_are_read_for_all_and_for_projects() -> None:
    content = {
        "numStartups": 7,
        "mcpServers": {"linear": {"type": "http", "url": "https://mcp.linear.app/mcp"}},
        "projects": {
            "/srv/app": {
                "history": [],
                "mcpServers": {
                    "api": {
                        "type": "streamable-http",
                        "url": "${API:-https://api.example.com}/mcp",
                        "headers": {"Authorization": "Bearer ${API_KEY}", "X-Team": "${TEAM:-}"},
                        "oauth": {"clientId": "abc", "callbackPort": 8080},
                    }
                },
            },
            "/srv/bare": {},
            "/srv/odd": 3,
        },
    }
    linear, api = read(content, Values(variables={"API_KEY": "k1"}))
    assert linear == ImportedServer(name="linear", url="https://mcp.linear.app/mcp")
    assert api == ImportedServer(
        name="api",
        project="/srv/app",
        url="https://api.example.com/mcp",
        headers={"Authorization": "Bearer k1"},
        client_id="abc",
    )
    assert "k1" not in repr(api)


@requirement("Z-import")
def test_servers_of_cursor_are_read() -> None:
    values = Values(variables={"HOME": "/srv/ada", "TOKEN": (token := "t-1")})
    content = {
        "mcpServers": {
            "files": {
                "type": "stdio",
                "command": "${userHome}/bin/files",
                "env": {"TOKEN": "${env:TOKEN}"},
            },
            "asana": {
                "url": "https://mcp.asana.com/v2/mcp",
                "auth": {"CLIENT_ID": "id", "CLIENT_SECRET": "${env:TOKEN}"},
            },
        }
    }
    files, asana = read(content, values)
    assert files == ImportedProgram(
        name="files",
        command=("/srv/ada/bin/files",),
        environment={"TOKEN": token},
        sources={"TOKEN": "your variable TOKEN"},
    )
    assert asana == ImportedServer(
        name="asana", url="https://mcp.asana.com/v2/mcp", client_id="id", client_secret=token
    )


@requirement("Z-import")
def test_servers_of_vs_code_are_read_with_comments_and_inputs() -> None:
    text = """\ufeff{
      // What is typed in. /* not a comment's end
      "inputs": [
        {"type": "promptString", "id": "key", "password": true,
         "description": "Key of \\"GitHub\\""},
        {"type": "promptString", "id": "team",},
        {"type": "odd"}, 3,
      ],
      "servers": {
        "github": {
          "type": "http", "url": "https://api.githubcopilot.com/mcp/", // "quoted"
          "headers": {"Authorization": "Bearer ${input:key}", "X": "a,]"}, /* a
          comment */
        },
        "local": {
          "command": "/usr/bin/thing", "env": {"TEAM": "${input:team}", "B": "${input:key}"}
        },
      },
    }"""
    file = parse(text, "The file")
    assert file.inputs["key"].description == 'Key of "GitHub"'
    assert file.inputs["key"].is_secret
    assert not file.inputs["team"].is_secret
    assert [inputs_of(one) for one in file.servers] == [["key"], ["team", "key"]]
    typed = Values(inputs={"key": "k", "team": "red"})
    github, local = (resolve(one, typed) for one in file.servers)
    assert isinstance(github, ImportedServer)
    assert github.headers == {"Authorization": "Bearer k", "X": "a,]"}
    assert isinstance(local, ImportedProgram)
    assert local.environment == {"TEAM": "red", "B": "k"}
    untyped = resolve(file.servers[0], Values())
    assert isinstance(untyped, LeftOut)
    assert "typed in" in untyped.reason
    assert inputs_of(untyped) == []


@pytest.mark.parametrize(
    "content",
    [
        {"mcp": {"servers": {"one": TIME}}},
        {"one": TIME},
        {"servers": {"one": TIME}, "mcpServers": {}},
        {"mcp": TIME},
    ],
)
def test_servers_are_found_wherever_clients_keep_them(content: Mapping[str, Any]) -> None:
    [program] = read(content)
    assert isinstance(program, ImportedProgram)
    assert program.command == ("uvx", "mcp-server-time")


@pytest.mark.parametrize(
    ("entry", "url"),
    [
        ({"serverUrl": "https://a.example/mcp"}, "https://a.example/mcp"),
        ({"httpUrl": "https://a.example/mcp"}, "https://a.example/mcp"),
        ({"type": "remote", "url": "https://a.example/mcp"}, "https://a.example/mcp"),
        ({"type": "http", "url": "https://a.example/sse"}, "https://a.example/sse"),
    ],
)
def test_addresses_are_found_under_every_name(entry: object, url: str) -> None:
    server = only(entry)
    assert isinstance(server, ImportedServer)
    assert server.url == url


def test_a_whole_line_as_a_command_is_split_into_words() -> None:
    program = only({"command": "npx -y 'some-server' --port 1"})
    assert isinstance(program, ImportedProgram)
    assert program.command == ("npx", "-y", "some-server", "--port", "1")


def test_the_path_of_a_program_may_have_blanks() -> None:
    program = only({"command": "/opt/My Server/run"})
    assert isinstance(program, ImportedProgram)
    assert program.command == ("/opt/My Server/run",)


def test_a_program_that_passes_a_server_on_is_taken_over_as_that_server() -> None:
    entry = {
        "command": "npx",
        "args": [
            *("-y", "mcp-remote@latest", "https://mcp.example.com/mcp", "3334", "--debug"),
            *("--header", "Authorization:${AUTH}", "--header", "X-Team: red"),
            *("--transport", "http-only", "--host", "localhost"),
        ],
        "env": {"AUTH": "Bearer ${TOKEN}"},
    }
    assert only(entry, Values(variables={"TOKEN": "t"})) == ImportedServer(
        name="one",
        url="https://mcp.example.com/mcp",
        headers={"Authorization": "Bearer t", "X-Team": "red"},
    )


@pytest.mark.unmeasured
def test_a_program_with_many_arguments_is_read_in_no_time() -> None:
    arguments = ["mcp-remote", "https://mcp.example.com/mcp", *["--debug"] * 40_000]
    began = time.thread_time()

    assert isinstance(only({"command": "npx", "args": arguments}), ImportedServer)

    # It takes a tenth of that.
    assert time.thread_time() - began < 2


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--transport", "sse-only"], "older transport"),
        (["--static-oauth-client-info", "{}"], "'--static-oauth-client-info' of mcp-remote"),
        (["--header"], "'--header' of mcp-remote"),
        (["--header", "Bare"], "has no value"),
    ],
)
def test_what_mcp_remote_would_do_besides_is_refused(more: list[str], said: str) -> None:
    entry = {"command": "npx", "args": ["mcp-remote", "https://a.example/mcp", *more]}
    assert said in reason(entry)


def test_mcp_remote_without_an_address_is_a_program_like_others() -> None:
    assert isinstance(only({"command": "npx", "args": ["mcp-remote"]}), ImportedProgram)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (3, "not an object"),
        ({}, "either an address or a command"),
        ({"command": "a", "url": "https://a.example"}, "either an address or a command"),
        ({"serverUrl": "https://a.example", "url": "https://a.example"}, "either an address"),
        ({**TIME, "disabled": True}, "switched off"),
        ({**TIME, "enabled": False}, "switched off"),
        ({**TIME, "cwd": "/srv"}, "`cwd`"),
        ({**TIME, "envFile": ".env"}, "`envFile`"),
        ({"url": "https://a.example", "headersHelper": "x"}, "`headersHelper`"),
        ({"url": "https://a.example/sse"}, "older transport"),
        ({"url": "https://a.example/mcp", "type": "sse"}, "older transport"),
        ({"url": "https://a.example/mcp", "type": "ws"}, "'ws' is not supported"),
        ({**TIME, "type": "http"}, "'http', but it has a command"),
        ({**TIME, "type": ["http"]}, "but it has a command"),
        ({"url": "https://a.example/mcp", "type": ["http"]}, "is not supported"),
        ({"url": "https://a.example/mcp", "type": {}}, "is not supported"),
        ({"command": "uvx", "args": "x"}, "not a list"),
        ({"command": "uvx", "args": [["x"]]}, "not text"),
        ({"command": "uvx", "args": [True]}, "not text"),
        ({"command": "uvx", "args": ["x" * 10_001]}, "too long"),
        ({"command": "say 'hello"}, "cannot be split"),
        ({**TIME, "env": []}, "`env` is not an object"),
        ({**TIME, "env": {"A": "a\0b"}}, "cannot be given"),
        ({"url": "https://a.example", "headers": {"A": "${TOKEN}"}}, "TOKEN, which is not set"),
        ({"command": "${workspaceFolder}/run"}, "only its client knows"),
        ({"command": "/bin/x", "env": {"A": "${workspaceFolder}"}}, "only its client knows"),
        ({"command": "/bin/x", "env": {"A": "${command:pick}"}}, "only its client knows"),
        ({"command": "/bin/x", "args": ["--for", "${TOKEN}"]}, "as a variable in `env`"),
        ({"command": "/bin/x", "args": ["${env:TOKEN}"]}, "as a variable in `env`"),
        ({"command": "/bin/x", "args": ["--a=${HOME}${TOKEN:-x}"]}, "as a variable in `env`"),
        ({"command": "/bin/x", "args": ["${input:key}"]}, "as a variable in `env`"),
        ({"command": "/bin/${TOKEN}"}, "as a variable in `env`"),
        ({"command": "bash", "args": ["-c", "npx x"]}, "is a shell"),
    ],
)
def test_what_cannot_be_taken_over_is_left_out_with_a_reason(entry: object, said: str) -> None:
    assert said in reason(entry)


def test_the_rest_is_read_when_one_server_cannot_be() -> None:
    bad, good = read({"mcpServers": {"bad": 1, "good": TIME}})
    assert isinstance(bad, LeftOut)
    assert isinstance(good, ImportedProgram)


@pytest.mark.parametrize("name", ["", "a\u202eb", "a\nb", " a", "x" * 101])
def test_a_name_that_cannot_be_read_is_left_out(name: str) -> None:
    [server] = read({"mcpServers": {name: TIME}})
    assert isinstance(server, LeftOut)
    assert "\u202e" not in server.name
    assert len(server.name) <= 100


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not JSON"),
        ("{", "in line 1"),
        ("[1]", "not an object with servers"),
        ('{"a": 1}', "has no servers"),
        ('{"mcpServers": {"a": 1, "a": 2}}', "has the name 'a' twice"),
        ('{"mcpServers": {}, "mcpServers": {}}', "has the name 'mcpServers' twice"),
        ('{"a": ' * 100_000, "nested too deeply"),
        ("[" * 1_000_000, "nested too deeply"),
        (f'{{"a": {"9" * 5_000}}}', "number that is too long"),
        ('{"a": "unfinished', "is not JSON"),
        ('{"a": 1 /* unfinished', "is not JSON"),
    ],
)
@requirement("Z-import")
def test_a_file_that_is_none_is_refused(text: str, said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        parse(text, "The file")


@requirement("Z-import")
def test_a_file_with_ten_thousand_servers_is_refused() -> None:
    content = {"mcpServers": {f"server{number}": TIME for number in range(10_000)}}
    with pytest.raises(BadRequest, match=f"10,000 servers; the limit is {MAX_SERVERS}"):
        parse(json.dumps(content), "The file")


def test_a_file_without_any_server_has_none() -> None:
    assert parse('{"mcpServers": {}}', "The file").servers == ()


def test_hostile_comments_take_no_time() -> None:
    with pytest.raises(BadRequest):
        parse('{"a": 1,' + "/*a" * 1_000_000, "The file")
    with pytest.raises(BadRequest):
        parse('{"a": 1' + "," * 1_000_000, "The file")


@requirement("Z-import")
def test_the_variables_that_a_server_would_be_sent_are_named() -> None:
    content = {
        "mcpServers": {
            "a": {
                "url": "https://${HOST:-a.example}/mcp",
                "headers": {"X": "${KEY} ${env:KEY} ${OTHER:-}", "Y": "${input:z}", "Z": "plain"},
                "oauth": {"clientId": "${CLIENT}", "clientSecret": "${HOME}"},
            },
            "b": {"command": "/bin/x", "env": {"A": "${TOKEN}", "B": "${userHome}"}},
            "c": 1,
        }
    }
    file = parse(json.dumps(content), "The file")
    assert [variables_of(one) for one in file.servers] == [
        ["HOST", "KEY", "OTHER", "CLIENT"],
        ["TOKEN"],
        [],
    ]


@requirement("Z-import")
def test_a_program_says_where_the_values_of_its_variables_come_from() -> None:
    environment = {
        "TZ": "${AWS_SECRET_ACCESS_KEY}",
        "A": "${TOKEN:-plain} ${env:TOKEN} ${env:OTHER}",
        "B": "Bearer ${input:key}",
        "C": "${userHome}/${USER}",
        "D": "plain $TOKEN",
    }
    given = Values(
        variables=dict.fromkeys("AWS_SECRET_ACCESS_KEY TOKEN OTHER HOME USER".split(), "canary"),
        inputs={"key": "canary"},
    )
    program = only({"command": "/bin/x", "env": environment}, given)
    assert isinstance(program, ImportedProgram)
    assert program.sources == {
        "TZ": "your variable AWS_SECRET_ACCESS_KEY",
        "A": "your variable TOKEN and your variable OTHER",
        "B": "what you type in",
        "C": "your variable HOME and your variable USER",
        "D": "the file",
    }
    assert "canary" not in repr(program)


def test_a_server_with_a_newer_address_in_the_catalogue_is_named() -> None:
    assert "backburner connect linear" in reason({"url": "https://mcp.linear.app/sse"})
    assert "backburner connect" not in reason({"url": "https://mcp.example.com/sse"})
    assert "backburner connect" not in reason({"url": "/sse"})


KEYS = st.sampled_from(
    [
        *("mcpServers", "servers", "mcp", "projects", "inputs", "id", "description", "password"),
        *("command", "args", "env", "url", "serverUrl", "httpUrl", "type", "headers", "oauth"),
        *("auth", "clientId", "CLIENT_SECRET", "disabled", "enabled", "cwd", "transport", "/srv/a"),
    ]
)
TEXTS = st.one_of(
    st.text(max_size=8),
    st.sampled_from(
        [
            *("npx", "uvx", "/bin/x", "-y", "mcp-remote", "--header", "a@1.0.0", "stdio", "sse"),
            *("https://a.example/mcp", "${HOME}", "${A:-b}", "${input:a}", "${", "node", "bash"),
        ]
    ),
)
CONTENTS = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.one_of(KEYS, TEXTS), inner, max_size=5)
    ),
    max_leaves=25,
)


ENTRIES = st.dictionaries(KEYS, CONTENTS, max_size=6)


@requirement("Z-import")
@given(st.dictionaries(st.one_of(KEYS, TEXTS), CONTENTS, max_size=4), ENTRIES)
def test_whatever_a_file_has_is_read_or_refused_in_words(
    content: dict[str, Any], entry: dict[str, Any]
) -> None:
    for text in (json.dumps(content), json.dumps({"mcpServers": {"a": entry}})):
        with suppress(BadRequest):
            for server in parse(text, "The file").servers:
                resolved = resolve(server, Values(variables={"HOME": "/srv/ada"}))
                if isinstance(resolved, ImportedProgram):
                    assert "\n" not in "".join(resolved.command)
