"""What was spent, for ever; its sums; what runs have set aside; and what may be spent.

The sums are written in the transaction that writes what they are the sums of.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection, Text, bindparam, delete, insert, or_, select

from backburner.core.allowance import Allowance, Amount, Cost, Scope
from backburner.core.ids import ConversationId, RunId, UserId
from backburner.core.run import Turn
from backburner.ports import Reservation
from backburner.store.dialect import add_up, put
from backburner.store.tables import allowances, reservations, spend, totals

_insert = insert(spend)
_totals = select(totals).where(
    totals.c.user_id == bindparam("owner"),
    totals.c.what.in_(bindparam("what", expanding=True, type_=Text())),
)
_reserved = select(reservations).where(reservations.c.user_id == bindparam("owner"))
_release = delete(reservations).where(
    reservations.c.user_id == bindparam("owner"), reservations.c.run_id == bindparam("run")
)
_allowances = select(allowances).where(
    allowances.c.user_id == bindparam("owner"),
    or_(allowances.c.root_id == "", allowances.c.root_id == bindparam("root")),
)


def add(
    connection: Connection,
    turn: Turn,
    root: ConversationId,
    model: str,
    cost: Cost,
    *,
    counts_to: Iterable[str],
    now: datetime,
) -> None:
    """Write down what a call of a model cost, and add it to these sums."""
    amount = {"micros": cost.amount.micros, "tokens": cost.amount.tokens}
    row = {
        "user_id": turn.user_id,
        "conversation_id": turn.conversation_id,
        "root_id": root,
        "run_id": turn.run_id,
        "model": model,
        "priced": cost.priced,
        "spent_at": now,
    }
    connection.execute(_insert, row | amount)
    sums = [{"user_id": turn.user_id, "what": what} | amount for what in sorted(counts_to)]
    add_up(connection, totals, sums, "micros", "tokens")


def total(connection: Connection, user: UserId, what: Iterable[str]) -> Mapping[str, Amount]:
    found = connection.execute(_totals, {"owner": user, "what": list(what)})
    return {row.what: Amount(row.micros, row.tokens) for row in found}


def reserve(connection: Connection, turn: Turn, root: ConversationId, amount: Amount) -> None:
    """Set something aside for a run, in place of what it had set aside before."""
    row = {"user_id": turn.user_id, "run_id": turn.run_id, "root_id": root}
    put(connection, reservations, row | {"micros": amount.micros, "tokens": amount.tokens})


def reserved(connection: Connection, user: UserId) -> Sequence[Reservation]:
    return [
        Reservation(RunId(row.run_id), ConversationId(row.root_id), Amount(row.micros, row.tokens))
        for row in connection.execute(_reserved, {"owner": user})
    ]


def release(connection: Connection, user: UserId, run: RunId) -> None:
    connection.execute(_release, {"owner": user, "run": run})


def allowed(connection: Connection, user: UserId, root: ConversationId) -> Sequence[Allowance]:
    """Read what was said about this user and this conversation, and nothing that was not."""
    found = connection.execute(_allowances, {"owner": user, "root": root})
    return [Allowance(Scope(row.scope), row.micros, row.tokens) for row in found]


def allow(connection: Connection, user: UserId, allowance: Allowance, root: ConversationId) -> None:
    row = {
        "user_id": user,
        "scope": allowance.scope.value,
        "root_id": root if allowance.scope is Scope.CONVERSATION else "",
        "micros": allowance.micros,
        "tokens": allowance.tokens,
    }
    put(connection, allowances, row)
