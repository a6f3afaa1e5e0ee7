"""What has to be true of a database whatever happened to those who worked on it.

Written against the rows, not with the store's own statements: a fault in those must not hide here.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from backburner.core.ids import derive_question_id
from backburner.store.lifecycle import check
from support.faults.traces import Traces

Rows = Callable[[str], Sequence[tuple[Any, ...]]]

#: Each finds what must not be there.
NEVER = {
    **check.FAULT_QUERIES,
    "two outcomes of one run under one epoch": (
        "SELECT run_id, epoch FROM outcomes GROUP BY run_id, epoch HAVING count(*) > 1"
    ),
    "a message that a run has written twice": (
        "SELECT run_id, content FROM messages WHERE run_id IS NOT NULL"
        " GROUP BY run_id, role, content HAVING count(*) > 1"
    ),
    "two deliveries under one key": ("SELECT key FROM deliveries GROUP BY key HAVING count(*) > 1"),
}
#: And what must not be there once everybody had time to finish.
NEVER_AT_REST = {
    "a run that never ended": (
        "SELECT r.id, r.status, c.status FROM runs r"
        " JOIN conversations c ON c.id = r.conversation_id"
        " WHERE r.status = 'running' OR (r.status = 'queued' AND c.status <> 'waiting_input')"
    ),
    "an item of the inbox that nobody served": (
        "SELECT i.id, i.kind, c.status FROM inbox i"
        " JOIN conversations c ON c.id = i.conversation_id"
        " WHERE i.served_at IS NULL AND c.status NOT IN ('waiting_input', 'archived')"
    ),
    "a part that was never sent": "SELECT key, state FROM deliveries WHERE state <> 'sent'",
}


def violations(rows: Rows) -> list[str]:
    """Find what is wrong at any moment."""
    return _find(rows, NEVER)


def violations_at_rest(rows: Rows, traces: Traces) -> list[str]:
    """Find what is wrong when nothing is left to do; `traces` tell what was done outside."""
    return [
        *_find(rows, NEVER),
        *_find(rows, NEVER_AT_REST),
        *_unasked(rows),
        *_done_twice(rows, traces),
        *_sent_otherwise(rows, traces),
    ]


def _find(rows: Rows, queries: dict[str, str]) -> list[str]:
    found = ((what, rows(query)) for what, query in queries.items())
    return [f"{what}: {which}" for what, which in found if which]


def _unasked(rows: Rows) -> list[str]:
    """Find calls that nobody knows about, and whose owner was not asked.

    Commands in a cage had no effect outside their folder, where the agent can look itself.
    """
    asked = {which for (which,) in rows("SELECT id FROM questions WHERE purpose = 'in_doubt'")}
    unknown = rows(
        "SELECT t.id FROM tool_calls t JOIN runs r ON r.id = t.run_id"
        " JOIN conversations c ON c.id = r.conversation_id"
        " WHERE t.state = 'unknown' AND NOT t.read_only AND NOT t.repeatable AND t.cage IS NULL"
        " AND r.status <> 'cancelled' AND c.status <> 'archived'"
    )
    return [
        f"a call in doubt that nobody was asked about: {call}"
        for (call,) in unknown
        if derive_question_id(call, "in doubt") not in asked
    ]


def _done_twice(rows: Rows, traces: Traces) -> list[str]:
    """Find effects that happened more often than calls were written down."""
    done = Counter(trace["text"] for trace in traces.read("send"))
    written = Counter[str]()
    for (arguments,) in rows("SELECT arguments FROM tool_calls WHERE tool = 'send'"):
        written.update(text for text in done if f'"{text}"' in arguments)
    return [
        f"{text!r} was sent {count} times, and written down {written[text]} times"
        for text, count in done.items()
        if count > written[text]
    ]


def _sent_otherwise(rows: Rows, traces: Traces) -> list[str]:
    kept = {key for (key,) in rows("SELECT key FROM deliveries")}
    seen = {trace["key"] for trace in traces.read("delivery")}
    return [] if kept == seen else [f"deliveries that were kept or sent only: {kept ^ seen}"]
