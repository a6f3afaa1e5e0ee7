"""A sign-in whose steps are in processes of their own, and processes that renew one token."""

import signal
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx2
import pytest
from support.doubles.clock import SetClock
from support.faults.canaries import found_in, in_files
from support.oauth_peer.peer import OAuthPeer
from support.people.users import add_user
from support.programs.programs import Start
from support.programs.token_users import TokenUserProcess, start_token_user
from support.requirements import requirement
from support.stage.connections import new_connection
from support.stage.make import USER

from backburner.core.connections.connection import Connection, ConnectionState
from backburner.store.db import Database
from backburner.store.dialect import make_engine
from backburner.store.tables import metadata

PROCESSES = 8
#: Of the lease, in seconds, where one has to end.
SHORT = 2.0


@dataclass
class Shared:
    """What processes share: a database, and the file of master keys."""

    start: Start
    url: str
    keys: Path
    peer: OAuthPeer
    mail: Connection
    database: Database

    def process(self, *options: str, lease: float = 30) -> TokenUserProcess:
        made = start_token_user(self.start, self.url, self.keys, *options, lease=lease)
        assert made.ask("connect") == "ready"
        return made

    def sign_in(self, process: TokenUserProcess) -> None:
        address = self.peer.approve(process.ask("begin", USER, self.mail.id))
        assert process.ask("finish", USER, address) == ConnectionState.READY

    def state(self) -> ConnectionState:
        return self.database.run(lambda tx: tx.connections.load(USER, self.mail.id)).state

    def is_let_in(self, header: str) -> bool:
        headers = {"authorization": header, "accept": "application/json"}
        with httpx2.Client(trust_env=False) as client:
            return client.post(self.peer.server, json={}, headers=headers).status_code != 401


@pytest.fixture
def shared(
    start: Start, migrated_postgres_url: str, tmp_path: Path, peer: OAuthPeer
) -> Iterator[Shared]:
    url, mail = migrated_postgres_url, new_connection(USER, peer.server)
    with closing(Database(make_engine(url), SetClock())) as database:
        database.run(partial(add_user, user=USER))
        database.run(lambda tx: tx.connections.add(mail))
        yield Shared(start, url, tmp_path / "master_keys", peer, mail, database)


def test_a_sign_in_begins_comes_back_and_is_used_in_three_processes(shared: Shared) -> None:
    address = shared.process().ask("begin", USER, shared.mail.id)
    final = shared.peer.approve(address, "bob")
    assert shared.process().ask("finish", USER, final) == ConnectionState.READY

    header = shared.process().ask("use", USER, shared.mail.id)

    assert shared.is_let_in(header)


@requirement("Z-connections")
def test_eight_processes_with_one_expired_token_refresh_it_once(shared: Shared) -> None:
    processes = [shared.process() for _ in range(PROCESSES)]
    # It is due as soon as it is there.
    shared.peer.switch(access_seconds=0)
    shared.sign_in(processes[0])
    shared.peer.switch(access_seconds=3600, token_seconds=0.3)

    for one in processes:
        one.send("use", USER, shared.mail.id)
    headers = {one.receive() for one in processes}

    (header,) = headers
    assert shared.is_let_in(header)
    assert shared.peer.count("refreshed") == 1
    assert shared.peer.count("refused") == 0


def test_a_process_that_is_killed_while_it_waits_for_new_tokens_is_taken_over(
    shared: Shared,
) -> None:
    first, second = shared.process(lease=SHORT), shared.process()
    shared.peer.switch(access_seconds=0)
    shared.sign_in(first)
    # It takes the lease, and its request is never served.
    shared.peer.switch(access_seconds=3600, token_seconds=30)
    first.send("use", USER, shared.mail.id)
    shared.peer.wait_for_token_requests(2)
    first.running.end(signal.SIGKILL)
    shared.peer.switch(token_seconds=0)

    header = second.ask("use", USER, shared.mail.id)

    assert shared.is_let_in(header)


def test_tokens_that_die_with_a_process_are_asked_for_again_where_the_server_allows_that(
    shared: Shared,
) -> None:
    dying, next_one = shared.process("dying", lease=SHORT), shared.process()
    shared.peer.switch(access_seconds=0, grace=True)
    shared.sign_in(dying)
    shared.peer.switch(access_seconds=3600)
    dying.send("use", USER, shared.mail.id)
    assert dying.running.process.wait(20) == 9

    header = next_one.ask("use", USER, shared.mail.id)

    assert shared.is_let_in(header)
    assert shared.state() is ConnectionState.READY


def test_tokens_that_die_with_a_process_elsewhere_have_the_owner_asked_and_told_why(
    shared: Shared,
) -> None:
    dying, next_one = shared.process("dying", lease=SHORT), shared.process()
    shared.peer.switch(access_seconds=0)
    shared.sign_in(dying)
    dying.send("use", USER, shared.mail.id)
    assert dying.running.process.wait(20) == 9

    told = next_one.ask("use", USER, shared.mail.id)

    assert told.startswith("SignedOut: Mail needs you to sign in again: a process ended while it")
    assert shared.state() is ConnectionState.SIGNED_OUT
    shared.peer.switch(access_seconds=3600)
    shared.sign_in(next_one)
    assert shared.is_let_in(next_one.ask("use", USER, shared.mail.id))


def test_no_token_is_in_the_database_or_in_the_arguments_and_environment_of_a_process(
    shared: Shared, tmp_path: Path
) -> None:
    process = shared.process()
    shared.sign_in(process)
    shared.process().ask("begin", USER, shared.mail.id)
    header = process.ask("use", USER, shared.mail.id)
    assert found_in(header.encode())

    dumped = dump(shared.database)
    assert str(shared.mail.id) in dumped
    assert not found_in(dumped.encode())
    folder = Path(f"/proc/{process.running.process.pid}")
    for name in ("cmdline", "environ"):
        assert not found_in((folder / name).read_bytes())
    assert not in_files(tmp_path)
    assert not found_in("".join(process.running.end(signal.SIGTERM).err).encode())


def dump(database: Database) -> str:
    statements = [table.select() for table in metadata.sorted_tables]
    return repr(database.run(lambda tx: [tx.connection.execute(one).all() for one in statements]))
