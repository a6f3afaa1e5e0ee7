"""Fixtures for tests of processes: a marker to find theirs by, and a way to start our programs."""

import secrets
from collections.abc import Iterator

import pytest
from support.programs.process_table import wait_until_gone


@pytest.fixture
def word() -> Iterator[str]:
    """Return an argument to find processes by; none of them may be left after the test."""
    word = f"word-{secrets.token_hex(8)}"
    yield word
    wait_until_gone(word)
