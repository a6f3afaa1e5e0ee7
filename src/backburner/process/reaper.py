"""Runs a command and ends whatever it started. A program of its own, run by the path of this file:

    python -I -S reaper.py env=PATH,HOME [grace=5] [caller=PID] [control=FD] [rinse=1]
        [read=PATH ...] [write=PATH ...] [sockets=1] [largest=BYTES processes=N] -- COMMAND

It is two processes. Both adopt what is orphaned below them, so nothing can leave the tree; the
inner one starts the command, the outer one is what the caller sees, and if one of them is killed,
the other ends the tree. They end it when the command ends, when the caller closes the control
socket or is gone, and on SIGTERM. Then they exit as the command did.

Every command pays for the start of this, so it imports next to nothing: `signal`, `ctypes`,
`typing`, `contextlib` or `pathlib` would each take longer than all the rest. What the second
line of options is for is in `child`, imported for commands that have any.
"""

import os
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Iterator
    from typing import NoReturn

    #: A command, its environment, and the options for `launch`.
    What = tuple[list[str], dict[str, str], list[str]]
else:
    import _signal as signal

#: Seconds between SIGTERM and SIGKILL.
GRACE = 5.0
#: How many seconds later the outer process takes over what the inner one has not done.
HANDOVER = 1.0
#: How often to look whether the parent is alive, in seconds, where the system does not tell.
GLANCE = 0.5
NEVER = float("inf")

#: How the options that are for `launch` begin.
OF_LAUNCH = ("read=", "write=", "sockets=", "largest=", "processes=")

REQUESTS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36


def main(arguments: list[str]) -> None:
    mark = arguments.index("--")
    launching = [option for option in arguments[:mark] if option.startswith(OF_LAUNCH)]
    own = (option for option in arguments[:mark] if not option.startswith(OF_LAUNCH))
    options = dict(option.split("=", 1) for option in own)
    command = arguments[mark + 1 :]
    # By name, because Python adds to its own environment where there is no locale.
    names = options["env"].split(",")
    environment = {name: os.environ[name] for name in names if name in os.environ}
    if options.pop("rinse", None):
        # Whatever else the caller has in its environment, /proc would show to the command.
        rest = [f"{name}={value}" for name, value in options.items()]
        again = [sys.executable, "-I", "-S", __file__, *rest, *launching, "--", *command]
        os.execve(sys.executable, again, environment)
    split(
        (command, environment, launching),
        grace=float(options.get("grace", GRACE)),
        caller=int(options.get("caller", os.getppid())),
        control=int(options.get("control", -1)),
    )


def split(what: "What", *, grace: float, caller: int, control: int) -> None:
    """Become the outer and the inner process."""
    if control >= 0:
        os.set_inheritable(control, False)
    # With a session for each, no signal to a group gets both, or one of them with the command.
    if os.getpgrp() != os.getpid():
        os.setsid()
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    outer = os.getpid()
    inner = os.fork()
    if inner == 0:
        os.setsid()
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        be_inner(what, grace=grace, outer=outer, control=control)
    else:
        be_outer(inner, grace=grace, caller=caller, control=control)


def be_outer(inner: int, *, grace: float, caller: int, control: int) -> "NoReturn":
    let_go_of_streams()

    def ask(*, alive: bool) -> float:
        if not alive:
            return 0
        send(inner, signal.SIGTERM)
        return grace + HANDOVER

    leave_as(look_after(inner, Watch(caller, control), ask))


def be_inner(what: "What", *, grace: float, outer: int, control: int) -> "NoReturn":
    # Before there is a command, so that no request is missed.
    watch = Watch(outer)
    try:
        child = start(*what)
    except OSError as error:
        refuse(what[0][0], error.errno or 5, control)
    report(child, control)
    let_go_of_streams()

    asked: set[int] = set()

    def ask(*, alive: bool) -> float:  # noqa: ARG001 (there are others to ask)
        for pid, _ in descendants():
            # Many take a second SIGTERM for impatience.
            if pid not in asked:
                asked.add(pid)
                send(pid, signal.SIGTERM)
                # What is stopped would not hear it.
                send(pid, signal.SIGCONT)
        return grace

    status = look_after(child, watch, ask)
    if sys.platform != "linux":
        # Nobody adopts orphans there, but most keep the group of the command.
        send(-child, signal.SIGKILL)
    leave_as(status)


def start(command: list[str], environment: dict[str, str], launching: list[str]) -> int:
    if launching:
        return import_launch()(command, environment, launching)
    # Python ignores some signals, and our caller may; the command has them as they are meant.
    defaults = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
    return os.posix_spawnp(
        command[0], command, environment, setsid=True, setsigmask=(), setsigdef=defaults
    )


def import_launch() -> "Callable[[list[str], dict[str, str], list[str]], int]":
    if TYPE_CHECKING:
        from backburner.process.child import launch
    else:
        # There is no package here, and nothing else to be found by its name.
        sys.path.append(os.path.dirname(__file__))
        from child import launch

    return launch


def refuse(program: str, errno: int, control: int) -> "NoReturn":
    if control >= 0:
        report(-errno, control)
    else:
        why = os.strerror(errno) if errno < 1000 else "It cannot be confined here."
        os.write(2, f"{program}: {why}\n".encode(errors="replace"))
    # As a shell would: what is not there, and what cannot be run.
    os._exit(127 if errno in (2, 20) else 126)


def report(number: int, control: int) -> None:
    """Tell the caller the id of the command, or below zero why there is none."""
    if control >= 0:
        try:
            os.write(control, b"%d" % number)
        except OSError:
            pass
        os.close(control)


def look_after(child: int, watch: "Watch", ask: "Callable[..., float]") -> int:
    """Wait for the child or a request, then until nobody is left. Give the status of the child.

    `ask` asks everybody to end, and says how many seconds they have for it. It does so again when
    the child has ended: who was forked just when the others were asked has not heard it.
    """
    status: int | None = None
    deadline = NEVER
    wanted = False
    pause = 0.005
    while True:
        before = status
        status, anybody = reap(child, status)
        if not anybody:
            return status or 0
        # Another request shortens nothing: at a shutdown, everybody is asked from several sides.
        if status != before or (wanted and deadline == NEVER):
            deadline = min(deadline, time.monotonic() + ask(alive=status is None))
        seconds = deadline - time.monotonic()
        if seconds <= 0:
            kill_descendants()
            # What cannot be killed is tried as long as it lives, but less and less often.
            seconds = pause = min(pause * 1.2, 1)
        wanted = watch.wait(seconds)


def reap(child: int, status: int | None) -> tuple[int | None, bool]:
    """Give the status of the child once it has ended, and whether there is anybody left.

    Who has no children has no descendants: orphans become children.
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


class Watch:
    """Waits for signals, for the caller to close its socket, and for the parent to go away."""

    def __init__(self, parent: int, control: int = -1) -> None:
        self.parent = parent
        self.control = control
        self.orphaned = False
        self.signals, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for number in (*REQUESTS, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        self.poll = select.poll()
        self.poll.register(self.signals, select.POLLIN)
        if control >= 0:
            self.poll.register(control, select.POLLIN)
        self.sees_parent = self.look_at_parent()

    def look_at_parent(self) -> bool:
        try:
            self.poll.register(os.pidfd_open(self.parent), select.POLLIN)
        except (AttributeError, OSError):
            return False
        return True

    def wait(self, seconds: float) -> bool:
        """Wait until something happens; say whether it was a request to end."""
        if self.loses_parent():
            return True
        if not self.sees_parent:
            seconds = min(seconds, GLANCE)
        requested = False
        for fd, _ in self.poll.poll(None if seconds == NEVER else seconds * 1000):
            if fd == self.signals:
                requested |= any(number in REQUESTS for number in os.read(fd, 4096))
            else:
                # It stays readable and says nothing more.
                self.poll.unregister(fd)
                requested |= fd == self.control
        return self.loses_parent() or requested

    def loses_parent(self) -> bool:
        if self.orphaned or os.getppid() == self.parent:
            return False
        self.orphaned = True
        return True


def kill_descendants() -> None:
    """Kill everybody, and all in their groups: there are those that fork faster than we look."""
    found = descendants()
    for group in {group for _, group in found} - {0, 1, os.getpgrp()}:
        send(-group, signal.SIGKILL)
    for pid, _ in found:
        send(pid, signal.SIGKILL)


def descendants() -> list[tuple[int, int]]:
    """Give the id and the group of each, the youngest first: they are the ones that multiply."""
    below: dict[int, list[tuple[int, int]]] = {}
    for pid, parent, group in processes():
        below.setdefault(parent, []).append((pid, group))
    found = below.pop(os.getpid(), [])
    for pid, _ in found:
        found += below.pop(pid, ())
    return sorted(found, reverse=True)


def processes() -> "Iterator[tuple[int, int, int]]":
    """Give the id, the parent and the group of every process there is."""
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
            # Before this comes the name of the program, in brackets; it may hold anything.
            fields = line[line.rindex(b")") + 2 :].split(None, 3)
            yield int(name), int(fields[1]), int(fields[2])


def send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        pass


def let_go_of_streams() -> None:
    """Leave the streams to the command, so that each ends when the command closes it."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    os.close(nothing)


def leave_as(status: int) -> "NoReturn":
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        # The command has left a core file if there is to be one.
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
