"""The search for secrets in memory finds them where programs keep them."""

import sys

from support.faults.canaries import canary, found_in, memory_of
from support.programs.programs import Start

#: Reserves as much as Claude Code does for its heap, and uses little of it.
PROGRAM = """
import mmap, sys  # 0x4000: MAP_NORESERVE
heap = mmap.mmap(-1, 2**32, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
heap.seek(2**31)
# Nowhere else in one piece.
for part in (b"canary-", b"heap-sings"):
    heap.write(part)
print("ready", flush=True)
sys.stdin.read()
"""


def test_a_secret_in_a_large_region_is_found(start: Start) -> None:
    program = start(command=(sys.executable, "-I", "-c", PROGRAM))
    assert program.read_line() == "ready"

    found = set[str]().union(*map(found_in, memory_of(program.process.pid)))

    assert canary("heap") in found
