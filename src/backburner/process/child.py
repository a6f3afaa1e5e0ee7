"""The command's own process, between fork and exec: sets its limits and confines it.

The reaper imports this by its folder, and only for commands that have limits or a confinement:
see there why it imports next to nothing.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import resource
    import signal
    from typing import NoReturn

    from backburner.process import control_group, landlock, namespace, seccomp
else:
    import _signal as signal
    import resource

    import control_group
    import landlock
    import namespace
    import seccomp

#: The options that the reaper passes on to here.
OPTIONS = (
    *("read", "write", "execute", "direct", "cwd", "alone", "network", "namespace"),
    *("file_limit", "process_limit", "group"),
)
#: Of -1000 to 1000. The kernel ends processes with a higher one first when memory runs out.
OOM_SCORE = 500

PR_CAPBSET_READ, PR_CAPBSET_DROP = 23, 24
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT, CLEAR_ALL = 47, 4
LAST_CAPABILITY = 63
#: For `capget` and `capset`: the version of their data, and this process.
CAPABILITY_HEADER = 0x20080522.to_bytes(4, sys.byteorder) + bytes(4)


def start_child(
    command: "list[str]", environment: "dict[str, str]", options: "list[str]"
) -> "tuple[int, namespace.NamespaceInit | None]":
    """Start a command and return its process id, and the init of its namespace, if it has one.

    Raises `OSError` as a spawn would.
    """
    values = parse_options(options)
    init = namespace.start_init() if values["namespace"] else None
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        run_child(command, environment, values, writer=writer)
    os.close(writer)
    # A successful exec closes the pipe without writing to it.
    failure = os.read(reader, 32)
    os.close(reader)
    if failure:
        os.waitpid(pid, 0)
        raise OSError(int(failure), "The command was not run.")
    return pid, init


def run_child(
    command: "list[str]",
    environment: "dict[str, str]",
    values: "dict[str, list[str]]",
    *,
    writer: int,
) -> "NoReturn":
    number = landlock.NOT_CONFINED
    try:
        os.setsid()
        reset_signals()
        apply_options(values)
        exec_on_path(command, environment)
    except OSError as error:
        number = error.errno or number
    finally:
        # Any failure ends here: only the parent may continue as the reaper.
        os.write(writer, b"%d" % number)
        os._exit(126)


def exec_on_path(command: "list[str]", environment: "dict[str, str]") -> None:
    """Replace this process by the command, searched for along the PATH.

    `os.execvpe` does the same, and imports more first.
    """
    folders = [""] if "/" in command[0] else environment.get("PATH", os.defpath).split(":")
    refused = None
    for folder in folders:
        try:
            os.execve(os.path.join(folder, command[0]), command, environment)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError as error:
            refused = error
    raise refused or FileNotFoundError(2, "The program was not found.")


def reset_signals() -> None:
    """Restore the default action of every signal; Python and our caller change some."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def parse_options(options: "list[str]") -> "dict[str, list[str]]":
    values: dict[str, list[str]] = {name: [] for name in OPTIONS}
    for option in options:
        name, value = option.split("=", 1)
        values[name].append(value)
    return values


def apply_options(values: "dict[str, list[str]]") -> None:
    network = bool(values["network"])
    control_group.join_groups(values["group"])
    if values["file_limit"]:
        set_limits(int(values["file_limit"][0]), int(values["process_limit"][0]))
    if values["namespace"]:
        namespace.mount_proc(network=network)
    folders = {path: landlock.open_direct(path) for path in values["direct"]}
    if values["namespace"]:
        namespace.make_read_only(values["write"], folders)
        namespace.reopen_streams()
        values["read"].append("/proc")
    if values["cwd"]:
        os.fchdir(landlock.open_direct(values["cwd"][0]))
    elif values["namespace"]:
        # It is still the folder below a mount.
        os.chdir(os.getcwd())
    if values["read"] or values["write"]:
        drop_capabilities()
        landlock.check(landlock.call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        landlock.restrict(values["read"], values["write"], values["execute"], folders)
        seccomp.restrict(landlock.call, network=network, alone=bool(values["alone"]))


def set_limits(max_file_bytes: int, max_new_processes: int) -> None:
    lower(resource.RLIMIT_CORE, 0)
    lower(resource.RLIMIT_FSIZE, max_file_bytes)
    if sys.platform == "linux":
        # The limit counts all threads of the user, so those that run already are added to it.
        with open("/proc/loadavg", encoding="ascii") as file:
            present = int(file.read().split()[3].split("/")[1])
        lower(resource.RLIMIT_NPROC, present + max_new_processes)
        # If memory runs out, the kernel is to end the command and not the server.
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write(str(OOM_SCORE))


def lower(limit: int, value: int) -> None:
    _, hard = resource.getrlimit(limit)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(limit, (value, value))


def drop_capabilities() -> None:
    """Give up all capabilities at exec: those of root, of a user namespace, and inherited ones.

    With its capabilities, root could read the memory of every process through /proc.
    """
    landlock.call("prctl", PR_CAP_AMBIENT, CLEAR_ALL, 0, 0, 0)
    held = seccomp.in_memory(bytes(24))
    landlock.check(landlock.call("capget", CAPABILITY_HEADER, held))
    # Twice, for 32 of them each: effective, permitted, inheritable.
    words = bytes(held)
    kept = words[:8] + bytes(4) + words[12:20] + bytes(4)
    landlock.check(landlock.call("capset", CAPABILITY_HEADER, kept))
    for capability in range(LAST_CAPABILITY + 1):
        landlock.call("prctl", PR_CAPBSET_DROP, capability, 0, 0, 0)
        is_left = landlock.call("prctl", PR_CAPBSET_READ, capability, 0, 0, 0) == 1
        if is_left and 0 in (os.getuid(), os.geteuid()):
            raise OSError(landlock.NOT_CONFINED, "Root would keep capabilities.")
