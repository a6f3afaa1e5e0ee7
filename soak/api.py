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
        count, wrong = fuzzing.fuzz(address, seconds=seconds, examples=50)
    for failure in wrong:
        print(failure, end="\n\n")
    took = time.monotonic() - began
    print(f"{count:,} requests, {len(wrong)} violations in {took:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
