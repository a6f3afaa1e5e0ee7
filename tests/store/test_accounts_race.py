"""Accounts on both databases: what may happen once happens once, whoever comes at the same time."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier, Event
from typing import TypeVar

import pytest
from support.people.users import add_user
from support.stage.make import MATE, USER

from backburner.actions.accounts import sign_in
from backburner.core.accounts import MAX_SIGN_IN_ATTEMPTS, CredentialKind, Role, Scope
from backburner.core.errors import Conflict
from backburner.core.ids import UserId, new_user_id
from backburner.ports import NewCredential
from backburner.store.db import Database
from backburner.store.dialect import is_sqlite
from backburner.store.tx import Tx

MANY = 6
T = TypeVar("T")


def at_once(database: Database, work: Callable[[Tx], T], times: int = MANY) -> list[T]:
    together = Barrier(times)

    def run() -> T:
        together.wait(20)
        return database.run(work)

    with ThreadPoolExecutor(times) as threads:
        return [done.result() for done in [threads.submit(run) for _ in range(times)]]


def test_all_who_start_at_once_find_one_owner(database: Database) -> None:
    owners = at_once(database, lambda tx: tx.accounts.ensure_owner(now=tx.now))

    assert len(set(owners)) == 1
    found = database.run(lambda tx: tx.accounts.page(limit=9))
    assert [(user.id, user.role) for user in found] == [(owners[0], Role.OPERATOR)]


def test_what_can_be_used_once_is_used_once(database: Database) -> None:
    database.run(lambda tx: add_user(tx, USER))
    kind = CredentialKind.INVITATION
    database.run(
        lambda tx: tx.credentials.issue(
            USER, "d", NewCredential(kind, expires_at=tx.now + timedelta(days=1)), now=tx.now
        )
    )
    used = at_once(database, lambda tx: tx.credentials.consume("d", kind, now=tx.now))

    assert sorted(used) == [False] * (MANY - 1) + [True]


def test_invitations_are_those_of_operators(database: Database) -> None:
    kind, later = CredentialKind.INVITATION, timedelta(days=1)
    for user, role in ((USER, Role.OPERATOR), (MATE, Role.MEMBER)):

        def invite(tx: Tx, user: UserId = user, role: Role = role) -> str:
            tx.accounts.add(user, login=user, name="", role=role, now=tx.now)
            new = NewCredential(kind, Scope, expires_at=tx.now + later)
            return tx.credentials.issue(user, user, new, now=tx.now)

        database.run(invite)

    (found,) = database.run(lambda tx: tx.credentials.invitations(limit=9, now=tx.now))
    assert (found.made_by, found.role) == (USER, Role.OPERATOR)
    assert database.run(lambda tx: tx.credentials.invitations(limit=9, now=tx.now + later)) == []
    database.run(lambda tx: tx.credentials.revoke_invitation(found.id, now=tx.now))
    assert database.run(lambda tx: tx.credentials.invitations(limit=9, now=tx.now)) == []


def test_a_login_is_given_once(database: Database) -> None:
    def add(tx: Tx) -> bool:
        return tx.accounts.add(new_user_id(), login="ada", name="", role=Role.MEMBER, now=tx.now)

    assert sorted(at_once(database, add)) == [False] * (MANY - 1) + [True]


def test_two_who_want_the_same_login_at_once_do_not_both_get_it(database: Database) -> None:
    for user in (USER, MATE):
        database.run(lambda tx, user=user: add_user(tx, user))  # type: ignore[misc]
    has_written = Event()

    def first(tx: Tx) -> None:
        sign_in.set_password(tx, USER, "ada", "hash")
        has_written.set()
        if not is_sqlite(database.engine):
            # On SQLite the other cannot even begin.
            wait_until_somebody_waits(tx)

    def second(tx: Tx) -> None:
        sign_in.set_password(tx, MATE, "ada", "hash")

    with ThreadPoolExecutor(1) as thread:
        done = thread.submit(database.run, first)
        assert has_written.wait(20)
        with pytest.raises(Conflict, match="taken"):
            database.run(second)
        done.result(20)

    assert database.run(lambda tx: tx.accounts.find_login("ada")) == (USER, "hash")
    assert database.run(lambda tx: tx.accounts.load(MATE)).login is None


def wait_until_somebody_waits(tx: Tx) -> None:
    ends_at = time.monotonic() + 20
    while not tx.connection.exec_driver_sql("SELECT 1 FROM pg_locks WHERE NOT granted").first():
        assert time.monotonic() < ends_at


def test_attempts_of_all_processes_count_together(database: Database) -> None:
    waits = [
        wait
        for _ in range(3)
        for wait in at_once(database, lambda tx: tx.rate_limits.count(["b", "a"], now=tx.now))
    ]

    assert waits.count(None) == MAX_SIGN_IN_ATTEMPTS
    assert all(timedelta(minutes=14) < wait <= timedelta(minutes=15) for wait in waits if wait)


def test_operators_who_leave_at_once_leave_one(database: Database) -> None:
    ids = [UserId(f"u_{number}") for number in range(2)]
    for user in ids:
        database.run(
            lambda tx, user=user: tx.accounts.add(  # type: ignore[misc]
                user, login=user, name="", role=Role.OPERATOR, now=tx.now
            )
        )
    left = iter(ids)

    def leave(tx: Tx) -> bool:
        if len(tx.accounts.lock_operators()) == 1:
            return False
        tx.accounts.disable(next(left), at=tx.now)
        return True

    assert sorted(at_once(database, leave, 2)) == [False, True]


def test_a_user_that_goes_takes_their_credentials_along(database: Database) -> None:
    database.run(lambda tx: add_user(tx, USER))
    kind = CredentialKind.TOKEN
    database.run(lambda tx: tx.credentials.issue(USER, "d", NewCredential(kind), now=tx.now))
    database.run(lambda tx: tx.connection.exec_driver_sql("DELETE FROM users"))

    assert database.run(lambda tx: tx.credentials.identify("d", now=tx.now)) is None
