"""The tests of the pure core with many times the usual examples, and new ones each time."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def main(arguments: list[str]) -> int:
    command = [
        *(sys.executable, "-m", "pytest", "tests/core", "--numprocesses=auto", "--dist=loadfile"),
        # Says how many examples each test saw, and why it stopped.
        "--hypothesis-show-statistics",
        "--timeout=0",
        *arguments,
    ]
    environment = {**os.environ, "BACKBURNER_TEST_PROFILE": "soak"}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
