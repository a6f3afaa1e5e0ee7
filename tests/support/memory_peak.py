"""The memory that this process comes to need, whatever it needed before."""

import ctypes
from collections.abc import Callable
from pathlib import Path

PAGE = 4096
#: Of the kernel's counts, which it adds up for each processor first.
IMPRECISION_KILOBYTES = 8 * 1024
_PROCESS = Path("/proc/self")


def reset_peak() -> bool:
    """Have the kernel forget the earlier peak; return whether it has."""
    try:
        (_PROCESS / "clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return False
    return _read("VmHWM") - _read("VmRSS") < IMPRECISION_KILOBYTES


class PeakMemory:
    """Measures from when it is made.

    Where the peak cannot be reset, memory is filled up to it: then whatever is needed adds to it.
    """

    def __init__(self, *, reset: Callable[[], bool] = reset_peak) -> None:
        _give_back()
        self._filling = [] if reset() else _fill()
        self._before = _read("VmHWM")

    def grown_kilobytes(self) -> int:
        return _read("VmHWM") - self._before


def _give_back() -> None:
    """Give free memory back to the system: its use would not be seen."""
    ctypes.CDLL(None).malloc_trim(0)


def _fill() -> list[bytearray]:
    filling = list[bytearray]()
    while (missing := _read("VmHWM") - _read("VmRSS")) > IMPRECISION_KILOBYTES:
        block = bytearray(missing * 1024)
        block[::PAGE] = b"x" * len(range(0, len(block), PAGE))
        filling.append(block)
    return filling


def _read(name: str) -> int:
    lines = (_PROCESS / "status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))
