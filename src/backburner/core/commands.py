"""Commands that an agent runs: the cage of each, and what a lasting grant for one may cover.

The kernel holds the cage. So a command that reaches nothing outside needs no approval, whatever its
line says; with the network it needs one for its exact line.
"""

import re
import shlex
from enum import StrEnum

#: The argument with which an agent asks for the network.
NETWORK_ARGUMENT = "network"


class Cage(StrEnum):
    """The use a command has of its folder. Without the network, it can use nothing else of ours."""

    LOOK = "look"  #: Its folder, to read.
    WORK = "work"  #: Its folder, to read and write.


#: Subcommands that only read from where the program gets its packages: their arguments may vary.
READING_SUBCOMMANDS = frozenset(
    {
        ("cargo", "info"),
        ("cargo", "search"),
        ("gem", "search"),
        ("npm", "search"),
        ("npm", "view"),
        ("pip", "index", "versions"),
    }
)
#: The name of a package, perhaps with a version. An option could name a file or another server.
_PACKAGE = re.compile(r"@?[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9._-]+)?(@[A-Za-z0-9._^-]+)?")
#: Programs that run no file of the folder they work in.
_STABLE_PROGRAMS = frozenset({"dig", "gh", "host", "kubectl", "nslookup", "ping", "whois"})
#: Options of such programs that name a file with programs in it.
_SETTINGS_OPTION = "kubeconfig"
#: Of git, which runs only what its settings and hooks say; those are watched.
_GIT_SUBCOMMANDS = frozenset({"clone", "fetch", "ls-remote", "pull", "push"})
_GIT_OPTIONS = frozenset(
    "--all --dry-run --ff-only --prune --quiet --rebase --tags --verbose".split()
)
#: Reads more options from a file.
_CURL_CONFIG = re.compile(r"--conf.*|-[A-Za-z#]*K.*")
_SHELL_SIGNS = frozenset(";&|<>$`(){}*?[]~#\\\n\r")


def lasting_words(command: object) -> tuple[str, ...] | None:
    """Return what a lasting grant for a command covers; None if there can be none.

    One word is the exact line. More are a subcommand whose arguments may vary. A line that runs
    files of its folder could be granted today and do something else tomorrow.
    """
    words = _plain_words(command)
    if words is None:
        return None
    for subcommand in READING_SUBCOMMANDS:
        names = words[len(subcommand) :]
        if words[: len(subcommand)] == subcommand and names and all(map(_PACKAGE.fullmatch, names)):
            return subcommand
    return (str(command),) if _always_does_the_same(*words) else None


def _plain_words(command: object) -> tuple[str, ...] | None:
    """Split a line into words; None if it is more than one program and its arguments."""
    if not isinstance(command, str) or _SHELL_SIGNS & set(command):
        return None
    try:
        return tuple(shlex.split(command)) or None
    except ValueError:
        return None


def _always_does_the_same(program: str, *arguments: str) -> bool:
    match program:
        case "curl":
            return not any(map(_CURL_CONFIG.fullmatch, arguments))
        case "git":
            options = {word for word in arguments if word.startswith("-")}
            return bool(_GIT_SUBCOMMANDS & set(arguments[:1])) and options <= _GIT_OPTIONS
        case _:
            return program in _STABLE_PROGRAMS and _SETTINGS_OPTION not in "".join(arguments)
