"""Landlock, through its system calls: from now on, only these files and folders.

The command's own process imports this before it becomes the command, so it imports next to
nothing, as the reaper does.
"""

import os
import sys

#: In place of an error of the system: the command could not be confined, so it was not run.
NOT_CONFINED = 1000

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
ASK_FOR_VERSION = 1
RULE_PATH_BENEATH = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
MAKE_CHAR, MAKE_BLOCK = 1 << 6, 1 << 11
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15

OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
TO_READ = EXECUTE | READ_FILE | READ_DIR
#: Whoever is root and makes a device there could read the disk by it.
TO_WRITE = ~(MAKE_CHAR | MAKE_BLOCK)

#: Signals, and sockets that have a name but no file, to nobody who is not confined with it.
SCOPES = 0b11


def version() -> int:
    """Give the version of Landlock that the kernel has; below one: it has none, or not in use."""
    return call("syscall", CREATE_RULESET, None, 0, ASK_FOR_VERSION)


def handled(version: int) -> int:
    """Give all that this version can forbid to do with files."""
    newest = {1: REFER - 1, 2: TRUNCATE - 1, 3: IOCTL_DEV - 1, 4: IOCTL_DEV - 1}
    return newest.get(version, (IOCTL_DEV << 1) - 1)


def restrict(readable: "list[str]", writable: "list[str]") -> None:
    """Confine this process, and all that come from it, to these folders and files.

    What is not there is left out. It never comes to be allowed later.
    """
    supported = version()
    if supported < 1:
        raise OSError(NOT_CONFINED, "There is no Landlock.")
    files = handled(supported)
    # What each version knows: files, then the network, then scopes.
    known = files.to_bytes(8, sys.byteorder)
    if supported >= 6:
        known += bytes(8) + SCOPES.to_bytes(8, sys.byteorder)
    rules = check(call("syscall", CREATE_RULESET, known, len(known), 0))
    for paths, access in ((readable, TO_READ), (writable, TO_WRITE)):
        for path in paths:
            allow(rules, path, access & files)
    check(call("syscall", RESTRICT_SELF, rules, 0))
    os.close(rules)


def allow(rules: int, path: str, access: int) -> None:
    try:
        target = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not os.path.isdir(path):
        access &= OF_FILES
    rule = access.to_bytes(8, sys.byteorder) + target.to_bytes(4, sys.byteorder)
    check(call("syscall", ADD_RULE, rules, RULE_PATH_BENEATH, rule, 0))
    os.close(target)


def check(returned: int) -> int:
    if returned < 0:
        raise OSError(NOT_CONFINED, "The kernel did not take it.")
    return returned


def call(function: str, *arguments: "int | bytes | None") -> int:
    """Call a function of the C library; `ctypes` would do it more nicely, and take 5 ms."""
    if sys.platform != "linux":
        return -1
    import _ctypes

    address = _ctypes.dlsym(_ctypes.dlopen(None, 0), function)  # type: ignore[arg-type]
    return int(_ctypes.call_function(address, arguments))
