"""Control groups: where the kernel holds the memory and the processes of a command itself.

Only where they are given: in version 1 below our own group, in version 2 beside it, if the folder
above is delegated, because a group with processes has no groups with limits in it. The reaper
imports this too, so it imports next to nothing.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

#: Of our groups, before the process id of their reaper.
PREFIX = "backburner-"
CONTROLLERS = ("memory", "pids")
#: By the reaper's name of each limit: where the kernel counts that it was reached.
COUNTERS = (
    ("memory", "memory.events", "oom"),
    ("memory", "memory.oom_control", "oom_kill"),
    ("processes", "pids.events", "max"),
)
#: Counters that also count what a group above refused: the limit, and what was used at most. Not
#: every kernel has a peak of processes.
USAGE = {
    "memory.oom_control": (
        "memory.limit_in_bytes",
        "memory.max_usage_in_bytes",
        "memory.memsw.max_usage_in_bytes",
    ),
    "pids.events": ("pids.max", "pids.peak", "pids.current"),
}
#: The part of a limit that is as good as reached.
NEAR_LIMIT = 0.9
#: By the number of hierarchies, which says the version.
UNLIMITED = {1: "max", 2: "-1"}
#: systemd marks groups that are delegated to a service.
DELEGATION_MARKS = ("user.delegate", "trusted.delegate")


def find_parents(
    process: str = "/proc/self", is_delegated: "Callable[[str], bool] | None" = None
) -> "tuple[str, ...]":
    """Return the folders in which groups can be made: one for each hierarchy, or none."""
    try:
        own = own_groups(process)
        if all(name in own for name in CONTROLLERS):
            parents = tuple(own[name] for name in CONTROLLERS)
        else:
            parents = delegated_parent(own[""], is_delegated or has_delegation_mark)
    except (OSError, KeyError, ValueError):
        return ()
    trial = make_groups(parents, max_memory=2**30, max_processes=100)
    remove_groups(trial)
    return parents if trial else ()


def own_groups(process: str) -> "dict[str, str]":
    """Return the folder of our group for each controller; "" is the hierarchy of version 2."""
    mounts = {}
    for line in read_lines(f"{process}/mountinfo"):
        before, _, after = line.partition(" - ")
        root, folder = before.split()[3:5]
        kind, _, options = after.split(None, 2)
        if kind in ("cgroup", "cgroup2"):
            for name in [""] if kind == "cgroup2" else options.split(","):
                mounts[name] = (root.rstrip("/"), folder)
    own = {}
    for line in read_lines(f"{process}/cgroup"):
        _, names, path = line.split(":", 2)
        for name in names.split(","):
            root, folder = mounts.get(name, ("", ""))
            # Of a container, only its own part may be mounted.
            if folder and f"{path}/".startswith(f"{root}/"):
                own[name] = folder + path[len(root) :].rstrip("/")
    return own


def delegated_parent(own: str, is_delegated: "Callable[[str], bool]") -> "tuple[str, ...]":
    if has_controllers(own):
        return (own,)
    parent = os.path.dirname(own)
    if not is_delegated(parent):
        return ()
    if not has_controllers(parent):
        write(f"{parent}/cgroup.subtree_control", "+memory +pids")
    return (parent,)


def has_controllers(folder: str) -> bool:
    enabled = " ".join(read_lines(f"{folder}/cgroup.subtree_control")).split()
    return all(name in enabled for name in CONTROLLERS)


def has_delegation_mark(folder: str) -> bool:
    for name in DELEGATION_MARKS:
        try:
            if os.getxattr(folder, name) == b"1":
                return True
        except (AttributeError, OSError):
            continue
    return False


def make_groups(parents: "Sequence[str]", *, max_memory: int, max_processes: int) -> "list[str]":
    """Make the groups of one command, with their limits; none if that fails."""
    if not parents:
        return []
    memory, processes = str(max_memory or UNLIMITED[len(parents)]), str(max_processes)
    limits = (
        [{"memory.max": memory, "pids.max": processes}]
        if len(parents) == 1
        else [{"memory.limit_in_bytes": memory}, {"pids.max": processes}]
    )
    # Where there are such: a command does not swap, and all its processes end together.
    more = {"memory.memsw.limit_in_bytes": memory, "memory.swap.max": "0", "memory.oom.group": "1"}
    made = []
    try:
        for parent, values in zip(parents, limits, strict=False):
            remove_leftovers(parent)
            folder = f"{parent}/{PREFIX}{os.getpid()}"
            os.mkdir(folder)
            made.append(folder)
            found = {name: more[name] for name in more if os.path.exists(f"{folder}/{name}")}
            for name, value in (values | found).items():
                write(f"{folder}/{name}", value)
    except OSError:
        remove_groups(made)
        return []
    return made


def join_groups(folders: "Iterable[str]") -> None:
    """Move this process into the groups. If it cannot, the reaper's own looks remain."""
    for folder in folders:
        try:
            write(f"{folder}/cgroup.procs", "0")
        except OSError:
            pass


def reached_limit(folders: "Iterable[str]") -> str:
    """Name the limit that the kernel had to hold, if there is one."""
    for folder in folders:
        for limit, file, counter in COUNTERS:
            try:
                counts = dict(line.split() for line in read_lines(f"{folder}/{file}"))
            except (OSError, ValueError):
                continue
            if int(counts.get(counter, 0)) and is_own_limit(folder, file):
                return limit
    return ""


def is_own_limit(folder: str, file: str) -> bool:
    """Say whether a counter can be about the limit of this group, and not of one above it."""
    if file not in USAGE:
        return True
    limit, *used = (read_number(f"{folder}/{name}") for name in USAGE[file])
    return max(used) >= limit * NEAR_LIMIT


def read_number(path: str) -> int:
    try:
        return int("".join(read_lines(path)))
    except (OSError, ValueError):
        return 0


def remove_groups(folders: "Iterable[str]") -> None:
    for folder in folders:
        try:
            os.rmdir(folder)
        except OSError:
            pass


def remove_leftovers(parent: str) -> None:
    """Remove the groups whose reapers were killed; the kernel keeps those with processes."""
    remove_groups(
        f"{parent}/{name}"
        for name in os.listdir(parent)
        if name.startswith(PREFIX) and not is_alive(name.removeprefix(PREFIX))
    )


def is_alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (OSError, ValueError):
        return True
    # A group with our own id was left by another process that had it.
    return int(pid) != os.getpid()


def read_lines(path: str) -> "Sequence[str]":
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read().splitlines()


def write(path: str, text: str) -> None:
    with open(path, "wb", buffering=0) as file:
        file.write(text.encode())
