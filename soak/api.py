"""Requests made up from the description of the API, for ten minutes, new ones each time."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from support.servers import fuzzing


def main() -> int:
    options = argparse.ArgumentParser(prog="soak api")
    options.add_argument("--minutes", type=float, default=10)
    seconds = 60 * options.parse_args().minutes
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as data, fuzzing.running(Path(data)) as address:
        tally = fuzzing.fuzz_for(seconds, address, examples=50)
    for failure in tally.failures.values():
        print(failure, end="\n\n")
    took = time.monotonic() - began
    print(f"{tally.sent.total():,} requests, {len(tally.failures)} violations in {took:.0f} s")
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
