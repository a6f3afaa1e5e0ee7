"""What tests of processes get: a word to find theirs by, and a way to start a program of ours."""

import secrets
from collections.abc import Iterator

import pytest
from support.programs.process_table import wait_until_gone
from support.programs.programs import Start, starter


@pytest.fixture
def word() -> Iterator[str]:
    """Give an argument by which to find processes; none of them may be left after the test."""
    word = f"word-{secrets.token_hex(8)}"
    yield word
    wait_until_gone(word)


@pytest.fixture
def start() -> Iterator[Start]:
    with starter() as start:
        yield start
