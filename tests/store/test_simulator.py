"""The protocol of the turn holds under any course of events, and the simulator would notice if not.

Each broken variant replaces one statement or guard of the real store; it has to be caught.
"""

import itertools
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import (
    Select,
    TextualSelect,
    and_,
    bindparam,
    exists,
    false,
    select,
    text,
    update,
)
from sqlalchemy.dialects import sqlite
from support.simulator import Violation, simulate
from support.simulator import world as simulated

from backburner.core import routing
from backburner.ports import Claim, Claimer
from backburner.store.queue import claimable, claims, turns
from backburner.store.records import sessions, steps, waits
from backburner.store.records.inbox import Inbox
from backburner.store.tables import conversations, session_entries, users
from backburner.store.types import Time

#: `soak simulator` tries thousands.
SEEDS = 24
#: Each variant has to be caught within as many seeds.
WITHIN = 100


@pytest.mark.parametrize("start", range(0, SEEDS, 4))
def test_no_course_of_events_breaks_a_promise(start: int) -> None:
    simulate_all(range(start, start + 4))


def simulate_all(seeds: Iterable[int]) -> None:
    for seed in seeds:
        simulate(seed)


Patch = pytest.MonkeyPatch


def commit_guarded_by_id(patch: Patch) -> None:
    patch.setattr(turns, "_hold", turns._with_run.where(turns._by_id))
    values = dict(turns._commit._values or {})
    patch.setattr(turns, "_commit", update(conversations).where(turns._by_id).values(values))


def commit_guarded_by_state(patch: Patch) -> None:
    running = conversations.c.turn_run.is_not(None)
    patch.setattr(turns, "_hold", turns._with_run.where(turns._by_id, running))
    guarded = (
        update(conversations).where(turns._by_id, running).values(dict(turns._commit._values or {}))
    )
    patch.setattr(turns, "_commit", guarded)


def expired_turn_treated_as_free(patch: Patch) -> None:
    claim = claims.Queue.claim_reply

    def free_first(self: claims.Queue, claimer: Claimer) -> Claim | None:
        expired = "UPDATE conversations SET turn_run = NULL, turn_until = NULL WHERE turn_until < ?"
        self.connection.exec_driver_sql(expired, (self.tx.tick,))
        return claim(self, claimer)

    patch.setattr(claims.Queue, "claim_reply", free_first)


def waiting_chats_counted_in_a_column(patch: Patch) -> None:
    """Up with every message, down with every reply; what is archived meanwhile is forgotten."""
    template = simulated._template

    def with_counter() -> Any:
        connection = template()
        columns = connection.execute("PRAGMA table_info(conversations)").fetchall()
        if not any(name == "waiting_chats" for _, name, *_ in columns):
            connection.executescript(
                "ALTER TABLE conversations ADD COLUMN waiting_chats INTEGER DEFAULT 0;"
                "CREATE TRIGGER up AFTER INSERT ON inbox WHEN new.from_person BEGIN"
                " UPDATE conversations SET waiting_chats = waiting_chats + 1"
                " WHERE id = new.conversation_id; END;"
                "CREATE TRIGGER down AFTER UPDATE ON inbox"
                " WHEN new.from_person AND new.served_by IS NOT NULL BEGIN"
                " UPDATE conversations SET waiting_chats = waiting_chats - 1"
                " WHERE id = new.conversation_id; END;"
            )
        return connection

    patch.setattr(simulated, "_template", with_counter)
    derived = re.compile(
        r"NOT \(EXISTS \(SELECT \* \s*FROM inbox AS person \s*WHERE .*?\)\)", re.DOTALL
    )

    def count_in_column(known: Select[Any]) -> TextualSelect:
        compiled = str(known.compile(dialect=sqlite.dialect(paramstyle="named")))
        replaced, count = derived.subn("conversations.waiting_chats = 0", compiled)
        assert count
        # What SQLAlchemy would have filled in by itself.
        statement = text(re.sub(r"OFFSET :param_\d+", "OFFSET 0", replaced))
        statement = statement.bindparams(bindparam("now", type_=Time))
        return statement.columns(*known.selected_columns)

    known = claimable.statements()
    _replace_statements(
        patch,
        # Nobody is passed over: SQLAlchemy would have to fill in a list.
        whose_turn=lambda look, waits, passes_over, several=False: count_in_column(  # noqa: ARG005
            known.whose_turn(replace(look, may_wait=True), waits=waits, several=several)
        ),
        longest_waiting=lambda look: count_in_column(known.longest_waiting(look)),
    )


def outbox_key_without_the_epoch(patch: Patch) -> None:
    write = steps.write

    def forgetful(*arguments: Any, cause: str | None, **more: Any) -> None:
        write(*arguments, cause=cause and cause.split(":", maxsplit=1)[0], **more)

    patch.setattr(steps, "write", forgetful)


def user_picked_by_due(patch: Patch) -> None:
    due = exists().where(
        conversations.c.user_id == users.c.id,
        conversations.c.status == "background",
        conversations.c.next_run_at <= bindparam("now"),
    )
    picked = select(users.c.id, users.c.zone, false().label("remembers"))
    statement = picked.where(due).order_by(users.c.served_at).limit(1)
    _replace_statements(patch, whose_turn=lambda *_, **_waits: statement)


def _replace_statements(patch: Patch, **others: Any) -> None:
    replaced = replace(claimable.statements(), **others)
    patch.setattr(claimable, "statements_for", lambda _claimer: replaced)


def inbox_served_at_claim(patch: Patch) -> None:
    take = claims._Taker._take

    def serve_too(self: Any, found: Any, run: Any, **more: Any) -> Claim:
        waiting = Inbox(self.tx).waiting(found.user_id, found.id, run.kind)
        items = [item.id for item in waiting]
        Inbox(self.tx).serve(found.user_id, items, run_id=run.id)
        return take(self, found, run, **more)

    patch.setattr(claims._Taker, "_take", serve_too)


def uncommitted_session_entries_loaded(patch: Patch) -> None:
    everything = select(session_entries.c.entry).where(
        and_(
            session_entries.c.conversation_id == bindparam("conversation_id"),
            session_entries.c.session_id == bindparam("session_id"),
        )
    )
    patch.setattr(sessions, "_load", everything.order_by(session_entries.c.number))


def proof_not_looked_up(patch: Patch) -> None:
    """A commit whose answer is lost is taken for one that did not happen."""
    patch.setattr(turns.Turns, "is_committed", lambda *_: False)


def settling_wakes_nobody(patch: Patch) -> None:
    patch.setattr(waits.Waits, "settle", lambda *_: None)


def speaking_wakes_nobody(patch: Patch) -> None:
    patch.setattr(waits, "_resume", waits._resume.where(waits._all_have_settled))


def waits_outlive_their_run(patch: Patch) -> None:
    patch.setattr(waits.Waits, "take", lambda *_: ())


def one_user_served_by_all_claims(patch: Patch) -> None:
    """Of several claims in one transaction, all serve the same user."""
    choose = claims.Queue._longest_waiting

    def choose_one(self: Any, statements: Any, look: Any, owners: Any, values: Any) -> Any:
        return choose(self, statements, look, owners[:1] * len(owners), values)

    patch.setattr(claims.Queue, "_longest_waiting", choose_one)


def requests_outlive_their_run(patch: Patch) -> None:
    """What a message asked for is not forgotten with its reply."""
    patch.setattr(turns, "renew_request", lambda _tx, found, _kind, **_more: found)


def requests_end_with_any_run(patch: Patch) -> None:
    """What a message asked for is forgotten that came while its conversation had a run."""
    patch.setattr(
        turns,
        "renew_request",
        lambda _tx, found, kind, **_more: routing.with_request(found, kind, ""),
    )


#: The seed that caught each variant last: the search begins there.
CAUGHT_BY: dict[Callable[[Patch], None], int] = {
    commit_guarded_by_id: 0,
    commit_guarded_by_state: 5,
    expired_turn_treated_as_free: 0,
    waiting_chats_counted_in_a_column: 42,
    outbox_key_without_the_epoch: 14,
    user_picked_by_due: 0,
    inbox_served_at_claim: 0,
    uncommitted_session_entries_loaded: 0,
    proof_not_looked_up: 1,
    settling_wakes_nobody: 8,
    speaking_wakes_nobody: 16,
    waits_outlive_their_run: 18,
    one_user_served_by_all_claims: 0,
    requests_outlive_their_run: 0,
    requests_end_with_any_run: 74,
}


@pytest.mark.parametrize("breaks", CAUGHT_BY, ids=lambda variant: variant.__name__)
def test_a_broken_variant_is_caught(
    breaks: Callable[[Patch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = CAUGHT_BY[breaks]
    breaks(monkeypatch)

    with pytest.raises(Violation):
        simulate_all(itertools.chain(range(first, WITHIN), range(first)))
