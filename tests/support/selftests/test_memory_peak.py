"""The measure of memory sees what is needed, also after an earlier peak."""

from collections.abc import Callable

import pytest

from support.memory_peak import PeakMemory, reset_peak

MEGABYTE = 2**20


def use(megabytes: int) -> None:
    """Need memory for a moment."""
    bytearray(b"x") * (megabytes * MEGABYTE)


@pytest.mark.parametrize("reset", [reset_peak, lambda: False], ids=["reset", "filled up"])
def test_memory_is_measured_after_an_earlier_peak(reset: Callable[[], bool]) -> None:
    use(300)
    memory = PeakMemory(reset=reset)

    assert memory.grown_kilobytes() < 16 * 1024
    use(100)
    assert 84 * 1024 < memory.grown_kilobytes() < 116 * 1024
