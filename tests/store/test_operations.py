"""The statements behind the page of operators read indexes of few rows, and no whole table."""

from typing import Any

import pytest
from support.cases.query_plans import plan
from support.stage.make import NOON

from backburner.store.db import Database
from backburner.store.queries import operations
from backburner.store.records.notices import select_next

STATEMENTS: dict[str, Any] = {
    "counts": operations._select_counts,
    "deliveries": operations._select_deliveries,
    "troubles": operations._select_troubles,
    **{f"claimable {n}": one for n, one in enumerate(operations._count_claimable)},
}
#: Indexes of the few rows that are looked for.
SMALL = {
    *("ix_runs_failed", "ix_deliveries_failed", "ix_connections_signed_out"),
    *("uq_runs_running", "ix_runs_queued", "ix_deliveries_to_send", "ix_inbox_people"),
    "ix_inbox_unserved",
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_of_the_overview_reads_no_whole_table(sqlite: Database, name: str) -> None:
    steps = plan(sqlite, STATEMENTS[name])

    scans = [step.split() for step in steps if step.startswith("SCAN ")]
    # Of subqueries, whose rows are limited, and of small indexes.
    read = {words[1] for words in scans if "USING" not in words}
    assert all(name.startswith(("anon_", "CONSTANT")) for name in read), steps
    assert {words[-1] for words in scans if "USING" in words} <= SMALL, steps
    assert not [step for step in steps if "TEMP B-TREE" in step], steps


@pytest.mark.parametrize("besides", [[], ["u_busy", "u_other"]])
def test_the_next_delivery_is_found_by_the_index_of_those_to_send(
    sqlite: Database, besides: list[str]
) -> None:
    steps = plan(sqlite, select_next.params(besides=besides, at=NOON, tick=0))

    (found,) = (step for step in steps if step.split()[1] == "deliveries")
    assert found.startswith("SEARCH deliveries USING INDEX ix_deliveries_to_send (not_before<?)")
