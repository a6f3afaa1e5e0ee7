"""What a command is held to: the folders it may see, and how much it may take."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from backburner.process import landlock, seccomp

#: Programs and what they need.
SYSTEM = tuple(
    map(Path, "/usr /bin /sbin /lib /lib32 /lib64 /libx32 /opt /nix/store /proc".split())
)
#: Of the settings of the system only these: others may hold passwords.
SETTINGS = tuple(
    Path("/etc") / name
    for name in """
    alternatives ca-certificates ca-certificates.conf crypto-policies fonts gai.conf gitconfig group
    host.conf hostname hosts inputrc java ld.so.cache ld.so.conf ld.so.conf.d locale.alias
    locale.conf localtime mime.types nsswitch.conf os-release passwd perl pki/ca-trust pki/java
    pki/tls/cert.pem pki/tls/certs pki/tls/openssl.cnf protocols resolv.conf services
    ssl/cert.pem ssl/certs ssl/openssl.cnf terminfo timezone
    """.split()
)
#: /dev/fd and its like lead to what a program holds already.
DEVICES = tuple(Path("/dev") / name for name in "null zero full random urandom tty".split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """All that a program, and what it starts, may see of files. What is missing is left out.

    It cannot send signals to others, nor look into them, nor gain privileges.
    """

    #: Folders and files that it may read and execute.
    readable: tuple[Path, ...]
    #: Folders and files that it may do anything with.
    writable: tuple[Path, ...]
    #: It may connect to sockets that are files, and so to whoever listens there.
    unix_sockets: bool = False

    def shows(self, path: Path) -> bool:
        """See whether this path can be read by a program that is held to it."""
        real = path.resolve()
        return any(real.is_relative_to(seen.resolve()) for seen in self.readable + self.writable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much a program, or each that it starts, may take. None leaves a core file."""

    largest_file: int = 2**30
    #: How many processes or threads there may be on top of all there are when it starts.
    processes: int = 512


def confine_to(*writable: Path, readable: Iterable[Path] = ()) -> Confinement:
    """Hold a program to some folders, what programs need of the system, and what else is named."""
    return Confinement(readable=(*SYSTEM, *SETTINGS, *readable), writable=(*DEVICES, *writable))


def confinement_missing() -> str | None:
    """Say why no program can be confined here; None: it can be."""
    if sys.platform != "linux":
        return "Programs can be confined on Linux only, by Landlock."
    if landlock.version() < 1:
        return (
            "This kernel has no Landlock, or was started without it: it is part of Linux from 5.13"
            " on, and has to be among the names in /sys/kernel/security/lsm."
        )
    return None


def confinement_gaps() -> Sequence[str]:
    """Say what an older kernel leaves open, each in a sentence."""
    return tuple(_gaps(landlock.version(), filters=seccomp.fits()))


def _gaps(version: int, *, filters: bool) -> Iterator[str]:
    if version < 3:
        yield "A command can empty files outside of its folders; Linux 6.2 would prevent it."
    if version < 6:
        yield "A command can send signals to our processes; Linux 6.12 would prevent it."
    if not filters:
        yield "A command can connect to sockets that are files, on this kind of machine."
