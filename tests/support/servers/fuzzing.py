"""Requests made up from the description of the API, sent to a server that runs."""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.core.failures import FailureGroup
from schemathesis.core.result import Ok
from schemathesis.schemas import APIOperation

from backburner.app.clock import Clock
from backburner.core.ids import new_user_id
from backburner.store.accounts import users
from backburner.store.lifecycle.opening import open_database
from support.people.a_token import TOKEN, put_token
from support.programs.programs import starter

CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)
#: They would go on for ever, or end what the requests are made with.
LEFT_OUT = (
    "/api/events",
    "/api/erase",
    "/api/password",
    "/api/sign-out",
    "/api/sign-out-everywhere",
)


@contextmanager
def running(data: Path) -> Iterator[str]:
    """Start a server with somebody in it, and give its address."""
    with closing(open_database(f"sqlite:///{data / 'backburner.sqlite3'}", Clock().read)) as made:
        user = new_user_id()
        made.run(lambda tx: users.add(tx.connection, user, name="Ann", now=tx.now))
        made.run(lambda tx: put_token(tx.connection, user))
    with starter() as start:
        yield start("up", "--port", "0", "--data", data).wait_until_ready()


def fuzz(address: str, *, seconds: float, examples: int) -> tuple[int, list[str]]:
    """Send requests of every kind, round after round; give how many, and what was wrong."""
    schema = schemathesis.openapi.from_url(f"{address}/api/openapi.json")
    found = [one.ok() for one in schema.get_all_operations() if isinstance(one, Ok)]
    operations = [one for one in found if one.path not in LEFT_OUT]
    until, count, wrong = time.monotonic() + seconds, 0, dict[str, str]()
    while time.monotonic() < until:
        for operation in operations:
            if operation.label in wrong or time.monotonic() > until:
                continue
            try:
                count += _send(operation, examples)
            except FailureGroup as failures:
                wrong[operation.label] = str(failures)
    return count, list(wrong.values())


def _send(operation: APIOperation[Any, Any, Any, Any], examples: int) -> int:
    """Send some requests of one kind, and say how many it were."""
    count = 0

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=False,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def send(case: Case[Any]) -> None:
        nonlocal count
        count += 1
        headers = {"authorization": f"Bearer {TOKEN}"}
        case.call_and_validate(headers=headers, checks=list(CHECKS))

    send()
    return count
