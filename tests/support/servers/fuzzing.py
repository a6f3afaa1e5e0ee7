"""Requests made up from the description of the API, sent to a server that runs."""

import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
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
from backburner.store.lifecycle.opening import open_database
from support.people.a_token import TOKEN, put_token
from support.people.users import add_user
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
        made.run(lambda tx: add_user(tx, user, name="Ann"))
        made.run(lambda tx: put_token(tx.connection, user))
    with starter() as start:
        env = {**os.environ, "BACKBURNER_REQUESTS_PER_MINUTE": "1000000"}
        yield start("up", "--port", "0", "--data", data, env=env).wait_until_ready()


Operation = APIOperation[Any, Any, Any, Any]


@dataclass
class Tally:
    """The number of requests of each operation, and the failures of those that failed."""

    sent: Counter[str] = field(default_factory=Counter)
    failures: dict[str, str] = field(default_factory=dict)


def fuzz_once(address: str, *, examples: int) -> Tally:
    """Send the same requests each time, so many of every kind."""
    tally = Tally()
    for operation in _operations(address):
        _send(operation, tally, examples=examples, derandomize=True)
    return tally


def fuzz_for(seconds: float, address: str, *, examples: int) -> Tally:
    """Send new requests of every kind that has not failed, round after round."""
    until, tally, operations = time.monotonic() + seconds, Tally(), _operations(address)
    while time.monotonic() < until:
        for operation in operations:
            if operation.label not in tally.failures and time.monotonic() < until:
                _send(operation, tally, examples=examples, derandomize=False)
    return tally


def _operations(address: str) -> list[Operation]:
    schema = schemathesis.openapi.from_url(f"{address}/api/openapi.json")
    found = [one.ok() for one in schema.get_all_operations() if isinstance(one, Ok)]
    return [one for one in found if one.path not in LEFT_OUT]


def _send(operation: Operation, tally: Tally, *, examples: int, derandomize: bool) -> None:

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=derandomize,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def send(case: Case[Any]) -> None:
        tally.sent[operation.label] += 1
        headers = {"authorization": f"Bearer {TOKEN}"}
        case.call_and_validate(headers=headers, checks=list(CHECKS))

    try:
        send()
    except FailureGroup as failures:
        tally.failures[operation.label] = str(failures)
