"""Runs a command and ends every process it started. A separate program, run by its path:

    python -I -S reaper.py env=PATH,HOME [grace=5] [caller=PID] [control=FD] [clean=1]
        [max_memory=BYTES] [max_processes=N] [group1=PATH ...]
        [disk=PATH] [temporary=PATH] [min_free=BYTES] [min_free_files=N]
        [poll=SECONDS] [limit_report=PATH]
        [read=PATH ...] [write=PATH ...] [direct=PATH ...] [cwd=PATH] [network=1] [namespace=1]
        [file_limit=BYTES process_limit=N] -- COMMAND

It is two processes. Both adopt orphans below them (subreapers), so no process leaves the tree. The
inner one starts the command, the outer one is the caller's child, and if one of them is killed,
the other ends the tree. They end it when the command exits, when the caller closes the control
socket or exits, on SIGTERM, and when the tree exceeds one of its limits, which they report on the
socket or in a file. Then they exit as the command did.

Every command pays for the start of this, so it imports next to nothing: `signal`, `ctypes`,
`typing`, `contextlib` or `pathlib` would each take longer than all the rest. The last two lines of
options are for `child`, which is imported only for commands that have any of them.
"""

import os
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Iterator
    from types import ModuleType
    from typing import NoReturn

    from backburner.process.namespace import NamespaceInit

    #: A command, its environment, and the options for `child`.
    ChildSpec = tuple[list[str], dict[str, str], list[str]]
else:
    import _signal as signal

#: Between SIGTERM and SIGKILL.
GRACE_SECONDS = 5.0
#: Delay after which the outer process kills what the inner one has not.
HANDOVER_SECONDS = 1.0
#: Interval of checks that the parent is alive, where there is no pidfd.
PARENT_POLL_SECONDS = 0.5
#: Interval of looks at what the tree uses.
LIMIT_POLL_SECONDS = 0.25
#: Of a small disk, one in so many bytes or files is enough to have left.
SMALL_DISK_PART = 10
NEVER = float("inf")

#: Prefixes of the options for `child`.
CHILD_OPTIONS = tuple(
    "read= write= execute= direct= cwd= alone= network= namespace= file_limit= process_limit="
    " group=".split()
)

#: Why a command was not run, by the numbers of `landlock` in place of an errno.
NOT_RUN = {
    1000: "It cannot be confined on this system.",
    1001: "The kernel gave it no namespace of its own.",
    1002: "No namespaces are left on this machine to confine it.",
    1003: "Its folder is gone, or was replaced by a link.",
}
#: Exit codes: as a shell has them, and one that tells a trial that there are no namespaces.
NOT_FOUND, NOT_EXECUTED, NO_NAMESPACE = 127, 126, 125

REQUESTS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36


def main(arguments: list[str]) -> None:
    mark = arguments.index("--")
    for_child = [option for option in arguments[:mark] if option.startswith(CHILD_OPTIONS)]
    own = (option for option in arguments[:mark] if not option.startswith(CHILD_OPTIONS))
    options = dict(option.split("=", 1) for option in own)
    command = arguments[mark + 1 :]
    # By name, because Python adds variables to its own environment where there is no locale.
    names = options["env"].split(",")
    environment = {name: os.environ[name] for name in names if name in os.environ}
    if options.pop("clean", None):
        # /proc would show the rest of the caller's environment to the command.
        rest = [f"{name}={value}" for name, value in options.items()]
        again = [sys.executable, "-I", "-S", __file__, *rest, *for_child, "--", *command]
        os.execve(sys.executable, again, environment)
    limits = TreeLimits(options)
    split(
        (command, environment, for_child + [f"group={folder}" for folder in limits.groups]),
        grace=float(options.get("grace", GRACE_SECONDS)),
        caller=int(options.get("caller", os.getppid())),
        control=int(options.get("control", -1)),
        limits=limits,
    )


def split(
    spec: "ChildSpec", *, grace: float, caller: int, control: int, limits: "TreeLimits"
) -> None:
    """Fork into the outer and the inner process."""
    if control >= 0:
        os.set_inheritable(control, False)
    # Each has its own session, so no signal to a process group reaches both of them, or one of
    # them and the command.
    if os.getpgrp() != os.getpid():
        os.setsid()
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    # Until each of them watches: a request in between would end it without a word.
    signal.pthread_sigmask(signal.SIG_BLOCK, REQUESTS)
    outer = os.getpid()
    inner = os.fork()
    if inner == 0:
        os.setsid()
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        run_inner(spec, grace=grace, outer=outer, control=control, limits=limits)
    else:
        run_outer(inner, grace=grace, caller=caller, control=control, limits=limits)


def run_outer(
    inner: int, *, grace: float, caller: int, control: int, limits: "TreeLimits"
) -> "NoReturn":
    detach_streams()

    def ask_to_end(*, alive: bool) -> float:
        if not alive:
            return 0
        send_signal(inner, signal.SIGTERM)
        return grace + HANDOVER_SECONDS

    status = supervise(inner, EndWatch(caller, control), ask_to_end)
    limits.remove_groups()
    exit_as(status)


def run_inner(
    spec: "ChildSpec", *, grace: float, outer: int, control: int, limits: "TreeLimits"
) -> "NoReturn":
    # Before the command is started, so that no request to end is missed.
    watch = EndWatch(outer)
    try:
        child, init = start(*spec)
    except OSError as error:
        fail(spec[0][0], error.errno or 5, control)
    report(f"{child}", control)
    detach_streams()

    signalled: set[int] = set()

    def ask_to_end(*, alive: bool) -> float:
        if init and not alive:
            init.end_when_alone()
        # The oldest first: a shell that outlives the program it waits for would report its end.
        for pid, _ in reversed(descendants()):
            # Many programs give up cleaning up at a second SIGTERM.
            if pid not in signalled:
                signalled.add(pid)
                send_signal(pid, signal.SIGTERM)
                # A stopped process would not handle it.
                send_signal(pid, signal.SIGCONT)
        return grace

    def exceeds_limit() -> bool:
        exceeded = limits.exceeded(child, init.pid if init else 0)
        if exceeded:
            report(exceeded, control)
            limits.record(exceeded)
        return bool(exceeded)

    raise_priority()
    limit_look = (limits.poll_seconds, exceeds_limit) if limits else None
    status = supervise(child, watch, ask_to_end, limit_look)
    if not limits.found and (held := limits.held_by_kernel()):
        report(held, control)
        limits.record(held)
    limits.remove_groups()
    if sys.platform != "linux":
        # There are no subreapers there, but most orphans keep the process group of the command.
        send_signal(-child, signal.SIGKILL)
    exit_as(status)


def start(
    command: list[str], environment: dict[str, str], for_child: list[str]
) -> "tuple[int, NamespaceInit | None]":
    """Start the command, and return its process id and the init of its namespace, if it has one."""
    if for_child:
        started: tuple[int, NamespaceInit | None] = import_beside("child").start_child(
            command, environment, for_child
        )
        return started
    # Python ignores some signals, and our caller may; the command gets the default actions.
    defaults = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
    spawned = os.posix_spawnp(
        command[0], command, environment, setsid=True, setsigmask=(), setsigdef=defaults
    )
    return spawned, None


def import_beside(name: str) -> "ModuleType":
    """Import a module of this folder: isolated mode has no package."""
    folder = os.path.dirname(__file__)
    if folder not in sys.path:
        # Last, where it hides no other module.
        sys.path.append(folder)
    return __import__(name)


def fail(program: str, errno: int, control: int) -> "NoReturn":
    if control >= 0:
        report(f"{-errno}", control)
    else:
        why = NOT_RUN.get(errno) or os.strerror(errno)
        os.write(2, f"{program}: {why}\n".encode(errors="replace"))
    os._exit({2: NOT_FOUND, 20: NOT_FOUND, 1001: NO_NAMESPACE}.get(errno, NOT_EXECUTED))


def report(message: str, control: int) -> None:
    """Tell the caller the process id of the command, or a negative error number; then a limit."""
    if control >= 0:
        try:
            os.write(control, f"{message}\n".encode())
        except OSError:
            pass


def supervise(
    child: int,
    watch: "EndWatch",
    ask_to_end: "Callable[..., float]",
    limit_look: "tuple[float, Callable[[], bool]] | None" = None,
) -> int:
    """Wait for the child to exit or for a request to end, then until no process is left.

    Returns the exit status of the child. `ask_to_end` sends SIGTERM and returns the grace period.
    It is called again when the child has exited: a process forked during the first call missed it.
    `limit_look`: after how many seconds to look whether a limit is exceeded, and how.
    """
    status: int | None = None
    deadline = NEVER
    requested = False
    retry_delay = 0.005
    while True:
        before = status
        status, has_children = reap(child, status)
        if not has_children:
            return status or 0
        # A further request changes nothing: at a shutdown, requests come from several sides.
        if status != before or (requested and deadline == NEVER):
            deadline = min(deadline, time.monotonic() + ask_to_end(alive=status is None))
        seconds = deadline - time.monotonic()
        if limit_look and seconds > 0:
            seconds = 0 if limit_look[1]() else min(seconds, limit_look[0])
            deadline = time.monotonic() if seconds == 0 else deadline
        if seconds <= 0:
            kill_descendants()
            # A process that cannot be killed yet is tried again, less and less often.
            seconds = retry_delay = min(retry_delay * 1.2, 1)
        requested = watch.wait(seconds)


def reap(child: int, status: int | None) -> tuple[int | None, bool]:
    """Return the exit status of the child, if it has exited, and whether any child is left.

    Without children there are no descendants either: orphans become children.
    """
    while True:
        try:
            pid, ended = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status, False
        if pid == 0:
            return status, True
        if pid == child:
            status = ended


class EndWatch:
    """Waits for a request to end: a signal, a closed control socket, or the end of the parent."""

    def __init__(self, parent: int, control: int = -1) -> None:
        self.parent = parent
        self.control = control
        self.orphaned = False
        self.signals, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for number in (*REQUESTS, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, REQUESTS)
        self.poll = select.poll()
        self.poll.register(self.signals, select.POLLIN)
        if control >= 0:
            self.poll.register(control, select.POLLIN)
        self.watches_parent = self.watch_parent()

    def watch_parent(self) -> bool:
        try:
            self.poll.register(os.pidfd_open(self.parent), select.POLLIN)
        except (AttributeError, OSError):
            return False
        return True

    def wait(self, seconds: float) -> bool:
        """Wait for an event; return whether it was a request to end."""
        if self.lost_parent():
            return True
        if not self.watches_parent:
            seconds = min(seconds, PARENT_POLL_SECONDS)
        requested = False
        for fd, _ in self.poll.poll(None if seconds == NEVER else seconds * 1000):
            if fd == self.signals:
                requested |= any(number in REQUESTS for number in os.read(fd, 4096))
            else:
                # It stays readable, and there is nothing to read.
                self.poll.unregister(fd)
                requested |= fd == self.control
        return self.lost_parent() or requested

    def lost_parent(self) -> bool:
        if self.orphaned or os.getppid() == self.parent:
            return False
        self.orphaned = True
        return True


class TreeLimits:
    """The limits of all processes of the tree together."""

    def __init__(self, options: dict[str, str]) -> None:
        self.max_memory = int(options.get("max_memory", 0))
        self.max_processes = int(options.get("max_processes", 0))
        self.disk = options.get("disk", "")
        self.temporary = options.get("temporary", "")
        self.min_free = int(options.get("min_free", 0))
        self.min_free_files = int(options.get("min_free_files", 0))
        self.poll_seconds = float(options.get("poll", LIMIT_POLL_SECONDS))
        #: A file that names the exceeded limit.
        self.report_path = options.get("limit_report", "")
        self.others = count_threads()
        #: The limit that was exceeded.
        self.found = ""
        parents = [path for name, path in options.items() if name.startswith("group")]
        self.groups: list[str] = []
        if parents:
            self.control_group = import_beside("control_group")
            self.groups = self.control_group.make_groups(
                parents, max_memory=self.max_memory, max_processes=self.max_processes
            )

    def __bool__(self) -> bool:
        return bool(self.max_memory or self.max_processes or self.disk or self.temporary)

    def record(self, limit: str) -> None:
        if self.report_path:
            try:
                with open(self.report_path, "w", encoding="ascii") as file:
                    file.write(limit)
            except OSError:
                pass

    def held_by_kernel(self) -> str:
        return self.control_group.reached_limit(self.groups) if self.groups else ""

    def remove_groups(self) -> None:
        if self.groups:
            self.control_group.remove_groups(self.groups)

    def exceeded(self, child: int, init: int) -> str:
        """Name the limit that is exceeded, if one is. The init is not part of the command."""
        self.found = self.held_by_kernel() or self.measure(child, init)
        return self.found

    def measure(self, child: int, init: int) -> str:
        # Listing processes takes longer than some take to fork, so those wait meanwhile.
        has_many = self.max_processes and count_threads() > self.others + self.max_processes
        if has_many:
            send_signal(-child, signal.SIGSTOP)
        pids = [pid for pid, _ in descendants() if pid != init]
        if self.max_processes and len(pids) > self.max_processes:
            return "processes"
        if has_many:
            # They were threads, or those of others.
            send_signal(-child, signal.SIGCONT)
        # The first counts what they share for each of them; to know better takes longer.
        if (
            self.max_memory
            and sum(map(memory_bytes, pids)) > self.max_memory
            and sum(map(proportional_bytes, pids)) > self.max_memory
        ):
            return "memory"
        return self.measure_disks()

    def measure_disks(self) -> str:
        if disk := look_at_disk(self.disk):
            if disk.f_bavail * disk.f_frsize < self.min_free:
                return "disk"
            if self.lacks_files(disk):
                return "files"
        # This one may be small, and in memory.
        if disk := look_at_disk(self.temporary):
            least = min(self.min_free // disk.f_frsize, disk.f_blocks // SMALL_DISK_PART)
            if disk.f_bavail < least or self.lacks_files(disk):
                return "temporary"
        return ""

    def lacks_files(self, disk: os.statvfs_result) -> bool:
        # Some file systems can hold any number, which they call 0.
        return disk.f_favail < min(self.min_free_files, disk.f_files // SMALL_DISK_PART)


def count_threads() -> int:
    """Count the threads of all processes on this machine."""
    try:
        with open("/proc/loadavg", "rb", buffering=0) as file:
            return int(file.read(128).split()[3].split(b"/")[1])
    except OSError:
        return 0


def raise_priority() -> None:
    """Run before the processes it watches, where the system allows that."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -10)
    except OSError:
        pass


def memory_bytes(pid: int) -> int:
    """Return the memory of a process, with all that it shares, in swap, and for page tables."""
    return sum_lines(f"/proc/{pid}/status", b"VmRSS:", b"VmSwap:", b"VmPTE:")


def proportional_bytes(pid: int) -> int:
    """Return the memory of a process, with its share of what it has in common with others."""
    shares = sum_lines(f"/proc/{pid}/smaps_rollup", b"Pss:", b"SwapPss:")
    # A process can hide this from others of its user.
    return shares + sum_lines(f"/proc/{pid}/status", b"VmPTE:") if shares else memory_bytes(pid)


def sum_lines(path: str, *names: bytes) -> int:
    """Add up some sizes that the kernel tells about a process; 0: it tells nothing."""
    try:
        with open(path, "rb", buffering=0) as file:
            lines = file.read(16384).splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith(names)) * 1024


def look_at_disk(path: str) -> os.statvfs_result | None:
    try:
        return os.statvfs(path) if path else None
    except OSError:
        return None


def kill_descendants() -> None:
    """Kill all descendants and their process groups: some fork faster than they are listed."""
    killed = descendants()
    for group in {group for _, group in killed} - {0, 1, os.getpgrp()}:
        send_signal(-group, signal.SIGKILL)
    for pid, _ in killed:
        send_signal(pid, signal.SIGKILL)


def descendants() -> list[tuple[int, int]]:
    """List process ids and groups, the youngest first, because those are the ones that fork."""
    below: dict[int, list[tuple[int, int]]] = {}
    for pid, parent, group in processes():
        below.setdefault(parent, []).append((pid, group))
    listed = below.pop(os.getpid(), [])
    for pid, _ in listed:
        listed += below.pop(pid, ())
    return sorted(listed, reverse=True)


def processes() -> "Iterator[tuple[int, int, int]]":
    """Yield the id, the parent and the group of every process."""
    if sys.platform != "linux":
        for line in os.popen("/bin/ps -axo pid=,ppid=,pgid="):
            pid, parent, group = line.split()
            yield int(pid), int(parent), int(group)
        return
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat", "rb", buffering=0) as file:
                    line = file.read(4096)
            except OSError:
                continue
            # The name of the program comes first, in brackets, and may contain anything.
            fields = line[line.rindex(b")") + 2 :].split(None, 3)
            yield int(name), int(fields[1]), int(fields[2])


def send_signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        pass


def detach_streams() -> None:
    """Leave the streams to the command, so that each ends when the command closes it."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    os.close(nothing)


def exit_as(status: int) -> "NoReturn":
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        # The command has written the core file, if any.
        prctl(PR_SET_DUMPABLE, 0)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))


def prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        import _ctypes

        function = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]
        _ctypes.call_function(function, (option, value, 0, 0, 0))


if __name__ == "__main__":
    main(sys.argv[1:])
