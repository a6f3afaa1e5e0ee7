"""A seccomp filter for what Landlock does not cover: Unix sockets above all.

Through those, a program could ask a service to do what it may not do itself: a container engine, a
session bus, a database with peer authentication. Imported the same way as `landlock`.
"""

import _ctypes
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PR_SET_SECCOMP, MODE_FILTER = 22, 2
AF_UNIX = 1
EPERM, EACCES, ENOSYS = 1, 13, 38

#: By machine: its audit number, and its system call numbers of `socket` and `prlimit64`.
MACHINES = {"x86_64": (0xC000003E, 41, 302), "aarch64": (0xC00000B7, 198, 261)}
#: It could open sockets past the filter. The same number on every machine.
IO_URING_SETUP = 425
#: From here on, the same system calls again, for the x32 ABI.
X32 = 0x40000000

LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
#: Offsets in `seccomp_data`: the number of the call, the machine, the first argument.
NUMBER, ARCHITECTURE, FIRST = 0, 4, 16
ALLOW, REFUSE = 0x7FFF0000, 0x00050000


class Char(_ctypes._SimpleCData):  # type: ignore[type-arg]  # noqa: SLF001 (ctypes takes 5 ms)
    _type_ = "c"


def is_supported() -> bool:
    return os.uname().machine in MACHINES


def forbid_unix_sockets(call: "Callable[..., int]") -> None:
    """Forbid Unix sockets, and changing the limits of other processes, from now on.

    Socket pairs, which programs use among themselves, stay allowed.
    """
    if not is_supported():
        return
    program = filter_for(*MACHINES[os.uname().machine])
    # The kernel takes the address of the program.
    code = in_memory(b"".join(program))
    pointer = len(program).to_bytes(8, "little") + _ctypes.addressof(code).to_bytes(8, "little")
    if call("prctl", PR_SET_SECCOMP, MODE_FILTER, pointer) < 0:
        raise OSError(EPERM, "The kernel refused the filter.")


def in_memory(code: bytes) -> "_ctypes.Array[Char]":
    array = type("Code", (_ctypes.Array,), {"_type_": Char, "_length_": len(code)})
    memory: _ctypes.Array[Char] = array(*code)
    return memory


def filter_for(architecture: int, socket: int, prlimit: int) -> "list[bytes]":
    """Write the BPF program. A jump gives the steps to skip if true, and if false."""
    return [
        step(LOAD, ARCHITECTURE),
        step(EQUAL, architecture, 0, 11),
        step(LOAD, NUMBER),
        step(AT_LEAST, X32, 9, 0),
        step(EQUAL, IO_URING_SETUP, 8, 0),
        step(EQUAL, socket, 3, 0),
        step(EQUAL, prlimit, 0, 4),
        step(LOAD, FIRST),
        step(EQUAL, 0, 2, 5),
        step(LOAD, FIRST),
        step(EQUAL, AF_UNIX, 1, 0),
        step(RETURN, ALLOW),
        step(RETURN, REFUSE | EACCES),
        step(RETURN, REFUSE | ENOSYS),
        step(RETURN, REFUSE | EPERM),
    ]


def step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return code.to_bytes(2, "little") + bytes((if_true, if_false)) + value.to_bytes(4, "little")
