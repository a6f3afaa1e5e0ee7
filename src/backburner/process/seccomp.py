"""A seccomp filter for what Landlock does not cover: sockets above all.

Without the network no socket can be opened at all. With it, only those of the internet, and those
that look up routes: through Unix sockets, a program could ask a service to do what it may not do
itself (a container engine, a session bus, a database with peer authentication). Nor is there
System V memory, which outlives its processes and is shared with those of other users. Imported the
same way as `landlock`.
"""

import _ctypes
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PR_SET_SECCOMP, MODE_FILTER = 22, 2
AF_INET, AF_INET6, AF_NETLINK, NETLINK_ROUTE = 2, 10, 16, 0
EPERM, EACCES, ENOSYS = 1, 13, 38

#: By machine: its audit number, and its system call numbers of `socket` and `prlimit64`, and of
#: `shmget`, `semget` and `msgget`.
MACHINES = {
    "x86_64": (0xC000003E, 41, 302, (29, 64, 68)),
    "aarch64": (0xC00000B7, 198, 261, (194, 190, 186)),
}
#: The system call `seccomp`, which says whether filters can refuse calls.
SECCOMP = {"x86_64": 317, "aarch64": 277}
GET_ACTION_AVAIL = 2
#: It could open sockets past the filter. The same number on every machine.
IO_URING_SETUP = 425
#: From here on, the same system calls again, for the x32 ABI.
X32 = 0x40000000

LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
#: Offsets in `seccomp_data`: the number of the call, the machine, the first and third argument.
NUMBER, ARCHITECTURE, FIRST, THIRD = 0, 4, 16, 32
ALLOW, REFUSE = 0x7FFF0000, 0x00050000


class Char(_ctypes._SimpleCData):  # type: ignore[type-arg]  # noqa: SLF001 (ctypes takes 5 ms)
    _type_ = "c"


def is_supported(call: "Callable[..., int]") -> bool:
    machine = os.uname().machine
    if machine not in MACHINES:
        return False
    action = REFUSE.to_bytes(4, "little")
    return call("syscall", SECCOMP[machine], GET_ACTION_AVAIL, 0, action) == 0


def restrict(call: "Callable[..., int]", *, network: bool) -> None:
    """Forbid sockets, System V memory, and the limits of other processes, from now on.

    Socket pairs, which programs use among themselves, stay allowed.
    """
    if os.uname().machine not in MACHINES:
        if network:
            return
        raise OSError(EPERM, "Nothing is known about this machine.")
    program = filter_for(*MACHINES[os.uname().machine], network=network)
    # The kernel takes the address of the program.
    code = in_memory(b"".join(program))
    pointer = len(program).to_bytes(8, "little") + _ctypes.addressof(code).to_bytes(8, "little")
    if call("prctl", PR_SET_SECCOMP, MODE_FILTER, pointer) < 0:
        raise OSError(EPERM, "The kernel refused the filter.")


def in_memory(code: bytes) -> "_ctypes.Array[Char]":
    array = type("Code", (_ctypes.Array,), {"_type_": Char, "_length_": len(code)})
    memory: _ctypes.Array[Char] = array(*code)
    return memory


def filter_for(
    architecture: int, socket: int, prlimit: int, system_v: "tuple[int, ...]", *, network: bool
) -> "list[bytes]":
    """Write the BPF program. A jump names where to go on if it is true, and if not."""
    return assemble(
        [
            (LOAD, ARCHITECTURE),
            (EQUAL, architecture, "", "unknown"),
            (LOAD, NUMBER),
            (AT_LEAST, X32, "unknown", ""),
            (EQUAL, IO_URING_SETUP, "unknown", ""),
            *((EQUAL, number, "unknown", "") for number in system_v),
            (EQUAL, socket, "socket" if network else "refused", ""),
            (EQUAL, prlimit, "limits", "allowed"),
            "socket",
            (LOAD, FIRST),
            (EQUAL, AF_INET, "allowed", ""),
            (EQUAL, AF_INET6, "allowed", ""),
            (EQUAL, AF_NETLINK, "", "refused"),
            (LOAD, THIRD),
            (EQUAL, NETLINK_ROUTE, "allowed", "refused"),
            "limits",
            (LOAD, FIRST),
            (EQUAL, 0, "allowed", "of others"),
            "allowed",
            (RETURN, ALLOW),
            "refused",
            (RETURN, REFUSE | EACCES),
            "unknown",
            (RETURN, REFUSE | ENOSYS),
            "of others",
            (RETURN, REFUSE | EPERM),
        ]
    )


def assemble(lines: "list[str | tuple[int, int] | tuple[int, int, str, str]]") -> "list[bytes]":
    """Replace names of places by the number of steps to skip; no name is the next step."""
    steps: list[tuple[int, int] | tuple[int, int, str, str]] = []
    places = {}
    for line in lines:
        if isinstance(line, str):
            places[line] = len(steps)
        else:
            steps.append(line)
    program = []
    for number, line in enumerate(steps):
        skips = [places[target] - number - 1 if target else 0 for target in line[2:]]
        program.append(step(line[0], line[1], *skips))
    return program


def step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return code.to_bytes(2, "little") + bytes((if_true, if_false)) + value.to_bytes(4, "little")
