"""What is remembered, and what discovery goes by, is found by indexes that begin with the owner."""

from typing import Any

import pytest
from sqlalchemy import Select

from backburner.store.accounts import users
from backburner.store.db import Database
from backburner.store.queries import discovery
from backburner.store.records import memories

WALKS: dict[str, tuple[Select[Any], set[str]]] = {
    "a search": (
        memories.select_matches(2, prefix=True),
        {"sqlite_autoindex_memory_words_1 (user_id=? AND word=?", "sqlite_autoindex_memories_1"},
    ),
    "what comes up": (
        memories.select_recalled(2),
        {"sqlite_autoindex_memory_words_1 (user_id=? AND word=?", "ix_memories_newest (user_id=?"},
    ),
    "presence": (
        discovery.select_presence,
        {
            *("ix_messages_heard (user_id=?", "ix_inbox_unserved (user_id=?"),
            *("uq_runs_running (user_id=?", "ix_runs_queued_of_user (user_id=?"),
        },
    ),
    "talk": (
        discovery.select_recent_chat,
        {"ix_messages_heard (user_id=?", "ix_messages_of_conversation (user_id=?"},
    ),
    "discovery": (discovery.select_discovery, {"ix_conversations_discovery (user_id=?"}),
    "a user": (users.select_profile, {"ix_conversations_discovery (user_id=?"}),
}


@pytest.mark.parametrize("name", WALKS)
def test_every_table_is_walked_by_an_index(sqlite: Database, name: str) -> None:
    statement, indexes = WALKS[name]
    asked = statement.compile(
        dialect=sqlite.engine.dialect, compile_kwargs={"render_postcompile": True}
    )
    explain, values = f"EXPLAIN QUERY PLAN {asked}", (None,) * len(asked.positiontup or ())
    rows = sqlite.run(lambda tx: tx.connection.exec_driver_sql(explain, values).all())
    steps = [row[3] for row in rows]

    assert all(any(f"INDEX {index}" in step for step in steps) for index in indexes), steps
    tables = ("memories", "memory_words", "messages", "conversations", "runs", "inbox")
    assert not any(step == f"SCAN {table}" for step in steps for table in tables), steps
