"""A PID namespace for a command: it sees its own processes, in a /proc of its own, and no others.

The reaper stays outside and starts two children inside: the init, and the command. The kernel ends
every process inside when the init ends, and the init ends with the reaper. Imported the same way
as `landlock`.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import NoReturn

    from backburner.process import landlock
else:
    import _signal as signal

    import landlock

NEW_MOUNTS, NEW_IPC = 0x20000, 0x8000000
NEW_USER, NEW_PROCESSES, NEW_NETWORK = 0x10000000, 0x20000000, 0x40000000
NO_SUID, NO_DEVICES, NO_EXECUTION, RECURSIVE = 2, 4, 8, 0x4000
#: What the host unmounts is unmounted here too, and nothing that happens here is seen there.
SLAVE = 0x80000
#: System calls, with the same numbers on every machine, and their flags.
OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442
AT_FDCWD, AT_RECURSIVE, AT_DESCRIPTOR, ATTRIBUTE_READ_ONLY = -100, 0x8000, 0x1000, 1
CLONE_TREE, FROM_DESCRIPTOR, TO_DESCRIPTOR = 1, 4, 0x40
#: Errors of a kernel that gives namespaces and has none left: EAGAIN, ENOMEM, ENOSPC, EUSERS.
USED_UP = (11, 12, 28, 87)
#: Only processes that the reader could trace: the init is none of them.
ONLY_OWN = b"hidepid=4"


class NamespaceInit:
    """The first process of a namespace, as its parent sees it."""

    def __init__(self, pid: int, control: int) -> None:
        self.pid = pid
        self.control = control

    def end_when_alone(self) -> None:
        """Tell it to end as soon as the orphans that the command left have ended."""
        try:
            os.write(self.control, b".")
        except OSError:
            pass


def start_init() -> NamespaceInit:
    """Start a namespace, in which all later children begin."""
    leave_namespace()
    reader, writer = os.pipe()
    # Until it has its own handlers: with ours, a signal to it would be one to us.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    pid = os.fork()
    if pid == 0:
        run_init(reader, writer)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    os.close(reader)
    return NamespaceInit(pid, writer)


def check(returned: int) -> None:
    if returned != 0:
        is_used_up = landlock.last_error() in USED_UP
        number = landlock.NAMESPACES_USED_UP if is_used_up else landlock.NO_NAMESPACE
        raise OSError(number, "The kernel gave no namespace.")


def leave_namespace() -> None:
    """Make a new PID namespace, in which later children of this process begin."""
    if landlock.call("unshare", NEW_PROCESSES) == 0:
        return
    user, group = os.geteuid(), os.getegid()
    check(landlock.call("unshare", NEW_USER | NEW_PROCESSES))
    # Everybody is who they were, so that new files have the same owner.
    maps = {"setgroups": "deny", "uid_map": f"{user} {user} 1", "gid_map": f"{group} {group} 1"}
    try:
        for name, text in maps.items():
            with open(f"/proc/self/{name}", "wb", buffering=0) as file:
                file.write(text.encode())
    except OSError:
        # There is no way back, and without a user no file can be made.
        raise OSError(landlock.NO_NAMESPACE, "The kernel refused the user.") from None


def run_init(reader: int, writer: int) -> "NoReturn":
    """Collect orphans until told to end, or until the reaper is gone."""
    try:
        os.setsid()
        os.close(writer)
        os.dup2(reader, 0)
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        os.closerange(3, max(map(int, os.listdir("/proc/self/fd"))) + 1)
        signal.set_wakeup_fd(-1)
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)
        # The kernel collects them, and a wait lasts until there are none.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        if os.read(0, 1):
            os.waitpid(-1, 0)
    finally:
        os._exit(0)


def mount_proc(*, network: bool) -> None:
    """Mount a /proc of this process's PID namespace, for it alone.

    It leaves what else /proc lists of everybody: System V memory and, without the network,
    connections.
    """
    check(landlock.call("unshare", NEW_MOUNTS | NEW_IPC | (0 if network else NEW_NETWORK)))
    check(landlock.call("mount", None, b"/", None, RECURSIVE | SLAVE, None))
    flags = NO_SUID | NO_DEVICES | NO_EXECUTION
    check(landlock.call("mount", b"proc", b"/proc", b"proc", flags, ONLY_OWN))


def make_read_only(writable: "list[str]", folders: "dict[str, int]") -> None:
    """Make all mounts of this process read-only, except for these folders, if the kernel can.

    Landlock does not cover modes, times and owners of files. Devices need not be named. Some of the
    `folders` are open, and are not looked up again.
    """
    paths = [path if path in folders else os.path.realpath(path) for path in writable]
    paths = [path for path in paths if path in folders or is_mountable(path)]
    # Copies as they are now, with what is read-only in them already.
    copies = [open_tree(path, folders.get(path)) for path in paths]
    if min(copies, default=0) >= 0 and set_read_only():
        for copy, path in zip(copies, paths, strict=True):
            flags, place = FROM_DESCRIPTOR, (AT_FDCWD, os.fsencode(path))
            if path in folders:
                flags, place = FROM_DESCRIPTOR | TO_DESCRIPTOR, (folders[path], b"")
            landlock.check(landlock.call("syscall", MOVE_MOUNT, copy, b"", *place, flags))
    for copy in copies:
        if copy >= 0:
            os.close(copy)


def reopen_streams() -> None:
    """Open /dev/null again for each stream that is it, by a mount that is read-only now."""
    nothing = os.open(os.devnull, os.O_RDWR)
    device = os.fstat(nothing).st_rdev
    for fd in (0, 1, 2):
        try:
            if os.fstat(fd).st_rdev == device:
                os.dup2(nothing, fd)
        except OSError:
            continue
    os.close(nothing)


def is_mountable(path: str) -> bool:
    return os.path.isdir(path) or os.path.isfile(path)


def open_tree(path: str, opened: "int | None") -> int:
    flags = CLONE_TREE | AT_RECURSIVE | os.O_CLOEXEC
    if opened is not None:
        return landlock.call("syscall", OPEN_TREE, opened, b"", flags | AT_DESCRIPTOR)
    return landlock.call("syscall", OPEN_TREE, AT_FDCWD, os.fsencode(path), flags)


def set_read_only() -> bool:
    # What to set, to clear, the propagation, and a user namespace.
    attributes = ATTRIBUTE_READ_ONLY.to_bytes(8, "little") + bytes(24)
    size = len(attributes)
    return (
        landlock.call("syscall", MOUNT_SETATTR, AT_FDCWD, b"/", AT_RECURSIVE, attributes, size) == 0
    )
