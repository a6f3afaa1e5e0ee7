"""Searches for garbage: none while a program starts, and short ones while it runs."""

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from backburner.garbage import without_collection

#: Starts a worker, and prints how garbage is searched for once it is ready.
PROGRAM = """
import gc, os, signal, sys
from backburner.app.program import run
from backburner.settings import load

def announce(name):
    print("gc:", gc.isenabled(), gc.get_freeze_count(), flush=True)
    os.kill(os.getpid(), signal.SIGTERM)

run(load(data=sys.argv[1], log_level="error"), announce=announce, serves=False)
"""


def test_garbage_is_collected_again_whatever_came_of_an_import() -> None:
    def fail() -> None:
        with without_collection():
            assert not gc.isenabled()
            raise ImportError

    with pytest.raises(ImportError):
        fail()
    assert gc.isenabled()


def test_a_program_that_is_ready_searches_and_leaves_out_what_it_started_with(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, tmp_path],
        check=True,
        timeout=60,
        capture_output=True,
        text=True,
    )

    (line,) = [line for line in done.stdout.splitlines() if line.startswith("gc:")]
    _, is_enabled, frozen = line.split()
    assert is_enabled == "True"
    # Modules, classes and statements; some come later, with their first use.
    assert int(frozen) > 50_000
