"""The confinement of a command: the files it may use, and its resource limits."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from backburner.process import control_group, landlock, reaper, seccomp
from backburner.process.trial import SystemTrial

#: Programs and their libraries.
SYSTEM_FOLDERS = tuple(
    map(Path, "/usr /bin /sbin /lib /lib32 /lib64 /libx32 /opt /nix/store".split())
)
#: What the kernel tells about processes, and the machine.
PROCESSES = Path("/proc")
#: Of that, what it tells about the machine only.
MACHINE_FILES = tuple(
    PROCESSES / name
    for name in """
    cgroups cpuinfo devices diskstats filesystems loadavg meminfo stat swaps uptime version vmstat
    sys/fs sys/kernel sys/vm
    """.split()
)
ETC = Path("/etc")
#: Only these files of /etc: others may contain passwords.
SYSTEM_SETTINGS = tuple(
    ETC / name
    for name in """
    alternatives ca-certificates ca-certificates.conf crypto-policies debian_version fonts gai.conf
    gitconfig group host.conf hostname hosts inputrc java ld.so.cache ld.so.conf ld.so.conf.d
    locale.alias locale.conf localtime lsb-release magic manpath.config mime.types nsswitch.conf
    os-release passwd perl pki/ca-trust pki/java pki/tls/cert.pem pki/tls/certs pki/tls/openssl.cnf
    protocols resolv.conf services ssl/cert.pem ssl/certs ssl/openssl.cnf terminfo timezone
    """.split()
)
#: /dev/fd and the like are links to descriptors that a program has already.
DEVICES = tuple(Path("/dev") / name for name in "null zero full random urandom tty".split())


RUNS_AS_ROOT = (
    "The server runs as root: commands of agents then have only their confinement around them, and"
    " a limit on processes may come late. Run the server as a user of its own."
)
REAPER_COMMAND = (sys.executable, "-I", "-S", str(Path(reaper.__file__).absolute()))
#: The number of the capability to drop others.
CAP_SETPCAP = 8
TRIAL_SECONDS = 20
MAX_MEMORY_BYTES = 4 * 2**30
#: The exit code of a trial that ran and failed; others are those of the reaper and of signals.
NO = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """The files that a program and its descendants may use; paths that do not exist are skipped.

    They cannot signal or inspect processes outside, nor gain privileges, nor open Unix sockets.
    """

    #: Folders and files to read and execute.
    readable: tuple[Path, ...]
    #: Folders and files to read, execute, change and delete.
    writable: tuple[Path, ...]
    #: Of these folders, those whose path has no link when the program starts; else it does not.
    #: If it starts in one of them, or below, the path to there has none either.
    direct: tuple[Path, ...] = ()
    #: Without it they can neither connect nor listen, not even on this machine.
    network: bool = True
    #: With any, they start programs from these files alone.
    executable: tuple[Path, ...] = ()
    #: Whether the program can start others; threads it can always start.
    starts_programs: bool = True
    #: Where the kernel gives one, they also read what it tells about them in /proc.
    process_namespace: bool = False

    def can_read(self, path: Path) -> bool:
        real = path.resolve()
        allowed = self.readable + self.writable
        return any(real.is_relative_to(folder.resolve()) for folder in allowed)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLimits:
    """Resource limits of a program and its descendants. Core files are always off."""

    #: Of each file.
    max_file_bytes: int = 2**30
    #: Processes and threads, on top of those of the user when the program starts.
    max_new_processes: int = 512
    #: Of all of them together, and without threads: the limit above is none for root.
    max_processes: int = 512
    #: Of all of them together, without what they share. 0: any amount.
    max_memory_bytes: int = 0
    #: Where there has to be space left for others.
    disk: Path | None = None
    min_free_bytes: int = 2**30
    #: On file systems that hold a fixed number of files; of a small one, a part is enough.
    min_free_files: int = 50_000
    #: On the disk of temporary files the same, but of a small one, a part is enough.
    temporary: Path | None = None
    #: Folders for a control group that holds memory, and processes with their threads.
    groups: tuple[str, ...] = ()
    #: The interval of looks at what they use.
    poll: timedelta = timedelta(seconds=0.25)


def confine_to(
    *writable: Path,
    readable: Iterable[Path] = (),
    direct: Iterable[Path] = (),
    network: bool = True,
    sees_processes: bool = True,
) -> Confinement:
    """Confine a program to some folders, the system's programs, and further readable folders.

    Without `sees_processes` it sees only its own; where there is no namespace for it, it reads
    nothing about any. The first such call finds out: not for event loops.
    """
    processes = (PROCESSES,) if sees_processes else MACHINE_FILES
    return Confinement(
        readable=(
            *SYSTEM_FOLDERS,
            *SYSTEM_SETTINGS,
            *java_settings(ETC),
            *processes,
            *readable,
        ),
        writable=(*DEVICES, *writable),
        direct=tuple(direct),
        network=network,
        process_namespace=not sees_processes and gives_process_namespace(),
    )


def java_settings(etc: Path) -> Iterator[Path]:
    """Find the settings of Java on Debian, except those of remote management: it has passwords.

    Not a constant, because Java may be installed while the server runs.
    """
    return (path for path in etc.glob("java-*-openjdk/*") if path.name != "management")


def gives_process_namespace() -> bool:
    """Find out whether a confined command can have a PID namespace; the first call blocks."""
    return _process_namespace.result()


def memory_limit() -> int:
    """Return the most memory for a command: half of what the machine has."""
    return min(MAX_MEMORY_BYTES, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE") // 2)


def control_groups() -> tuple[str, ...]:
    """Find out where groups for commands can be made, if at all; the first call blocks."""
    return _control_groups.result()


def _try_process_namespace() -> bool | None:
    readable = (f"read={path}" for path in SYSTEM_FOLDERS)
    # With a folder to write, because other mounts become read-only.
    writable = f"write={tempfile.gettempdir()}"
    return run_trial("read -r line </proc/self/stat", "namespace=1", writable, *readable)


def _try_control_groups() -> tuple[str, ...] | None:
    if sys.platform != "linux" or not (parents := control_group.find_parents()):
        return ()
    groups = (f"group{number}={path}" for number, path in enumerate(parents, 1))
    joined = f"test $(grep -c /{control_group.PREFIX} /proc/self/cgroup) = {len(parents)}"
    joins = run_trial(joined, "max_processes=100", *groups)
    return None if joins is None else parents if joins else ()


_process_namespace = SystemTrial("process_namespace.tried", _try_process_namespace, otherwise=False)
_control_groups = SystemTrial[tuple[str, ...]](
    "control_groups.tried", _try_control_groups, otherwise=()
)


def run_trial(line: str, *options: str, within: float = TRIAL_SECONDS) -> bool | None:
    """Say whether a line succeeds with these options of the reaper; None if it did not run."""
    try:
        trial = subprocess.run(  # noqa: S603 (our own program)
            [*REAPER_COMMAND, "env=PATH", *options, "--", "/bin/sh", "-c", f"{line} || exit {NO}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=within,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return {0: True, NO: False, reaper.NO_NAMESPACE: False}.get(trial.returncode)


def confinement_missing() -> str | None:
    """Return why programs cannot be confined on this system, or None."""
    if sys.platform != "linux":
        return "Programs can be confined on Linux only, by Landlock."
    if landlock.version() < 1:
        return (
            "Landlock is missing or disabled in this kernel: it needs Linux 5.13 or newer, and"
            " `landlock` listed in /sys/kernel/security/lsm."
        )
    if os.geteuid() == 0 and keeps_capabilities(Path("/proc/self/status").read_text()):
        return (
            "The server runs as root without CAP_SETPCAP, so commands would keep its capabilities."
            " Run it as a user of its own, or with that capability."
        )
    return None


def keeps_capabilities(status: str) -> bool:
    """Say whether commands of a root with this status would keep capabilities."""
    values = dict(line.split(":", 1) for line in status.splitlines())
    can_drop = int(values["CapEff"], 16) >> CAP_SETPCAP & 1
    return bool(int(values["CapBnd"], 16)) and not can_drop


def cage_missing() -> str | None:
    """Return why commands cannot be kept from the network on this system, or None."""
    if (missing := confinement_missing()) is not None:
        return missing
    if not seccomp.is_supported(landlock.call):
        return (
            "This kernel or CPU architecture has no seccomp filters that keep them off the network."
        )
    return None


def confinement_gaps() -> Sequence[str]:
    """Describe what this kernel does not enforce, a sentence each."""
    seccomp_works = seccomp.is_supported(landlock.call)
    return tuple(_gaps(landlock.version(), seccomp_works=seccomp_works, is_root=os.geteuid() == 0))


def _gaps(version: int, *, seccomp_works: bool, is_root: bool) -> Iterator[str]:
    if is_root:
        yield RUNS_AS_ROOT
    if version < 3:
        yield "Commands can truncate files outside their folders. Linux 6.2 or newer prevents this."
    if version < 6:
        yield "Commands can send signals to the server. Linux 6.12 or newer prevents this."
    if not seccomp_works:
        yield (
            "Commands can connect to Unix sockets and use the network on this system, so each needs"
            " approval."
        )
