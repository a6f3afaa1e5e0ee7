"""The command's own process, between the fork and the command: its limits, and what confines it.

The reaper imports this by its folder, and only for commands that have either: see there why
it imports next to nothing.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import resource
    import signal
    from typing import NoReturn

    from backburner.process import landlock, seccomp
else:
    import _signal as signal
    import resource

    import landlock
    import seccomp

#: What the reaper passes on to here.
OPTIONS = ("read", "write", "sockets", "largest", "processes")

PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38
LAST_CAPABILITY = 63


def launch(command: "list[str]", environment: "dict[str, str]", options: "list[str]") -> int:
    """Start a command and give its id. Raises `OSError` as a spawn would."""
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        become(command, environment, options, tell)
    os.close(tell)
    # Becoming the command closes it, and so it ends without a word.
    said = os.read(told, 32)
    os.close(told)
    if said:
        os.waitpid(pid, 0)
        raise OSError(int(said), "It was not run.")
    return pid


def become(
    command: "list[str]", environment: "dict[str, str]", options: "list[str]", tell: int
) -> "NoReturn":
    number = landlock.NOT_CONFINED
    try:
        os.setsid()
        reset_signals()
        prepare(options)
        execute(command, environment)
    except OSError as error:
        number = error.errno or number
    finally:
        # Whatever it was: there is only one of us that may go on from here.
        os.write(tell, b"%d" % number)
        os._exit(126)


def execute(command: "list[str]", environment: "dict[str, str]") -> None:
    """Become the command, looked for along the PATH. What `os` has for this imports more first."""
    folders = [""] if "/" in command[0] else environment.get("PATH", os.defpath).split(":")
    refused = None
    for folder in folders:
        try:
            os.execve(os.path.join(folder, command[0]), command, environment)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError as error:
            refused = error
    raise refused or FileNotFoundError(2, "It is not there.")


def reset_signals() -> None:
    """Have all signals as they are meant, not as Python or our caller has them."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def prepare(options: "list[str]") -> None:
    values: dict[str, list[str]] = {name: [] for name in OPTIONS}
    for option in options:
        name, value = option.split("=", 1)
        values[name].append(value)
    if values["largest"]:
        limit(int(values["largest"][0]), int(values["processes"][0]))
    if values["read"] or values["write"]:
        confine(values["read"], values["write"], sockets=bool(values["sockets"]))


def limit(largest_file: int, processes: int) -> None:
    lower(resource.RLIMIT_CORE, 0)
    lower(resource.RLIMIT_FSIZE, largest_file)
    if sys.platform == "linux":
        # Threads of the whole user count, so there is room for all there are and some more.
        with open("/proc/loadavg", encoding="ascii") as file:
            present = int(file.read().split()[3].split("/")[1])
        lower(resource.RLIMIT_NPROC, present + processes)
        # If memory runs out, it is not to be our process that has to go.
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("500")


def lower(which: int, value: int) -> None:
    _, hard = resource.getrlimit(which)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(which, (value, value))


def confine(readable: "list[str]", writable: "list[str]", *, sockets: bool) -> None:
    if os.geteuid() == 0:
        # Root could read the memory of all through /proc. Without any of its powers it cannot.
        for capability in range(LAST_CAPABILITY + 1):
            landlock.call("prctl", PR_CAPBSET_DROP, capability, 0, 0, 0)
    landlock.check(landlock.call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    landlock.restrict(readable, writable)
    if not sockets:
        seccomp.forbid_unix_sockets(landlock.call)
