"""Landlock, by its system calls: confines this process to some files and folders.

The command's own process imports this before exec, so it imports next to nothing, like the reaper.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from backburner.process.seccomp import Memory

#: In place of an errno: the command could not be confined, so it was not run.
NOT_CONFINED = 1000
#: The same: the kernel gives no namespaces, or has none left.
NO_NAMESPACE, NAMESPACES_USED_UP = 1001, 1002
#: The same: a folder that has to be opened through no link is gone, or there is one.
FOLDER_REPLACED = 1003

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
CREATE_RULESET_VERSION = 1
RULE_PATH_BENEATH = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
MAKE_CHAR, MAKE_BLOCK = 1 << 6, 1 << 11
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15

FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
READ_RIGHTS = EXECUTE | READ_FILE | READ_DIR
#: Root could make a device node there and read the disk through it.
WRITE_RIGHTS = ~(MAKE_CHAR | MAKE_BLOCK)

#: Flags of functions that ctypes calls.
FUNCTION_OF_C, KEEPS_ERRNO = 1, 8

#: No signals and no abstract Unix sockets to processes outside the confinement.
SCOPES = 0b11


def version() -> int:
    """Return the kernel's Landlock version; below 1, it is missing or disabled."""
    return call("syscall", CREATE_RULESET, None, 0, CREATE_RULESET_VERSION)


def handled_rights(version: int) -> int:
    """Return the file access rights that this version knows."""
    newest = {1: REFER - 1, 2: TRUNCATE - 1, 3: IOCTL_DEV - 1, 4: IOCTL_DEV - 1}
    return newest.get(version, (IOCTL_DEV << 1) - 1)


def open_direct(path: str) -> int:
    """Open a folder through no link, from the top on."""
    flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    opened = os.open("/", flags)
    try:
        for name in path.split("/"):
            if name:
                below = os.open(name, flags, dir_fd=opened)
                os.close(opened)
                opened = below
    except OSError:
        raise OSError(FOLDER_REPLACED, "There is a link.") from None
    return opened


def restrict(
    readable: "list[str]",
    writable: "list[str]",
    executable: "list[str] | None" = None,
    folders: "dict[str, int] | None" = None,
) -> None:
    """Confine this process and its descendants to these folders and files.

    Paths that do not exist are skipped, and stay forbidden if they are made later. With
    `executable`, programs are started from these files alone. Some of the `folders` may be open.
    """
    supported = version()
    if supported < 1:
        raise OSError(NOT_CONFINED, "Landlock is missing.")
    files = handled_rights(supported)
    # The struct grew: file rights, then network rights (4), then scopes (6).
    attributes = files.to_bytes(8, sys.byteorder)
    if supported >= 6:
        attributes += bytes(8) + SCOPES.to_bytes(8, sys.byteorder)
    rules = check(call("syscall", CREATE_RULESET, attributes, len(attributes), 0))
    withheld = EXECUTE if executable else 0
    for paths, access in (
        (readable, READ_RIGHTS & ~withheld),
        (writable, WRITE_RIGHTS & ~withheld),
        (executable or [], EXECUTE | READ_FILE),
    ):
        for path in paths:
            allow(rules, path, access & files, (folders or {}).get(path))
    check(call("syscall", RESTRICT_SELF, rules, 0))
    os.close(rules)


def allow(rules: int, path: str, access: int, opened: "int | None" = None) -> None:
    try:
        target = os.open(path, os.O_PATH | os.O_CLOEXEC) if opened is None else os.dup(opened)
    except OSError:
        return
    if opened is None and not os.path.isdir(path):
        access &= FILE_RIGHTS
    rule = access.to_bytes(8, sys.byteorder) + target.to_bytes(4, sys.byteorder)
    check(call("syscall", ADD_RULE, rules, RULE_PATH_BENEATH, rule, 0))
    os.close(target)


def check(returned: int) -> int:
    if returned < 0:
        raise OSError(NOT_CONFINED, "The kernel refused the call.")
    return returned


def call(function: str, *arguments: "int | bytes | Memory | None") -> int:
    """Call a function of the C library. Importing `ctypes` for it would take 5 ms."""
    if sys.platform != "linux":
        return -1
    import _ctypes

    class Function(_ctypes.CFuncPtr):
        _flags_ = FUNCTION_OF_C | KEEPS_ERRNO

    address = _ctypes.dlsym(_ctypes.dlopen(None, 0), function)  # type: ignore[arg-type]
    return int(Function(address)(*arguments))


def last_error() -> int:
    """Return the errno of the last call that failed."""
    import _ctypes

    return _ctypes.get_errno()
