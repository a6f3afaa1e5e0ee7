"""A seccomp filter for what Landlock does not cover: sockets above all.

Without the network no socket can be opened at all. With it, only those of the internet, and those
that look up routes: through Unix sockets, a program could ask a service to do what it may not do
itself (a container engine, a session bus, a database with peer authentication). Nor are there
System V memory and keys, which outlive their processes and are shared with those of other users;
nor namespaces and mounts, which the kernel uses with its own rights; nor leases, which hold up
whoever opens a file. Room on the disk cannot be reserved, which fills it at once, and attributes of
files cannot be set by paths, which may lead anywhere: as on a file system without them. Limits and
priorities can be changed by a process for itself only. A process that is to stay alone can start
threads, and no processes. Imported the same way as `landlock`.
"""

import _ctypes
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    #: Where the kernel reads and writes.
    Memory = _ctypes.Array["Char"]
    #: A step, a jump, or the name of the place before the next one.
    Line = str | tuple[int, int] | tuple[int, int, str, str]

PR_SET_SECCOMP, MODE_FILTER = 22, 2
AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, NETLINK_ROUTE = 1, 2, 10, 16, 0
#: Of pairs, only types that stay connected: the others send to any address.
SOCK_STREAM, SOCK_SEQPACKET, SOCK_TYPES = 1, 5, 0xF
PRIO_PROCESS, IOPRIO_WHO_PROCESS = 0, 1
EPERM, EACCES, ENOSYS, EOPNOTSUPP = 1, 13, 38, 95

#: The names of these machines in audits.
MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
#: System calls by their numbers on each of them.
SOCKET = {"x86_64": 41, "aarch64": 198}
SOCKETPAIR = {"x86_64": 53, "aarch64": 199}
SETPRIORITY = {"x86_64": 141, "aarch64": 140}
IOPRIO_SET = {"x86_64": 251, "aarch64": 30}
#: Calls that name a process first: prlimit64, sched_setparam, sched_setscheduler,
#: sched_setaffinity and sched_setattr.
OF_PROCESS = {"x86_64": (302, 142, 144, 203, 314), "aarch64": (261, 118, 119, 122, 274)}
#: unshare and clone, which make namespaces.
WITH_NAMESPACES = {"x86_64": (272, 56), "aarch64": (97, 220)}
#: fork and vfork, which not every machine has; and clone, with its flag for threads.
FORKS = {"x86_64": (57, 58), "aarch64": ()}
CLONE = {"x86_64": 56, "aarch64": 220}
CLONE_THREAD = 0x10000
#: Of time, mounts, control groups, host names, System V memory, users, processes and networks.
NAMESPACES = 0x7E020080
SETNS = {"x86_64": 308, "aarch64": 268}
FCNTL = {"x86_64": 72, "aarch64": 25}
#: F_SETLEASE, F_NOTIFY and F_SETDELEG.
LEASES = (1024, 1026, 1040)
#: open_tree, move_mount, fsopen, fsconfig, fsmount, fspick, mount_setattr and open_tree_attr.
MOUNTS = (428, 429, 430, 431, 432, 433, 442, 467)
#: Not there: shmget, semget, msgget, whose memory outlives a process; add_key, request_key, keyctl,
#: whose keys do; clone3, which starts processes in other control groups (libraries then use
#: clone); io_uring_setup, which opens sockets past the filter; and mounts.
MISSING = {
    "x86_64": (29, 64, 68, 248, 249, 250, 435, 425, *MOUNTS),
    "aarch64": (194, 190, 186, 217, 218, 219, 435, 425, *MOUNTS),
}
#: As on a file system that has no such thing: fallocate (the C library then writes); setxattr,
#: lsetxattr, removexattr and lremovexattr; setxattrat, removexattrat and file_setattr.
UNSUPPORTED = {
    "x86_64": (285, 188, 189, 197, 198, 463, 466, 469),
    "aarch64": (47, 5, 6, 14, 15, 463, 466, 469),
}
#: The system call `seccomp`, which says whether filters can refuse calls.
SECCOMP = {"x86_64": 317, "aarch64": 277}
GET_ACTION_AVAIL = 2
#: From here on, the same system calls again, for the x32 ABI.
X32 = 0x40000000

LOAD, AND, EQUAL, AT_LEAST, RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
#: Offsets in `seccomp_data`: the number of the call, the machine, and the first three arguments.
NUMBER, ARCHITECTURE, FIRST, SECOND, THIRD = 0, 4, 16, 24, 32
ALLOW, REFUSE = 0x7FFF0000, 0x00050000

#: What is looked at in the arguments of a call, and what becomes of it. A jump names where to go on
#: if it is true, and if not.
CHECKS: "tuple[Line, ...]" = (
    "socket",
    (LOAD, FIRST),
    (EQUAL, AF_INET, "allowed", ""),
    (EQUAL, AF_INET6, "allowed", ""),
    (EQUAL, AF_NETLINK, "", "refused"),
    (LOAD, THIRD),
    (EQUAL, NETLINK_ROUTE, "allowed", "refused"),
    "pair",
    (LOAD, FIRST),
    (EQUAL, AF_UNIX, "", "refused"),
    (LOAD, SECOND),
    (AND, SOCK_TYPES),
    (EQUAL, SOCK_STREAM, "allowed", ""),
    (EQUAL, SOCK_SEQPACKET, "allowed", "refused"),
    "thread",
    (LOAD, FIRST),
    (AND, CLONE_THREAD),
    (EQUAL, CLONE_THREAD, "", "not permitted"),
    "namespaces",
    (LOAD, FIRST),
    (AND, NAMESPACES),
    (EQUAL, 0, "allowed", "not permitted"),
    "priority",
    (LOAD, FIRST),
    (EQUAL, PRIO_PROCESS, "named process", "not permitted"),
    "disk priority",
    (LOAD, FIRST),
    (EQUAL, IOPRIO_WHO_PROCESS, "named process", "not permitted"),
    "named process",
    (LOAD, SECOND),
    (EQUAL, 0, "allowed", "not permitted"),
    "process",
    (LOAD, FIRST),
    (EQUAL, 0, "allowed", "not permitted"),
    "descriptor",
    (LOAD, SECOND),
    *((EQUAL, lease, "not permitted", "") for lease in LEASES),
    "allowed",
    (RETURN, ALLOW),
    "refused",
    (RETURN, REFUSE | EACCES),
    "unknown",
    (RETURN, REFUSE | ENOSYS),
    "not permitted",
    (RETURN, REFUSE | EPERM),
    "unsupported",
    (RETURN, REFUSE | EOPNOTSUPP),
)


class Char(_ctypes._SimpleCData):  # type: ignore[type-arg]  # noqa: SLF001 (ctypes takes 5 ms)
    _type_ = "c"


def is_supported(call: "Callable[..., int]") -> bool:
    machine = os.uname().machine
    if machine not in MACHINES:
        return False
    action = REFUSE.to_bytes(4, "little")
    return call("syscall", SECCOMP[machine], GET_ACTION_AVAIL, 0, action) == 0


def restrict(call: "Callable[..., int]", *, network: bool, alone: bool = False) -> None:
    """Forbid sockets, System V memory, keys, namespaces, leases, reserving room on the disk,
    attributes of files by their paths, and changes to other processes.

    Pairs of connected sockets, which programs use among themselves, stay allowed. `alone` also
    forbids processes.
    """
    machine = os.uname().machine
    if machine not in MACHINES:
        if network and not alone:
            return
        raise OSError(EPERM, "Nothing is known about this machine.")
    program = filter_for(machine, network=network, alone=alone)
    # The kernel takes the address of the program.
    code = in_memory(b"".join(program))
    pointer = len(program).to_bytes(8, "little") + _ctypes.addressof(code).to_bytes(8, "little")
    if call("prctl", PR_SET_SECCOMP, MODE_FILTER, pointer) < 0:
        raise OSError(EPERM, "The kernel refused the filter.")


def in_memory(code: bytes) -> "Memory":
    array = type("Code", (_ctypes.Array,), {"_type_": Char, "_length_": len(code)})
    memory: Memory = array(*code)
    return memory


def filter_for(machine: str, *, network: bool, alone: bool = False) -> "list[bytes]":
    """Write the BPF program."""
    forks = FORKS[machine] if alone else ()
    clones = (CLONE[machine],) if alone else ()
    return assemble(
        [
            (LOAD, ARCHITECTURE),
            (EQUAL, MACHINES[machine], "", "unknown"),
            (LOAD, NUMBER),
            (AT_LEAST, X32, "unknown", ""),
            *((EQUAL, number, "unknown", "") for number in MISSING[machine]),
            *((EQUAL, number, "unsupported", "") for number in UNSUPPORTED[machine]),
            *((EQUAL, number, "process", "") for number in OF_PROCESS[machine]),
            *((EQUAL, number, "not permitted", "") for number in forks),
            *((EQUAL, number, "thread", "") for number in clones),
            *((EQUAL, number, "namespaces", "") for number in WITH_NAMESPACES[machine]),
            (EQUAL, SETNS[machine], "not permitted", ""),
            (EQUAL, FCNTL[machine], "descriptor", ""),
            (EQUAL, SETPRIORITY[machine], "priority", ""),
            (EQUAL, IOPRIO_SET[machine], "disk priority", ""),
            (EQUAL, SOCKETPAIR[machine], "pair", ""),
            (EQUAL, SOCKET[machine], "socket" if network else "refused", "allowed"),
            *CHECKS,
        ]
    )


def assemble(lines: "list[Line]") -> "list[bytes]":
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
