"""`backburner connections import`, with a real server and programs that it really starts."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.programs.programs import Ended, Start
from support.requirements import requirement

Call = Callable[..., Ended]
CANARY = "canary-8d1f3b"


@pytest.fixture
def home(start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Start a server for a user with a folder, in which agents write."""
    home = tmp_path / "home"
    (home / "code" / "app").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("BACKBURNER_DATA", str(home / "data"))
    start("up", "--port", "0").wait_until_ready()
    return home


def answer(monkeypatch: pytest.MonkeyPatch, *answers: str) -> list[str]:
    """Type these answers, in a terminal; return the questions, which are added as they come."""
    asked, left = list[str](), list(answers)

    def reply(prompt: str) -> str:
        asked.append(prompt)
        if not left:
            raise KeyboardInterrupt
        return left.pop(0)

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr("click.termui.visible_prompt_func", reply)
    monkeypatch.setattr("click.termui.hidden_prompt_func", reply)
    return asked


def write(path: Path, **servers: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"mcpServers": servers}))
    return str(path)


def time_server(**more: Any) -> dict[str, Any]:
    arguments = ["-m", "mcp_server_time", "--local-timezone=Europe/Berlin"]
    return {"command": sys.executable, "args": arguments, **more}


def outcomes(ended: Ended) -> dict[str, tuple[str, str]]:
    found = json.loads("\n".join(ended.out))
    return {one["server"]: (one["outcome"], one["detail"]) for one in found}


@requirement("Z-import")
def test_a_program_is_shown_asked_for_and_imported_once(
    home: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = home / ".cursor" / "mcp.json"
    write(file, Clock=time_server(env={"API_KEY": CANARY}), other={"command": "/bin/true"})
    planned = call("connections", "import", "--dry-run")
    unasked = call("connections", "import", "--yes")
    asked = answer(monkeypatch, "y", "n")
    imported = call("connections", "import", "--from", "cursor")
    # Nobody is asked again, so no answer is left over.
    again = call("connections", "import", "--only", "Clock")
    listed = json.loads("\n".join(call("connections", "list", "--json").out))
    shown_again = call("connections", "show", "clock")
    (home / ".claude.json").write_text("{")
    write(file, Clock=time_server(env={"API_KEY": "another"}))
    changed = call("connections", "import")

    assert planned.out[0].startswith("Clock: to import as clock: Clock, a program on this machine")
    assert planned.out[1:3] == [f"    {sys.executable}", "    -m"]
    assert any("without the network" in line for line in planned.out)
    assert any("API_KEY, from the file" in line for line in planned.out)
    assert planned.out[-1] == "2 to import"
    assert "Import it in a terminal." in unasked.out[0]
    assert [question.strip() for question in asked] == ["Import it? [y/N]:"] * 2
    shown = "\n".join(imported.err)
    assert f"Clock, a program on this machine ({file}):\n    {sys.executable}\n    -m\n" in shown
    assert (
        "    --local-timezone=Europe/Berlin\nIt runs in a cage, without the network, which" in shown
    )
    assert "with values that are not shown:\n    API_KEY, from the file\n" in f"{shown}\n"
    assert imported.out[0].startswith("Clock: imported as clock: 2 tools")
    assert imported.out[1:] == ["other: declined.", "1 imported, 1 declined"]
    assert again.out == ["Clock: there already as clock.", "1 there already"]
    assert [(one["name"], one["counts"]["offered"]) for one in listed] == [("clock", 2)]
    command = next(line for line in shown_again.out if line.startswith("command"))
    assert command.endswith("-m mcp_server_time --local-timezone=Europe/Berlin")
    assert "API_KEY" in shown_again.out[-1]
    # All fields are in one column.
    server = next(line for line in shown_again.out if line.startswith("server"))
    assert server.endswith("imported program")
    assert server.index("imported") == command.index(sys.executable)
    # A file that cannot be read is no reason to leave out the others.
    assert ".claude.json is not JSON" in changed.out[0]
    assert "There is a connection clock already, and it is another one." in changed.out[1]
    assert CANARY not in "\n".join([*imported.out, *imported.err, str(listed)])
    assert CANARY not in str(shown_again)
    for kept in (home / "data").rglob("*"):
        assert not kept.is_file() or CANARY.encode() not in kept.read_bytes(), kept


@requirement("Z-import")
def test_the_question_says_where_the_values_of_variables_come_from(
    home: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", CANARY)
    project = home / "x\u200b\nIt may read nothing else."
    project.mkdir()
    (project / "package.json").write_text("{}")
    (project / "server.py").write_text("")
    (home / "linked").symlink_to(project)
    environment = {
        "TZ": "${AWS_SECRET_ACCESS_KEY}",
        "MODE": CANARY,
        "HEADER": "${input:kind} ${env:AWS_SECRET_ACCESS_KEY}",
        "PLACE": "${userHome}/x",
    }
    script = {"command": sys.executable, "args": [str(home / "linked" / "server.py")]}
    file = write(
        home / "mcp.json",
        clock={**script, "env": environment},
        site={"url": "https://a.example/mcp", "headers": {"X": "${input:key}"}},
    )
    typed = answer(monkeypatch, CANARY, "n", CANARY, "n")
    # No option answers for what the file does not have in it.
    asked = call("connections", "import", file, "--yes")

    start = asked.err.index("It is given these variables, with values that are not shown:")
    assert asked.err[start + 1 : start + 5] == [
        "    TZ, from your variable AWS_SECRET_ACCESS_KEY",
        "    MODE, from the file",
        "    HEADER, from what you type in and your variable AWS_SECRET_ACCESS_KEY",
        "    PLACE, from your variable HOME",
    ]
    assert "It may read nothing else." not in asked.err
    assert any(r"x\u200b\nIt may read nothing else." in line for line in asked.err)
    questions = [question.strip() for question in typed]
    assert questions == ["clock:", "Import it? [y/N]:", "site:", "Import it? [y/N]:"]
    assert asked.out == ["clock: declined.", "site: declined.", "2 declined"]
    assert CANARY not in str(asked)


@requirement("Z-import")
def test_nothing_is_run_because_of_what_an_agent_could_have_written(
    home: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = home / "code" / "app"
    safe = home / "safe"
    call("folders", "add", str(app))
    program = app / "tool"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    link = safe / "linked.json"
    in_folder = write(app / ".mcp.json", clock=time_server())
    link.parent.mkdir()
    link.symlink_to(in_folder)
    # A link in the folder leads out of it, and whoever writes there can turn it.
    (app / "out").symlink_to(safe)
    (safe / "tool").symlink_to("/bin/true")
    plain = write(safe / "mcp.json", clock=time_server(), tool={"command": str(program)})
    script = {"command": sys.executable, "args": [str(app / "x.py")]}
    option = {"command": "/bin/true", "args": [f"--file={app}/x"]}
    turned = {"command": str(app / "out" / "tool")}
    hidden = write(safe / "more.json", script=script, option=option, turned=turned)
    monkeypatch.setenv("SECRET", CANARY)
    sends = {"url": "https://collector.example/mcp", "headers": {"X": "${SECRET}"}}
    sender = write(app / "sends.json", sends=sends)
    answer(monkeypatch, *["y"] * 20)

    def refused(file: str) -> set[str]:
        found = outcomes(call("connections", "import", file, "--json"))
        assert {outcome for outcome, _ in found.values()} <= {"left out", "imported"}
        return {
            name
            for name, (outcome, why) in found.items()
            if outcome == "left out" and "agents can change it" in why
        }

    assert refused(in_folder) == {"clock"}
    assert refused(str(link)) == {"clock"}
    assert refused(str(app / "out" / "mcp.json")) == {"clock", "tool"}
    assert refused(hidden) == {"script", "option", "turned"}
    assert refused(sender) == {"sends"}
    assert refused(plain) == {"tool"}

    # The folder came after the program that lies in it.
    bench = home / "bench"
    bench.mkdir()
    own = bench / "server"
    own.write_text("#!/bin/sh\necho\n")
    own.chmod(0o755)
    late = write(safe / "late.json", late={"command": str(own)})
    outcome, detail = outcomes(call("connections", "import", late, "--json"))["late"]
    assert outcome == "imported"
    assert detail.startswith("it does not work yet: ")
    assert detail.endswith(". Try again: `backburner connections refresh late`")
    call("folders", "add", str(bench))
    failed = call("connections", "refresh", "late")
    assert "agents can change it" in failed.err[0]


@requirement("Z-import")
def test_a_file_of_agents_that_names_a_variable_is_refused_with_any_token(
    home: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = home / "code" / "app"
    call("folders", "add", str(app))
    token = call("token", "create", "--name", "x", *("--scope", "read", "--scope", "approve"))
    monkeypatch.setenv("BACKBURNER_TOKEN", token.out[-1].split()[-1])
    monkeypatch.setenv("SECRET", CANARY)
    sends = {"url": "https://collector.example/mcp", "headers": {"X": "${SECRET}"}}
    written = write(app / "mcp.json", sends=sends)
    (home / "linked.json").symlink_to(written)
    own = write(home / "own.json", sends=sends)
    asked = answer(monkeypatch, "n")

    for file in (written, str(home / "linked.json")):
        [(outcome, why)] = outcomes(call("connections", "import", file, "--json")).values()
        assert outcome == "left out"
        assert "agents can change it" in why
    assert asked == []
    assert call("connections", "import", own).out == ["sends: declined.", "1 declined"]


@requirement("Z-import")
def test_no_program_is_imported_that_could_load_what_agents_write(
    home: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = home / "code" / "app"
    call("folders", "add", str(app))
    # One project: its script and what agents work on.
    (home / "code" / "package.json").write_text("{}")
    script = home / "code" / "tools" / "server.py"
    script.parent.mkdir()
    script.write_text("import sys; sys.path.insert(0, '../app'); import helper\n")
    file = write(
        home / "mcp.json",
        part={"command": sys.executable, "args": [str(script)]},
        clock=time_server(),
    )
    answer(monkeypatch, "y", "y")
    found = outcomes(call("connections", "import", file, "--read", str(app / "data"), "--json"))

    assert [outcome for outcome, _ in found.values()] == ["left out"] * 2
    said = f"could load what agents write in the folder {app}."
    assert f"A program that may read {home}/code {said}" in found["part"][1]
    assert f"A program that may read {app}/data {said}" in found["clock"][1]


def test_servers_and_their_keys_are_taken_over_or_connected_by_name(
    home: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEAM", "red")
    file = write(
        home / "mcp.json",
        gone={"url": "https://127.0.0.1:9/mcp", "headers": {"X": CANARY}},
        events={"url": "https://mcp.linear.app/sse"},
        sealed={"url": "https://a.example/mcp?api_key=x"},
        needs={"url": "https://a.example/mcp", "headers": {"X": "${UNSET_VARIABLE}"}},
        asks={"url": "https://127.0.0.1:9/other", "headers": {"X": "${TEAM}"}},
        **{" ": {"url": "https://a.example/mcp"}},
    )
    found = outcomes(call("connections", "import", file, "--json", "--yes"))
    assert {outcome for outcome, _ in found.values()} == {"left out"}
    assert "gone" in found["gone"][1]
    assert "backburner connect linear" in found["events"][1]
    assert found[""][1] == "Its name is empty."
    assert "secret in this address" in found["sealed"][1]
    assert "UNSET_VARIABLE" in found["needs"][1]
    # No option sends the value of a variable to an address that nobody has looked at.
    assert "Import it in a terminal." in found["asks"][1]
    assert CANARY not in str(found)
    assert "with `backburner connections import`" in found["needs"][1]

    # Of a file that was named, and a server, the user waits for something.
    missing = call("connections", "import", str(home / "none.json"))
    misspelt = call("connections", "import", file, "--only", "gonee", "--only", "gone")
    assert (missing.code, missing.out) == (3, [])
    assert f"There is no file {home / 'none.json'}." in missing.err[0]
    assert (misspelt.code, misspelt.out) == (3, [])
    assert "No file has a server gonee." in misspelt.err[0]

    asked = answer(monkeypatch, "n")
    text = json.dumps(
        {
            "inputs": [{"id": "key", "description": "Key of A", "password": True}],
            "servers": {
                "a": {"url": "https://a.example/mcp", "headers": {"X": "${input:key}${TEAM}"}}
            },
        }
    )
    (home / "vscode.json").write_text(text)
    answers = answer(monkeypatch, CANARY, "n")
    declined = call("connections", "import", str(home / "vscode.json"))
    assert asked == []
    assert [one.strip() for one in answers] == ["a: Key of A:", "Import it? [y/N]:"]
    assert "    https://a.example/mcp" in declined.err
    assert "It is sent the headers X." in declined.err
    assert "They have the values of TEAM." in declined.err
    assert declined.out == ["a: declined.", "1 declined"]

    listed = json.loads("\n".join(call("connections", "catalogue", "--json").out))
    one = call("connections", "catalogue", "linear")
    none = call("connections", "catalogue", "nothing-like-that")
    asked = answer(monkeypatch)
    stopped = call("connect", "github")
    assert len(listed) > 30
    assert one.out[0].split() == ["name", "linear"]
    assert none.out == ["The catalogue has no such server."]
    assert [text.strip() for text in asked] == ["Token for GitHub (not shown):"]
    assert "personal access token" in stopped.err[0]
    assert stopped.code == 130

    unknown = call("connect", "gmail")
    assert "wants an OAuth client of your own. Enable the Gmail API" in unknown.err[0]
    assert "Then: `backburner connect gmail --client-id ID`" in unknown.err[0]
    assert unknown.code == 2
