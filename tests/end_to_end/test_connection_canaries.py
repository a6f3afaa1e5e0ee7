"""The secrets of connections are nowhere but in the vault, in our process and on the wire."""

import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import httpx2
import pytest
from support.faults.canaries import (
    canary,
    descendants,
    found_in,
    in_files,
    in_process,
    memory_of,
    seen_by,
)
from support.mcp_peers import others
from support.model_api import CallTool, GiveOutcome, ModelApi, ModelRequest, Reply, Stall
from support.oauth_peer.peer import OAuthPeer, oauth_peer
from support.people.api_users import ApiUser
from support.programs.one_account import OneAccount
from support.programs.programs import Start
from support.programs.real_workers import program_settings
from support.requirements import requirement
from support.servers.model_threads import newest

from backburner.core.connections.program import StdioProgram
from backburner.core.conversation import Conversation
from backburner.core.question import Purpose

pytestmark = pytest.mark.starts

#: In the environment of a program of the operator.
IN_PROGRAM = canary("program")
#: It may be anywhere: whatever does not find it would find no other.
OPEN = canary("prompt")
LAST = "Once more"
ALL = ("mail", "fixed", "notes")
BAD_PROGRAM = Path(others.__file__).with_name("bad_program.py")


@pytest.fixture
def peer(start: Start) -> Iterator[OAuthPeer]:
    with oauth_peer(start) as peer:
        peer.switch(access_seconds=600)
        yield peer


@pytest.fixture
def server(start: Start, tmp_path: Path, model: ModelApi) -> OneAccount:
    program = StdioProgram(
        command=(sys.executable, "-I", str(BAD_PROGRAM), "good"),
        environment={"NOTES_TOKEN": IN_PROGRAM},
        readable=(sys.prefix, sys.base_prefix, str(BAD_PROGRAM.parent)),
    )
    other = {"engine": "openai", "address": f"{model.address}/v1", "model": "m"}
    return OneAccount(
        start,
        tmp_path / "data",
        model.address,
        env={},
        profiles={"other": other},
        profile="claude",
        log_level="debug",
        private_networks=["127.0.0.1/32"],
        **program_settings({"notes": program}),
    )


def use_all(heard: ModelRequest) -> Reply:
    """Be an agent that uses every connection; at last one that is still there afterwards."""
    last = newest(heard)
    if "Lunch with ann" in last:
        done = GiveOutcome({"complete": True, "message": "Done."})
        return [Stall()] if heard.holds(LAST) else [done]
    tools = (("notes", "do"), ("fixed", "whoami"), ("mail", "list_mails"))
    return [CallTool(heard.tool_of(*one)) for one in tools]


@requirement("A-mcp-isolation")
def test_secrets_of_connections_are_found_nowhere(
    server: OneAccount, model: ModelApi, peer: OAuthPeer, tmp_path: Path
) -> None:
    model.otherwise = use_all
    data, pid = tmp_path / "data", server.server.process.pid
    with local_user(server, data) as ann, events_of(ann) as events:
        mail = ann.connect("mail", url=peer.server)
        ann.sign_in(peer, mail, "ann")
        spare = ann.connect("spare", url=peer.server)
        fixed = ann.connect("fixed", url=peer.server, headers=new_header(ann, peer, spare))
        notes = ann.connect("notes", program="notes")
        for connection, tool in ((mail, "list_mails"), (fixed, "whoami"), (notes, "do")):
            ann.tick(connection, tool)
        prompt = f"Look for the {OPEN}."
        first = [
            ann.task(f"with {one}", prompt=prompt, connections=ALL, profile=one)
            for one in ("claude", "other")
        ]
        for task in first:
            ann.wait_until_completed(task)

        # The token of the one is renewed; that of the other is refused.
        peer.expire("ann", "carl")
        refused = ann.task("refused", prompt=prompt, connections=ALL, profile="other")
        server.looks.wait_for(lambda: asks_to_reconnect(server, refused))
        ann.ask("POST", f"/connections/{fixed}/headers", {"headers": new_header(ann, peer, spare)})
        ann.wait_until_completed(refused)
        assert peer.count("refreshed") == 1

        peer.revoke("ann", "carl")
        last = ann.task("last", prompt=f"{prompt} {LAST}.", connections=ALL)
        server.looks.wait_for(lambda: asks_to_reconnect(server, last))
        ann.sign_in(peer, mail, "ann")
        ann.ask("POST", f"/connections/{fixed}/headers", {"headers": new_header(ann, peer, spare)})
        server.looks.wait_for(lambda: was_told_all(model))

        # Now the agent is there, with all that it has been told.
        assert_kept_from_agents(pid)
        assert seen_by(model) == {OPEN}
        assert_not_given_out(ann, mail, fixed)
        settings = data / "backburner.toml"
        assert found_in(settings.read_bytes()) == {IN_PROGRAM}
        settings.unlink()
        assert (data / "backburner.sqlite3-wal").stat().st_size
        assert in_files(data) == {OPEN}
        ended = server.server.end(signal.SIGTERM)

    assert in_files(data) == {OPEN}
    assert found_in("\n".join([*ended.out, *ended.err]).encode()) == set()
    told = b"".join(events)
    assert re.search(rb"^data:", told, re.MULTILINE)
    assert found_in(told) == set()
    assert peer.record()["calls"].count(["carl", "whoami"]) >= 4
    secrets = {found for secret in peer.record()["secrets"] for found in found_in(secret.encode())}
    assert secrets == {canary(one) for one in ("access", "client", "code", "refresh")}


def assert_kept_from_agents(server: int) -> None:
    """See that agents have no secret in memory, and nobody in what they were started with."""
    programs, agents = split(descendants(server))
    assert set().union(*map(in_process, agents)) == {OPEN}
    assert any(b"Lunch with ann" in part for one in agents for part in memory_of(one))
    # The same search finds secrets where they have to be.
    assert set().union(*map(in_process, programs)) >= {IN_PROGRAM}
    ours = in_process(server)
    assert IN_PROGRAM in ours
    assert ours & {canary("access"), canary("refresh")}
    started_with = [Path(f"/proc/{one}/cmdline") for one in (server, *agents, *programs)]
    started_with += [Path(f"/proc/{one}/environ") for one in (server, *agents)]
    assert [path for path in started_with if found_in(path.read_bytes())] == []


def assert_not_given_out(user: ApiUser, *connections: str) -> None:
    export = user.client.get("/api/export").raise_for_status()
    backup = user.client.post("/api/backup").raise_for_status()
    assert [found_in(one.content) for one in (export, backup)] == [{OPEN}, {OPEN}]
    shown = [f"/connections/{one}" for one in connections]
    for path in ("/connections", *shown, "/connections/calls", "/audit", "/me/audit"):
        answer = user.client.get(f"/api{path}").raise_for_status()
        assert found_in(answer.content) == set(), path


def asks_to_reconnect(server: OneAccount, task: Conversation) -> bool:
    asked = server.looks.load(task).questions
    return any(one.purpose is Purpose.RECONNECT for one in asked)


def new_header(user: ApiUser, peer: OAuthPeer, spare: str) -> dict[str, str]:
    """Make a header of a token that the peer accepts, which another connection is given."""
    user.sign_in(peer, spare, "carl")
    tokens = [one for one in peer.record()["secrets"] if one.startswith(canary("access"))]
    return {"Authorization": f"Bearer {tokens[-1]}"}


def was_told_all(model: ModelApi) -> bool:
    """See whether Claude Code has passed on what the servers returned at last."""
    return any(
        heard.path.endswith("/messages") and heard.holds(LAST) and "Lunch with ann" in newest(heard)
        for heard in model.requests
    )


def split(processes: list[int]) -> tuple[list[int], list[int]]:
    """Tell the program of the operator, with what has started it, from all others."""
    programs = [
        one for one in processes if b"bad_program" in Path(f"/proc/{one}/cmdline").read_bytes()
    ]
    return programs, [one for one in processes if one not in programs]


@contextmanager
def local_user(server: OneAccount, data: Path) -> Iterator[ApiUser]:
    """Be the user of the machine."""
    (token,) = re.findall(r'^token = "(.*)"$', (data / "client.toml").read_text(), re.MULTILINE)
    headers = {"authorization": f"Bearer {token}"}
    with httpx2.Client(
        base_url=server.address, headers=headers, timeout=60, trust_env=False
    ) as client:
        yield ApiUser(server.user, client, server.looks)


@contextmanager
def events_of(user: ApiUser) -> Iterator[list[bytes]]:
    """Collect the stream of events, until the server ends."""
    told = list[bytes]()

    def follow() -> None:
        accept = {"accept": "text/event-stream"}
        with user.client.stream("GET", "/api/events", headers=accept) as stream:
            told.extend(stream.iter_bytes())

    thread = Thread(target=follow, daemon=True)
    thread.start()
    yield told
    thread.join(30)
    assert not thread.is_alive()
