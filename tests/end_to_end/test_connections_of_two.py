"""Two users of one server with connections to the same servers: nothing crosses."""

import re
from collections.abc import Iterator

import pytest
from support.faults.outside import Outside
from support.mcp_peers import others
from support.model_api import CallTool, GiveOutcome, ModelApi, ModelRequest, Reply
from support.oauth_peer.peer import OAuthPeer, oauth_peer
from support.people.api_users import ApiUser, api_user
from support.programs.programs import Start
from support.programs.real_workers import RealWorkers, program_settings
from support.requirements import requirement
from support.servers.model_threads import newest
from support.stage.make import MATE, USER


@pytest.fixture
def peer(start: Start) -> Iterator[OAuthPeer]:
    with oauth_peer(start) as peer:
        yield peer


def ask_who_it_is(heard: ModelRequest) -> Reply:
    """Be an agent that asks the servers who it is, and for an image."""
    if found := re.search(r"\b(ann|bob)\b", newest(heard)):
        return [GiveOutcome({"complete": True, "message": f"I am {found[1]}."})]
    image = [CallTool("get-tiny-image")] if heard.full_name("get-tiny-image") in heard.tools else []
    return [*image, CallTool("whoami")]


@requirement("A-mcp-isolation")
def test_nobody_reaches_the_connection_of_the_other(
    workers: RealWorkers, model: ModelApi, outside: Outside, peer: OAuthPeer
) -> None:
    model.otherwise = ask_who_it_is
    _, address = workers.serve(
        private_networks=["127.0.0.1/32"], **program_settings({"images": others.everything()})
    )
    with (
        api_user(outside, address, USER) as ann,
        api_user(outside, address, MATE) as bob,
    ):
        images = ann.connect("images", program="images")
        ann.tick(images, "get-tiny-image")
        mails = {}
        for user, who in ((ann, "ann"), (bob, "bob")):
            mails[who] = user.connect("mail", url=peer.server)
            user.sign_in(peer, mails[who], who)
            user.tick(mails[who], "whoami")
        tasks = {
            "ann": ann.task("who", connections=["mail", "images"]),
            "bob": bob.task("who", connections=["mail"]),
        }
        ann.wait_until_completed(tasks["ann"])
        bob.wait_until_completed(tasks["bob"])

        assert {who: outside.said(task)[-1] for who, task in tasks.items()} == {
            "ann": "I am ann.",
            "bob": "I am bob.",
        }
        assert sorted(peer.record()["calls"]) == [["ann", "whoami"], ["bob", "whoami"]]
        assert bob.status("POST", "/tasks", {**TASK, "connections": ["images"]}) == 400
        assert_apart(ann, bob, peer, mails["bob"])
        assert_apart(bob, ann, peer, mails["ann"])
        assert_apart(bob, ann, peer, images)
        (file,) = ann.ask("GET", "/files")["items"]
        assert bob.ask("GET", "/files")["items"] == []
        for method in ("GET", "DELETE"):
            assert bob.status(method, f"/files/{file['digest']}") == 404
        assert ann.status("GET", f"/files/{file['digest']}") == 200


TASK = {"name": "other", "kind": "oneshot", "prompt": "Look."}


def assert_apart(one: ApiUser, other: ApiUser, peer: OAuthPeer, theirs: str) -> None:
    """See that a user can do nothing with a connection of another, whose it stays as it is."""
    before = other.ask("GET", f"/connections/{theirs}")
    path = f"/connections/{theirs}"
    digests = {tool["name"]: tool["digest"] for tool in before["tools"]}
    (tool, *_) = digests
    for method, end, body in (
        ("GET", "", None),
        ("PATCH", "", {"title": "Mine", "disabled": True}),
        ("DELETE", "", None),
        ("POST", "/headers", {"headers": {"X-Key": "mine"}}),
        ("POST", "/refresh", None),
        ("POST", "/accept", {"tools": digests}),
        ("POST", "/ticks", {"tool": tool, "read_only": True}),
        ("POST", "/sign-in", {}),
        ("POST", "/sign-in/wait", {"secret": "guessed", "seconds": 0}),
        ("GET", "/program", None),
    ):
        assert one.status(method, f"{path}{end}", body) == 404, f"{method} {end}"
    assert theirs not in [each["id"] for each in one.ask("GET", "/connections")["items"]]
    assert one.ask("GET", f"/connections/calls?connection={theirs}")["items"] == []
    seen = {each["connection_id"] for each in one.ask("GET", "/connections/calls")["items"]}
    assert theirs not in seen
    assert theirs not in one.client.get("/api/export").raise_for_status().text
    assert theirs in other.client.get("/api/export").text
    assert other.ask("GET", path) == before
    if before["auth"] == "oauth":
        assert_sign_in_apart(one, other, peer, theirs)


def assert_sign_in_apart(one: ApiUser, other: ApiUser, peer: OAuthPeer, theirs: str) -> None:
    """See that nobody finishes what another has begun, even with all they know of it."""
    begun = other.ask("POST", f"/connections/{theirs}/sign-in", {})
    finish = {"address": peer.approve(begun["url"], "eve"), "secret": begun["secret"]}
    exchanged = peer.count("exchanged")

    assert one.status("POST", "/connections/finish-sign-in", finish) in (403, 404)

    assert peer.count("exchanged") == exchanged
