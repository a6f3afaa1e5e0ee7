"""A program that is killed in the middle of a call on a connection, and started again."""

import signal
from collections.abc import Iterator

import pytest
from support.faults.outside import Outside
from support.model_api import CallTool, GiveOutcome, ModelApi, ModelRequest, Reply
from support.oauth_peer.peer import OAuthPeer, oauth_peer
from support.people.api_users import api_user
from support.programs.programs import Start
from support.programs.real_workers import RealWorkers
from support.requirements import requirement
from support.servers.model_threads import newest
from support.stage.make import USER

from backburner.core.question import YES, Purpose
from backburner.core.transitions import HAPPENED

SEND, LOOK = "Send the mail.", "Look for mail."


@pytest.fixture
def peer(start: Start) -> Iterator[OAuthPeer]:
    with oauth_peer(start) as peer:
        yield peer


def send_or_look(heard: ModelRequest) -> Reply:
    """Be an agent that sends a mail, or lists the mails."""
    last = newest(heard)
    if "The owner says that this call was made" in last:
        return [GiveOutcome({"complete": True, "message": "Sent."})]
    if "Lunch with ann" in last:
        return [GiveOutcome({"complete": True, "message": "Lunch."})]
    if heard.holds(SEND):
        return [CallTool("send", {"to": "bob", "text": "Twelve is fine."})]
    return [CallTool("list_mails")]


@requirement("Z-receipts", "A-mcp-failure")
@pytest.mark.parametrize(("sends", "looks"), [("claude", "other"), ("other", "claude")])
def test_a_mail_is_sent_once_and_a_list_asked_for_again(
    workers: RealWorkers,
    model: ModelApi,
    outside: Outside,
    peer: OAuthPeer,
    sends: str,
    looks: str,
) -> None:
    model.otherwise = send_or_look
    address = f"{model.address}/v1"
    workers.profiles["other"] = {"engine": "openai", "address": address, "model": "m"}
    workers.settings |= {"profile": "claude", "private_networks": ["127.0.0.1/32"]}
    dies, address = workers.serve()
    with api_user(outside, address, USER) as ann:
        connection = ann.connect("mail", url=peer.server)
        ann.sign_in(peer, connection, "ann")
        ann.tick(connection, "list_mails")
        mail = ann.task("mail", prompt=SEND, profile=sends, connections=["mail"])
        approval = outside.question(mail)
        peer.switch(held_calls=2)
        outside.answer(mail, approval, YES)
        look = ann.task("look", prompt=LOOK, profile=looks, connections=["mail"])
        outside.wait_for(lambda: len(peer.record()["calls"]) == 2)

        dies.end(signal.SIGKILL)
        workers.start()

        ann.wait_until_completed(look)
        doubt = outside.question(mail)
        assert doubt.purpose is Purpose.IN_DOUBT
        outside.answer(mail, doubt, HAPPENED)
        ann.wait_until_completed(mail)

    record = peer.record()
    assert sorted(record["calls"]) == [
        ["ann", "list_mails"],
        ["ann", "list_mails"],
        ["ann", "send"],
    ]
    assert record["sent"] == [["ann", "bob", "Twelve is fine."]]
    asked = outside.rows("SELECT purpose FROM questions ORDER BY asked_at")
    assert asked == [("approval",), ("in_doubt",)]
