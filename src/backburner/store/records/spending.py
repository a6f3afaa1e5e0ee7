"""Spending: receipts of model calls, their totals, and allowances.

Totals are updated in the transaction that stores the receipt.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    BindParameter,
    ColumnElement,
    Text,
    and_,
    bindparam,
    delete,
    func,
    insert,
    literal,
    literal_column,
    select,
    union_all,
)

from backburner.core.allowance import Allowance, AllowanceScope, Amount, Cost, Usage
from backburner.core.conversation import Kind
from backburner.core.ids import ConversationId, RunId, UserId
from backburner.core.run import Turn
from backburner.ports import ConversationSpending, EventKind, SpendingState
from backburner.store.context import Group
from backburner.store.dialect import insert_or_add, number_rows, upsert
from backburner.store.tables import (
    CEILING,
    allowances,
    conversations,
    is_no_job,
    is_running,
    is_shown,
    runs,
    spend,
    totals,
)

_insert = insert(spend)
_select_receipt = select(spend.c.number).where(
    spend.c.user_id == bindparam("owner"),
    spend.c.run_id == bindparam("run_id"),
    spend.c.spent_at == bindparam("at"),
)
_own, _parent = conversations.alias("own"), conversations.alias("parent")


def _has_id(conversation: Any, conversation_id: Any) -> ColumnElement[bool]:
    return and_(conversation.c.user_id == runs.c.user_id, conversation.c.id == conversation_id)


_owner, _none = bindparam("owner", type_=Text()), literal_column("NULL", Text)
_owners: BindParameter[Any] = bindparam("owners", expanding=True, type_=Text())
#: Three kinds of rows: totals, running runs, and allowances.
_select_states = union_all(
    select(
        literal("spent").label("kind"),
        totals.c.user_id.label("owner"),
        totals.c.what.label("about"),
        _none.label("root"),
        totals.c.micros.label("micros"),
        totals.c.tokens.label("tokens"),
    ).where(
        totals.c.user_id.in_(_owners),
        totals.c.what.in_(bindparam("what", expanding=True, type_=Text())),
    ),
    select(
        literal("under way"),
        runs.c.user_id,
        runs.c.id,
        func.coalesce(_parent.c.parent_id, _own.c.parent_id, _own.c.id),
        literal_column("0", BigInteger),
        literal_column("0", BigInteger),
    )
    .join_from(runs, _own, _has_id(_own, runs.c.conversation_id))
    .outerjoin(_parent, _has_id(_parent, _own.c.parent_id))
    .where(runs.c.user_id.in_(_owners), is_running),
    select(
        literal("allowed"),
        allowances.c.user_id,
        allowances.c.scope,
        allowances.c.root_id,
        allowances.c.micros,
        allowances.c.tokens,
    ).where(
        allowances.c.user_id.in_(_owners),
        allowances.c.root_id.in_(bindparam("roots", expanding=True, type_=Text())),
    ),
)
select_changed = (
    select(conversations.c.id, conversations.c.title, conversations.c.kind)
    .where(conversations.c.user_id == _owner, is_no_job, is_shown)
    .order_by(conversations.c.updated_at.desc(), conversations.c.id.desc())
    .limit(bindparam("searched", type_=BigInteger()))
)
#: By keys: an expression of ids has another collation than the index of totals.
select_totals = (
    select(totals.c.what, totals.c.micros, totals.c.tokens)
    .where(
        totals.c.user_id == _owner,
        totals.c.what.in_(bindparam("what", expanding=True, type_=Text())),
    )
    .order_by(totals.c.micros.desc(), totals.c.tokens.desc(), totals.c.what)
    .limit(bindparam("limit", type_=BigInteger()))
)
_delete_allowance = delete(allowances).where(
    allowances.c.user_id == _owner,
    allowances.c.scope == bindparam("scope"),
    allowances.c.root_id == bindparam("root_id"),
)


class Spending(Group):
    def add(
        self,
        turn: Turn,
        root: ConversationId,
        model: str,
        cost: Cost,
        *,
        counts_to: Iterable[str],
        usage: Usage | None = None,
    ) -> None:
        """Store the receipt of a model call, and add its cost to these totals."""
        amount = {"micros": cost.amount.micros, "tokens": cost.amount.tokens}
        row: dict[str, Any] = {
            "user_id": turn.user_id,
            "conversation_id": turn.conversation_id,
            "root_id": root,
            "run_id": turn.run_id,
            "model": model,
            "priced": cost.priced,
            "spent_at": self.tx.now,
            "output_tokens": usage and usage.output,
            "cached_tokens": usage and usage.cache_read,
        }
        number_rows(self.connection, spend, [row])
        self._execute(_insert, row | amount)
        sums = [{"user_id": turn.user_id, "what": what} | amount for what in sorted(counts_to)]
        insert_or_add(self.connection, totals, sums, "micros", "tokens")

    def state(self, user: UserId, root: ConversationId, what: Iterable[str]) -> SpendingState:
        """Read these totals, the running runs, and the allowances that concern a conversation."""
        return self.states({user: (root, list(what))})[user]

    def states(
        self, accounts: Mapping[UserId, tuple[ConversationId, Sequence[str]]]
    ) -> Mapping[UserId, SpendingState]:
        """Read the states of several users, each for a root conversation and some totals."""
        values = {
            "owners": list(accounts),
            "roots": ["", CEILING, *(root for root, _ in accounts.values())],
            "what": list({one: None for _, what in accounts.values() for one in what}),
        }
        rows: dict[str, list[Any]] = {user: [] for user in accounts}
        # The run itself does not count.
        for row in self.tx.execute_apart(_select_states, values):
            rows[row.owner].append(row)
        return {user: _to_state(rows[user], root) for user, (root, _) in accounts.items()}

    def top(self, user: UserId, *, searched: int, limit: int) -> Sequence[ConversationSpending]:
        changed = self._execute(select_changed, {"owner": user, "searched": searched})
        # Jobs count towards the conversation at their top.
        of_key = {f"conversation:{row.id}": row for row in changed}
        values = {"owner": user, "what": list(of_key), "limit": limit}
        rows = self._execute(select_totals, values) if of_key else ()
        return [
            ConversationSpending(
                ConversationId(of_key[row.what].id),
                of_key[row.what].title,
                Kind(of_key[row.what].kind),
                Amount(row.micros, row.tokens),
            )
            for row in rows
        ]

    def was_recorded(self, turn: Turn, at: datetime) -> bool:
        """See whether a run has a receipt with exactly this time."""
        values = {"owner": turn.user_id, "run_id": turn.run_id, "at": at}
        return self._exists(_select_receipt, values)

    def set_allowance(self, user: UserId, allowance: Allowance, root: ConversationId) -> None:
        is_of_root = allowance.scope is AllowanceScope.CONVERSATION
        self._set(user, allowance, root if is_of_root else "")

    def reset_allowance(
        self, user: UserId, scope: AllowanceScope, root: ConversationId | None = None
    ) -> None:
        self._reset(user, scope, root or "")

    def set_ceiling(self, user: UserId, ceiling: Allowance) -> None:
        self._set(user, ceiling, CEILING)

    def reset_ceiling(self, user: UserId, scope: AllowanceScope) -> None:
        self._reset(user, scope, CEILING)

    def _set(self, user: UserId, allowance: Allowance, root: str) -> None:
        row = {
            "user_id": user,
            "scope": allowance.scope.value,
            "root_id": root,
            "micros": allowance.micros,
            "tokens": allowance.tokens,
        }
        upsert(self.connection, allowances, row)
        self.tx.changed(user, None, EventKind.USER)

    def _reset(self, user: UserId, scope: AllowanceScope, root: str) -> None:
        values = {"owner": user, "scope": scope.value, "root_id": root}
        self._execute(_delete_allowance, values)


def _to_state(rows: Sequence[Any], root: ConversationId) -> SpendingState:
    spent, running = dict[str, Amount](), []
    allowed, ceilings = [], []
    for row in rows:
        if row.kind == "spent":
            spent[row.about] = Amount(row.micros, row.tokens)
        elif row.kind == "under way":
            running.append((RunId(row.about), ConversationId(row.root)))
        elif row.root == CEILING:
            ceilings.append(Allowance(AllowanceScope(row.about), row.micros, row.tokens))
        elif row.root in ("", root):
            allowed.append(Allowance(AllowanceScope(row.about), row.micros, row.tokens))
    return SpendingState(spent, running, allowed, ceilings)
