"""Time that passes without a word, on databases whose clock cannot be set."""

from datetime import timedelta

from sqlalchemy import Table, select, update

from backburner.store.tables import conversations, messages, questions
from backburner.store.tx import Tx
from support.stage.stage import Stage


def let_pass(stage: Stage, length: timedelta) -> None:
    """Let all that was said, asked, ended and set be so much longer ago."""
    shifted = {
        messages: ("created_at",),
        conversations: ("next_run_at", "ended_at"),
        questions: ("closed_at",),
    }

    def shift(tx: Tx) -> None:
        for table, names in shifted.items():
            for name in names:
                _shift(tx, table, name, length)

    stage.database.run(shift)


def _shift(tx: Tx, table: Table, name: str, length: timedelta) -> None:
    column = table.c[name]
    for which, at in tx.connection.execute(
        select(table.c.id, column).where(column.is_not(None))
    ).all():
        moved = update(table).where(table.c.id == which).values({name: at - length})
        tx.connection.execute(moved)
