"""A filter of system calls, for what Landlock lets through: sockets that are files, above all.

Through those, a program asks others to do what it may not: a container engine, a session bus, a
database that goes by who asks. Imported as `landlock` is.
"""

import _ctypes
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PR_SET_SECCOMP, MODE_FILTER = 22, 2
AF_UNIX = 1
EPERM, EACCES, ENOSYS = 1, 13, 38

#: By machine: how the kernel calls it, and its numbers of `socket` and `prlimit64`.
MACHINES = {"x86_64": (0xC000003E, 41, 302), "aarch64": (0xC00000B7, 198, 261)}
#: It would open sockets without our seeing it. The same number everywhere.
IO_URING_SETUP = 425
#: Calls from here on are the same ones in another guise.
X32 = 0x40000000

LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
#: Where what is looked at lies: the number of the call, the machine, the first argument.
NUMBER, ARCHITECTURE, FIRST = 0, 4, 16
ALLOW, REFUSE = 0x7FFF0000, 0x00050000


class Char(_ctypes._SimpleCData):  # type: ignore[type-arg]  # noqa: SLF001 (no other is light)
    _type_ = "c"


def fits() -> bool:
    return os.uname().machine in MACHINES


def forbid_unix_sockets(call: "Callable[..., int]") -> None:
    """From now on no socket that is a file, and nobody else's limits.

    Pairs of sockets, which programs have for themselves, stay.
    """
    if not fits():
        return
    program = filter_for(*MACHINES[os.uname().machine])
    # The kernel wants to be told where the program lies, not the program.
    code = in_memory(b"".join(program))
    where = len(program).to_bytes(8, "little") + _ctypes.addressof(code).to_bytes(8, "little")
    if call("prctl", PR_SET_SECCOMP, MODE_FILTER, where) < 0:
        raise OSError(EPERM, "The kernel did not take it.")


def in_memory(code: bytes) -> "_ctypes.Array[Char]":
    array = type("Code", (_ctypes.Array,), {"_type_": Char, "_length_": len(code)})
    held: _ctypes.Array[Char] = array(*code)
    return held


def filter_for(architecture: int, socket: int, prlimit: int) -> "list[bytes]":
    """Write the program. A jump says how many steps to skip if it is so, and if it is not."""
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


def step(code: int, value: int, if_so: int = 0, if_not: int = 0) -> bytes:
    return code.to_bytes(2, "little") + bytes((if_so, if_not)) + value.to_bytes(4, "little")
