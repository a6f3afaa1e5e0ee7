"""Whether this machine has memory for one more Claude Code process."""

import pytest

from backburner.app.machines import CLAUDE_MEMORY_BYTES, RESERVED_MEMORY_BYTES, has_memory


@pytest.mark.parametrize("starting", [0, 1, 4])
def test_starting_processes_count_with_their_full_memory(starting: int) -> None:
    enough = (starting + 1) * CLAUDE_MEMORY_BYTES + RESERVED_MEMORY_BYTES

    assert has_memory(enough, starting=starting)
    assert not has_memory(enough - 1, starting=starting)


def test_unknown_free_memory_counts_as_enough() -> None:
    assert has_memory(None, starting=9)
