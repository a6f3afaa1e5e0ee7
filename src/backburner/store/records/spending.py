"""What was spent, for ever; its sums; which runs are under way; and what may be spent.

The sums are written in the transaction that writes what they are the sums of.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Row,
    Text,
    and_,
    bindparam,
    delete,
    func,
    insert,
    literal,
    literal_column,
    or_,
    select,
    union_all,
)

from backburner.core.allowance import Allowance, AllowanceScope, Amount, Cost
from backburner.core.ids import ConversationId, RunId, UserId
from backburner.core.run import Turn
from backburner.ports import EventKind, SpendingState
from backburner.store.context import Group
from backburner.store.dialect import add_up, number_rows, put
from backburner.store.tables import allowances, conversations, is_running, runs, spend, totals

_insert = insert(spend)
_spent_at = select(spend.c.number).where(
    spend.c.user_id == bindparam("owner"),
    spend.c.run_id == bindparam("run"),
    spend.c.spent_at == bindparam("at"),
)
_own, _parent = conversations.alias("own"), conversations.alias("parent")


def _same(conversation: Any, which: Any) -> ColumnElement[bool]:
    return and_(conversation.c.user_id == runs.c.user_id, conversation.c.id == which)


_owner, _none = bindparam("owner", type_=Text()), literal_column("NULL", Text)
#: Three kinds of rows in one: what each is about, and an amount.
_account = union_all(
    select(
        literal("spent").label("kind"),
        totals.c.what.label("about"),
        _none.label("root"),
        totals.c.micros.label("micros"),
        totals.c.tokens.label("tokens"),
    ).where(
        totals.c.user_id == _owner,
        totals.c.what.in_(bindparam("what", expanding=True, type_=Text())),
    ),
    select(
        literal("under way"),
        runs.c.id,
        func.coalesce(_parent.c.parent_id, _own.c.parent_id, _own.c.id),
        literal_column("0", BigInteger),
        literal_column("0", BigInteger),
    )
    .join_from(runs, _own, _same(_own, runs.c.conversation_id))
    .outerjoin(_parent, _same(_parent, _own.c.parent_id))
    .where(runs.c.user_id == _owner, is_running),
    select(
        literal("allowed"), allowances.c.scope, _none, allowances.c.micros, allowances.c.tokens
    ).where(
        allowances.c.user_id == _owner,
        or_(allowances.c.root_id == "", allowances.c.root_id == bindparam("of_root")),
    ),
)
_disallow = delete(allowances).where(
    allowances.c.user_id == _owner,
    allowances.c.scope == bindparam("which"),
    allowances.c.root_id == "",
)


class Spending(Group):
    def add(
        self, turn: Turn, root: ConversationId, model: str, cost: Cost, *, counts_to: Iterable[str]
    ) -> None:
        """Write down what a call of a model cost, and add it to these sums."""
        amount = {"micros": cost.amount.micros, "tokens": cost.amount.tokens}
        row: dict[str, Any] = {
            "user_id": turn.user_id,
            "conversation_id": turn.conversation_id,
            "root_id": root,
            "run_id": turn.run_id,
            "model": model,
            "priced": cost.priced,
            "spent_at": self.tx.now,
        }
        number_rows(self.connection, spend, [row])
        self.connection.execute(_insert, row | amount)
        sums = [{"user_id": turn.user_id, "what": what} | amount for what in sorted(counts_to)]
        add_up(self.connection, totals, sums, "micros", "tokens")

    def state(self, user: UserId, root: ConversationId, what: Iterable[str]) -> SpendingState:
        """Read how a user stands, as far as a conversation and these sums are concerned."""
        values = {"owner": user, "of_root": root, "what": list(what)}
        rows = self.connection.execute(_account, values).all()
        return SpendingState(
            spent={row.about: _amount(row) for row in rows if row.kind == "spent"},
            running=[
                (RunId(row.about), ConversationId(row.root))
                for row in rows
                if row.kind == "under way"
            ],
            allowances=[
                Allowance(AllowanceScope(row.about), row.micros, row.tokens)
                for row in rows
                if row.kind == "allowed"
            ],
        )

    def was_recorded(self, turn: Turn, at: datetime) -> bool:
        """See whether something was written down as spent by a run at just that time."""
        values = {"owner": turn.user_id, "run": turn.run_id, "at": at}
        return self.connection.execute(_spent_at, values).first() is not None

    def set_allowance(self, user: UserId, allowance: Allowance, root: ConversationId) -> None:
        row = {
            "user_id": user,
            "scope": allowance.scope.value,
            "root_id": root if allowance.scope is AllowanceScope.CONVERSATION else "",
            "micros": allowance.micros,
            "tokens": allowance.tokens,
        }
        put(self.connection, allowances, row)
        self.tx.changed(user, None, EventKind.USER)

    def reset_allowance(self, user: UserId, scope: AllowanceScope) -> None:
        """Forget what was said of an allowance: what goes for everybody counts again."""
        self.connection.execute(_disallow, {"owner": user, "which": scope.value})


def _amount(row: Row[Any]) -> Amount:
    return Amount(row.micros, row.tokens)
