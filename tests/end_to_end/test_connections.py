"""Work on a connection while nobody watches: tokens end and are renewed, sign-ins end and are asked
for once, and then the work goes on by itself. The authorization server is not our code.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.doubles.engine import Step
from support.faults.outside import Outside
from support.model_api import CallTool, GiveOutcome, ModelApi, ModelRequest, Reply
from support.oauth_peer.peer import OAuthPeer, oauth_peer
from support.programs.programs import Start
from support.programs.real_workers import RealWorkers
from support.requirements import requirement
from support.servers.model_threads import newest
from support.stage.connections import (
    LOOPBACK,
    add_connection,
    caller,
    load,
    sign_in_as,
    sign_in_deps,
)

from backburner.actions.connections import definitions
from backburner.actions.deps import Deps
from backburner.core.connections.connection import Connection, ConnectionState
from backburner.core.conversation import Conversation, EndedAs, PauseReason, Status
from backburner.core.question import YES, Purpose
from backburner.core.transitions import HAPPENED
from backburner.gateway.upstream.servers import UpstreamServers

NO_STEPS: tuple[Step, ...] = ()


@pytest.fixture
def peer(start: Start) -> Iterator[OAuthPeer]:
    with oauth_peer(start) as peer:
        yield peer


def read_mail(heard: ModelRequest) -> Reply:
    """Be an agent that lists the mails, and says what it has found."""
    if "Lunch with ann" in newest(heard):
        return [GiveOutcome({"complete": True, "message": "Lunch."})]
    return [CallTool("list_mails")]


class Owner:
    """The user: signs in to the peer, and hands out work."""

    def __init__(self, outside: Outside, peer: OAuthPeer, keys: Path) -> None:
        self._outside, self._peer = outside, peer
        servers: Any = UpstreamServers(allow=LOOPBACK, start=_no_programs)
        self._deps: Deps = sign_in_deps(outside.database, keys, tool_servers=servers)
        # Whoever is there has handed out something.
        outside.chat()
        self.connection = add_connection(outside.database, peer)

    def sign_in(self) -> None:
        asyncio.run(self._sign_in())

    def trust(self) -> None:
        """Look at the tools, and say that the list of mails may be read unasked."""
        asyncio.run(self._trust())

    def task(self) -> Conversation:
        return self._outside.task(
            *NO_STEPS, prompt="Look for mail.", may_send=False, connections=("mail",)
        )

    def load(self) -> Connection:
        return load(self._outside.database, self.connection)

    async def _sign_in(self) -> None:
        await sign_in_as(self._deps, self._peer, self.connection)

    async def _trust(self) -> None:
        which = self.connection.id
        check = await definitions.refresh(self._deps, caller(), which)
        assert check.error is None, check.error
        await definitions.tick(self._deps, caller(), which, "list_mails", {"read_only": True})


def wait_until_completed(outside: Outside, task: Conversation) -> None:
    outside.wait_for(lambda: outside.load(task).ended_as)
    assert outside.load(task).ended_as is EndedAs.COMPLETED


def _no_programs(_program: object) -> Any:
    raise AssertionError


@requirement("A-auth-expired", "A-mcp-load", "Z-connections")
@pytest.mark.parametrize("engine", ["claude", "openai"])
def test_work_outlives_the_tokens_and_the_sign_in_of_its_connection(
    workers: RealWorkers,
    model: ModelApi,
    outside: Outside,
    peer: OAuthPeer,
    tmp_path: Path,
    engine: str,
) -> None:
    model.otherwise = read_mail
    keys = tmp_path / "master_keys"
    owner = Owner(outside, peer, keys)
    owner.sign_in()
    owner.trust()
    if engine == "openai":
        address = f"{model.address}/v1"
        workers.profiles = {"other": {"engine": "openai", "address": address, "model": "m"}}
    workers.start(master_key_file=str(keys), private_networks=["127.0.0.1/32"])

    first = owner.task()
    wait_until_completed(outside, first)

    # The token ends: the worker renews it, and nobody is asked.
    peer.expire("ann")
    refreshed = peer.count("refreshed")
    second = owner.task()
    wait_until_completed(outside, second)
    assert peer.count("refreshed") > refreshed
    assert owner.load().state is ConnectionState.READY

    # The sign-in ends: its owner is asked once, for all that waits.
    peer.revoke("ann")
    third = owner.task()
    assert outside.question(third).purpose is Purpose.RECONNECT
    fourth = owner.task()
    outside.wait_for(lambda: outside.load(fourth).pause_reason)
    assert outside.load(third).status is Status.WAITING_INPUT
    assert outside.load(fourth).pause_reason is PauseReason.SIGNED_OUT
    asked = outside.rows("SELECT text FROM notices WHERE kind = 'question'")
    assert len(asked) == 1
    assert "Reconnect Mail" in asked[0][0]

    # Once they have signed in, both go on by themselves.
    owner.sign_in()
    for task in (third, fourth):
        wait_until_completed(outside, task)
        runs = outside.rows("SELECT status FROM runs WHERE conversation_id = :id", id=task.id)
        assert runs == [("success",)]

    # No token has reached the model.
    secrets = peer.record()["secrets"]
    said = "".join(str(request.body) for request in model.requests)
    assert secrets
    assert not [secret for secret in secrets if secret in said]
    calls = outside.rows("SELECT tool, outcome FROM connection_calls ORDER BY id")
    assert calls.count(("list_mails", "done")) == 4


def read_mail_if_allowed(heard: ModelRequest) -> Reply:
    """Be an agent that lists the mails, or says why it may not."""
    if "does not have the permissions" in newest(heard):
        return [GiveOutcome({"complete": True, "message": "I may not read the mail."})]
    return read_mail(heard)


@requirement("A-auth-expired")
@pytest.mark.parametrize("given", [["mail.read", "mail.send"], ["mail.read"]], ids=["all", "less"])
def test_a_permission_that_is_missing_is_asked_for_once(
    workers: RealWorkers,
    model: ModelApi,
    outside: Outside,
    peer: OAuthPeer,
    tmp_path: Path,
    given: list[str],
) -> None:
    model.otherwise = read_mail_if_allowed
    keys = tmp_path / "master_keys"
    owner = Owner(outside, peer, keys)
    peer.ask_for("mail.read")
    owner.sign_in()
    owner.trust()
    peer.switch(wanted_scope="mail.send", given_scopes=given)
    workers.start(master_key_file=str(keys), private_networks=["127.0.0.1/32"])

    first, second = owner.task(), owner.task()
    outside.wait_for(lambda: outside.load(first).questions or outside.load(second).questions)
    asked = outside.rows("SELECT text FROM notices WHERE kind = 'question'")
    assert len(asked) == 1
    assert "127.0.0.1 wants further permissions (mail.send)." in asked[0][0]
    owner.sign_in()
    for task in (first, second):
        wait_until_completed(outside, task)

    # The sign-in asked for both scopes, and nobody was asked again.
    assert peer.record()["registrations"][-1]["scope"] == "mail.read mail.send"
    assert len(outside.rows("SELECT text FROM notices WHERE kind = 'question'")) == 1
    after = owner.load()
    assert (after.state, list(after.scopes)) == (ConnectionState.READY, given)
    assert len(peer.record()["calls"]) == (2 if "mail.send" in given else 0)


def send_mail(heard: ModelRequest) -> Reply:
    """Be an agent that sends a mail, and makes sure that it was sent."""
    if "The owner says that this call was made" in newest(heard):
        return [GiveOutcome({"complete": True, "message": "Sent."})]
    return [CallTool("send", {"to": "bob", "text": "Twelve is fine."})]


@requirement("Z-receipts", "A-mcp-failure")
def test_a_mail_whose_answer_is_lost_is_asked_about_and_sent_once(
    workers: RealWorkers, model: ModelApi, outside: Outside, peer: OAuthPeer, tmp_path: Path
) -> None:
    model.otherwise = send_mail
    keys = tmp_path / "master_keys"
    owner = Owner(outside, peer, keys)
    owner.sign_in()
    owner.trust()
    workers.start(master_key_file=str(keys), private_networks=["127.0.0.1/32"])
    task = owner.task()
    approval = outside.question(task)
    assert approval.purpose is Purpose.APPROVAL
    peer.switch(lost_calls=1)

    outside.answer(task, approval, YES)
    doubt = outside.wait_for(
        lambda: [one for one in outside.load(task).questions if one.purpose is Purpose.IN_DOUBT]
    )
    assert len(peer.record()["sent"]) == 1
    outside.answer(task, doubt[0], HAPPENED)
    wait_until_completed(outside, task)

    assert peer.record()["sent"] == [["ann", "bob", "Twelve is fine."]]
