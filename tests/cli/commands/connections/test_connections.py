"""`backburner connect`, `connections` and `disconnect`, with a real server and an MCP server."""

import asyncio
import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.mcp_peers.scripted import SEND, Asked, Reply, ScriptedPeer, reply
from support.programs.programs import Ended, Start
from support.requirements import requirement

Call = Callable[..., Ended]
CANARY = "canary-90b1"
SEARCH = {
    "name": "search",
    "description": "Search the mail.",
    "inputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True},
}
OTHER = {
    "name": "send",
    "description": "Send a mail and a copy.",
    "inputSchema": {"type": "object"},
}


@pytest.fixture
def peer() -> Iterator[ScriptedPeer]:
    """An MCP server in a thread of its own: the command line blocks this one."""
    peer = ScriptedPeer("modern", tools=(SEARCH, SEND))
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(peer.start(), loop).result(10)
    yield peer
    asyncio.run_coroutine_threadsafe(peer.stop(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture
def app(start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKBURNER_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("BACKBURNER_PRIVATE_NETWORKS", "127.0.0.1/32")
    programs = {"gone": {"command": [str(tmp_path / "no-such-program")]}}
    monkeypatch.setenv("BACKBURNER_MCP_PROGRAMS", json.dumps(programs))
    start("up", "--port", "0").wait_until_ready()


def wants_key(asked: Asked) -> Reply | None:
    is_known = asked.headers.get("authorization") == f"Bearer {CANARY}"
    return None if is_known else reply(status=401)


def read(ended: Ended) -> Any:
    assert ended.code == 0, ended.err
    return json.loads("\n".join(ended.out))


def type_in(monkeypatch: pytest.MonkeyPatch, text: str) -> list[str]:
    """Answer the prompts that hide what is typed; return what they asked."""
    asked = list[str]()

    def prompt(question: str) -> str:
        asked.append(question)
        return text

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr("click.termui.hidden_prompt_func", prompt)
    return asked


@pytest.mark.usefixtures("app")
def test_a_connection_is_added_looked_at_changed_and_removed(
    call: Call, peer: ScriptedPeer
) -> None:
    empty = call("connections")
    added = call("connect", peer.url, "--name", "mail", "--title", "My mail")
    listed = call("connections")
    shown = call("connections", "show", "mail")
    tools = call("connections", "tools", "mail")
    edited = call("connections", "edit", "mail", "--title", "Post", "--chats", "off")
    slow = call("connections", "edit", "mail", "--timeout", "5m")
    too_slow = call("connections", "edit", "mail", "--timeout", "1h")
    disabled = call("connections", "disable", "mail")
    off = read(call("connections", "show", "mail", "--json"))
    checked = call("connections", "refresh", "mail")
    long_title = call("connect", peer.url, "--title", "x" * 101)
    no_title = call("connections", "edit", "mail", "--title")
    nothing = call("connect", "")
    enabled = call("connections", "enable", "mail")
    unsure = call("disconnect", "mail")
    removed = call("disconnect", "mail", "--yes")

    assert empty.out == ["No connections. Add one with the command connect."]
    hint = "Each call asks first; to change that: `backburner connections tools mail`"
    assert added.out == [f"Connected mail: 2 tools. {hint}"]
    assert listed.out[1].split()[:6] == ["mail", "My", "mail", peer.url, "ready", "2"]
    assert checked.out == ["mail works: 2 tools. It is disabled."]
    assert long_title.code == no_title.code == nothing.code == 2
    assert long_title.err[0].startswith("The title has 101 characters; the limit is 100.")
    assert "Run `backburner connections edit --help`" in no_title.err[0]
    assert nothing.err == ["SERVER is empty. Run `backburner connect --help` for usage."]
    fields = dict(line.split(maxsplit=1) for line in shown.out)
    assert (fields["title"], fields["server"], fields["chats"]) == ("My mail", peer.url, "use it")
    assert [line.split()[:3] for line in tools.out[1:]] == [
        ["search", "accepted", "ask"],
        ["send", "accepted", "ask"],
    ]
    assert (edited.out, disabled.out) == (["Changed mail."], ["Disabled mail."])
    assert (off["title"], off["in_chats"], off["disabled"]) == ("Post", False, True)
    assert (fields["timeout"], slow.out) == ("1 minute", ["Changed mail."])
    assert off["call_timeout"] == 300
    assert too_slow.code == 2
    assert "Use 5 seconds to 30 minutes." in "\n".join(too_slow.err)
    assert enabled.out == ["Enabled mail."]
    assert unsure.code == 2
    assert removed.out == ["Removed mail."]
    assert call("connections", "show", "mail").code == 3


@pytest.mark.usefixtures("app")
def test_a_changed_tool_is_shown_as_a_difference_and_accepted(
    call: Call, peer: ScriptedPeer
) -> None:
    call("connect", peer.url, "--name", "mail")
    call("connections", "tick", "mail", "send", "--read-only")
    peer.tools = (SEARCH, OTHER, {**SEND, "name": "new\u202etool"}, {**SEND, "name": "draft"})
    refreshed = call("connections", "refresh", "mail")
    state = call("connections").out[1]
    noted = call("doctor", "--offline")
    tools = dict(line.split(maxsplit=1) for line in call("connections", "tools", "mail").out)
    misspelt = call("connections", "accept", "mail", "--tool", "sned", "--yes")
    known = call("connections", "accept", "mail", "--tool", "search", "--yes")
    unsure = call("connections", "accept", "mail")
    one = call("connections", "accept", "mail", "--tool", "send", "--yes")
    left = call("connections").out[1]
    (one_left,) = [line for line in call("doctor", "--offline").out if " connections " in line]
    rest = call("connections", "accept", "mail", "--yes")
    nothing = call("connections", "accept", "mail")
    peer.tools = (SEARCH,)
    call("connections", "refresh", "mail")
    fewer = dict(line.split(maxsplit=1) for line in call("connections", "show", "mail").out)

    assert "to be accepted: 2" in refreshed.out[0]
    assert "new\\u202etool" in "\n".join(refreshed.out)
    assert "2 tools to accept" in state
    (line,) = [line for line in noted.out if " connections " in line]
    assert line.startswith("[--]")
    assert "agents do not get 2 new or changed tools" in line
    accept = "See and accept what is new or changed: `backburner connections accept mail`"
    assert refreshed.out[1] == accept
    assert tools["search"].startswith("accepted  ask ")
    # Agents do not get these, whatever was ticked.
    assert tools["send"].startswith("changed   not offered ")
    assert tools["draft"].startswith("new       not offered ")
    assert misspelt.code == 3
    assert "See `backburner connections tools mail`." in misspelt.err[0]
    assert (known.code, known.out) == (0, ["No tools wait to be accepted."])
    assert unsure.code == 2
    assert "--- draft (none)" in unsure.out
    assert "-Send a mail." in one.out
    assert "+Send a mail and a copy." in one.out
    assert one.out[-1] == "Accepted: send. Your ticks for send end."
    assert "agents do not get 1 new or changed tool before" in one_left
    assert fewer["tools"] == "1 tool; gone: 2"
    assert "1 tool to accept" in left
    assert rest.out[-1] == "Accepted: draft."
    assert nothing.out == ["No tools wait to be accepted."]


@pytest.mark.usefixtures("app")
def test_a_tool_is_ticked_and_the_tick_taken_back(call: Call, peer: ScriptedPeer) -> None:
    call("connect", peer.url, "--name", "mail")

    ticked = call("connections", "tick", "mail", "search", "--read-only")
    repeatable = call("connections", "tick", "mail", "send", "--repeatable")
    nothing = call("connections", "tick", "mail", "send")
    unticked = call("connections", "untick", "mail", "search")
    decided = read(call("connections", "tools", "mail", "--json"))[0]["ticked_read_only"]
    forgotten = read(call("connections", "untick", "mail", "search", "--forget", "--json"))
    unknown = call("connections", "tick", "mail", "draft", "--read-only")

    assert ticked.out == ["mail/search: calls need no approval."]
    assert repeatable.out == ["mail/send: calls ask, may be repeated."]
    assert nothing.code == 2
    assert unticked.out == ["mail/search: calls ask."]
    assert (decided, forgotten["ticked_read_only"]) == (False, None)
    assert unknown.code == 3
    assert "See `backburner connections tools mail`." in unknown.err[0]
    assert call("connections", "tick", "mail", "send", "--off").out == ["mail/send: calls off."]
    assert "off: 1" in "\n".join(call("connections", "show", "mail").out)
    back = read(call("connections", "untick", "mail", "send", "--off", "--json"))
    assert (back["off"], back["ticked_repeatable"]) == (False, True)
    assert call("connections", "health", "mail").out == ["No calls in the last day."]


@pytest.mark.usefixtures("app")
def test_a_key_is_typed_in_or_read_from_a_file_and_shown_nowhere(
    call: Call, peer: ScriptedPeer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    peer.script = wants_key
    file, wrong = tmp_path / "key", tmp_path / "wrong"
    file.write_text(f"{CANARY}\n")
    wrong.write_text("wrong")
    refused = call("connect", peer.url, "--header-file", f"Authorization={wrong}")
    missing = call("connect", peer.url, "--header-file", f"Authorization={tmp_path / 'none'}")
    no_terminal = call("connect", peer.url, "--header", "Authorization")
    added = call("connect", peer.url, "--name", "mail", "--header-file", f"Authorization={file}")
    asked = type_in(monkeypatch, CANARY)
    typed = call("connect", peer.url, "--name", "wiki", "--header", "Authorization")
    again = call("connect", "mail", "--header", "Authorization")
    shown = call("connections", "show", "mail", "--json")

    assert (refused.code, missing.code, no_terminal.code) == (1, 2, 2)
    assert "does not accept this key. Nothing was changed." in refused.err[0]
    assert missing.err == [f"Cannot read {tmp_path / 'none'}: No such file or directory."]
    for ended in (added, typed, again):
        assert ended.out[0].startswith("Connected ")
    questions = [question.strip() for question in asked]
    assert questions == ["Value of Authorization (not shown):", "Token for Mail (not shown):"]
    assert read(shown)["headers"] == ["Authorization"]
    everything = [added, typed, again, shown, call("export", "--output", "-")]
    assert not any(CANARY in line for ended in everything for line in (*ended.out, *ended.err))
    log = "".join(path.read_text() for path in (tmp_path / "data").rglob("*.log*"))
    assert CANARY not in log


@requirement("Z-import")
@pytest.mark.usefixtures("app")
def test_servers_of_another_client_are_imported_with_their_keys_once(
    call: Call, peer: ScriptedPeer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    peer.script = wants_key
    file = tmp_path / "mcp.json"
    keyed = {"url": peer.url, "headers": {"Authorization": "Bearer ${MAIL_KEY}"}}
    plain = {"url": peer.url, "headers": {"Authorization": f"Bearer {CANARY}"}}
    file.write_text(json.dumps({"mcpServers": {"Work Mail": keyed}}))
    monkeypatch.setenv("MAIL_KEY", CANARY)
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _: "y")
    # Nobody is asked where there is no terminal, and nothing is sent.
    unasked = call("connections", "import", str(file), "--yes")
    assert peer.asked == []
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    added = call("connections", "import", str(file))
    file.write_text(json.dumps({"mcpServers": {"Work Mail": keyed, "mail": plain}}))
    again = call("connections", "import", str(file), "--yes", "--json")
    shown = call("connections", "show", "work-mail", "--json")

    assert "Import it in a terminal." in unasked.out[0]
    assert added.out == ["Work Mail: imported as work-mail: 2 tools", "1 imported"]
    assert f"    {peer.url}" in added.err
    assert "It is sent the headers Authorization." in added.err
    assert "They have the values of MAIL_KEY." in added.err
    outcomes = [(one["server"], one["connection"], one["outcome"]) for one in read(again)]
    assert outcomes == [
        ("Work Mail", "work-mail", "there already"),
        ("mail", "work-mail", "there already"),
    ]
    assert read(shown)["headers"] == ["Authorization"]
    everything = [unasked, added, again, shown]
    assert not any(CANARY in line for ended in everything for line in (*ended.out, *ended.err))


@requirement("Z-import")
@pytest.mark.usefixtures("app")
def test_a_server_with_another_header_is_another_connection(
    call: Call, peer: ScriptedPeer, tmp_path: Path
) -> None:
    call("connect", peer.url, "--name", "e2")
    file = tmp_path / "mcp.json"
    keyed = {"url": peer.url, "headers": {"Authorization": f"Bearer {CANARY}"}}
    file.write_text(json.dumps({"mcpServers": {"proj-http": keyed, "e2": keyed}}))
    arguments = ("connections", "import", str(file), "--yes", "--name", "proj-http=ghh")
    added = call(*arguments)
    again = call(*arguments)
    shown = read(call("connections", "show", "ghh", "--json"))
    listed = read(call("connections", "--json"))
    file.write_text(json.dumps({"mcpServers": {"plain": {"url": peer.url}}}))
    plain = call("connections", "import", str(file), "--yes")
    named = call("connections", "import", str(file), "--yes", "--name", "plain=second")

    assert added.out[0] == "proj-http: imported as ghh: 2 tools"
    assert again.out[0] == "proj-http: there already as ghh."
    assert shown["headers"] == ["Authorization"]
    assert [one["name"] for one in listed] == ["e2", "ghh"]
    assert plain.out[0] == "plain: there already as e2."
    assert named.out[0] == "plain: imported as second: 2 tools"


@pytest.mark.usefixtures("app")
def test_what_is_wrong_with_a_server_is_said_in_words(call: Call, peer: ScriptedPeer) -> None:
    call("connect", peer.url, "--name", "mail")
    peer.script = lambda _: reply(status=500)
    failing = call("connections", "refresh", "mail")
    doctor = call("doctor", "--offline")
    with closing(socket.socket()) as bound:
        # Nobody listens there.
        bound.bind(("127.0.0.1", 0))
        unreachable = call("connect", f"https://127.0.0.1:{bound.getsockname()[1]}/mcp")
    unknown = call("connect", "zzzz")
    misspelt = call("connect", "linera")
    bare = call("connect", "mcp.example.com/mcp")
    taken = call("connect", peer.url, "--name", "mail")
    program = call("connect", "gone")
    private = call("connect", "https://10.0.0.1/mcp")
    wanted = {"WWW-Authenticate": 'Bearer error="insufficient_scope", scope="mail.send"'}
    peer.script = lambda _: reply(status=403, headers=wanted)
    lacking = call("connections", "refresh", "mail")
    shown, listed = call("connections", "show", "mail"), call("connections")
    doctors = call("doctor", "--offline")
    again = call("connect", peer.url)
    part = call("connect", f"{peer.url}#part")
    peer.script = lambda _: reply(status=404)
    other = call("connect", peer.url, "--name", "other")
    peer.script = lambda _: reply(status=401)
    keyed = call("connect", peer.url, "--name", "keyed")

    assert failing.code == 1
    (line,) = [line for line in doctor.out if " connections " in line]
    assert line.startswith("[!!]")
    assert "mail failed at" in line
    assert "wants further permissions" in lacking.err[0]
    assert any(line.split() == ["server", "wants", "mail.send"] for line in shown.out)
    assert "wants permissions" in listed.out[1]
    assert any("mail wants further permissions: mail.send." in line for line in doctors.out)
    for ended in (unreachable, program, private):
        assert (ended.code, len(ended.err)) == (1, 1), ended
    for ended, hint in (
        (unknown, "See `backburner connections catalogue`."),
        (misspelt, "Did you mean linear?"),
        (bare, "Did you mean https://mcp.example.com/mcp?"),
    ):
        assert (ended.code, hint in ended.err[0]) == (3, True), ended
    assert (taken.code, "`backburner connect mail`" in taken.err[0]) == (4, True)
    assert "For another one, add --name." in taken.err[0]
    assert (again.code, "You have this server already as mail." in again.err[0]) == (4, True)
    assert (part.code, "from # on is never sent" in part.err[0]) == (2, True)
    assert f"{peer.url} is no MCP server (404 Not Found). Check the path;" in other.err[0]
    command = f"Run `backburner connect {peer.url} --header Authorization`."
    assert f"127.0.0.1 wants a key. {command}" in keyed.err[0]
    assert "Connection refused." in unreachable.err[0]
    assert "10.0.0.1 is not a public address. To allow it, put it into" in private.err[0]
    assert "Programs of the operator: gone." in unknown.err[0]
    assert [item["name"] for item in read(call("connections", "--json"))] == ["mail"]


@pytest.mark.usefixtures("app")
def test_commands_in_an_error_are_named_as_they_are_started(
    call: Call, peer: ScriptedPeer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BACKBURNER_COMMAND", "python3 dev.py run")
    peer.script = wants_key
    (tmp_path / "key").write_text(CANARY)
    call("connect", peer.url, "--name", "mail", "--header-file", f"Authorization={tmp_path}/key")
    peer.script = lambda _: reply(status=401)
    call("connections", "refresh", "mail")
    shown = dict(line.split(maxsplit=1) for line in call("connections", "show", "mail").out)
    client = call("connect", "gmail")
    no_title = call("connections", "edit", "mail", "--title")

    assert "Type in another: `python3 dev.py run connect mail`." in shown["last"]
    assert "Then: `python3 dev.py run connect gmail --client-id ID`" in client.err[0]
    assert "Run `python3 dev.py run connections edit --help`" in no_title.err[0]


@pytest.mark.usefixtures("app")
def test_work_and_tokens_name_the_connections_that_they_use(call: Call, peer: ScriptedPeer) -> None:
    for name in ("mail", "wiki"):
        call("connect", peer.url, "--name", name)
    when = ("--when", "every monday at 3")
    task = read(call("tasks", "add", "t", "Look.", *when, "--connection", "mail", "--json"))
    more = call("tasks", "edit", "t", "--connection", "mail", "--connection", "wiki")
    shown = call("tasks", "show", "t")
    none = read(call("tasks", "edit", "t", "--no-connections", "--json"))
    unknown = call("tasks", "edit", "t", "--connection", "bank")
    used = call("connections", "use", "t", "wiki")
    default = call("connections", "use", "t", "--default")
    both = call("connections", "use", "t", "wiki", "--none")
    job = read(call("jobs", "start", "Look.", "--connection", "wiki", "--json"))
    call("token", "create", "--name", "editor", "--connection", "mail")
    tokens = call("token", "list")

    assert task["connections"] == ["mail"]
    assert more.code == 0
    assert any(line.split() == ["connections", "mail,", "wiki"] for line in shown.out)
    assert none["connections"] == []
    assert unknown.code == 2
    assert unknown.err == ["You have no connection bank. See `backburner connections`."]
    assert used.out == ["Connections of t: wiki."]
    assert default.out == ["Connections of t: the default."]
    assert both.code == 2
    assert job["connections"] == ["wiki"]
    assert any("connection mail" in line for line in tokens.out)
