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
#: Programs that run no file of the folder they work in, with those subcommands that read none.
_STABLE_PROGRAMS = {
    "dig": r".*",
    "gh": (
        r"(api|search|status)( .*)?|(auth|cache|gist|issue|label|pr|release|repo|run|workflow)"
        r" (cancel|checks|close|diff|list|merge|ready|reopen|rerun|run|status|view|watch)( .*)?"
    ),
    "host": r".*",
    "kubectl": (
        r"(api-resources|api-versions|cluster-info|delete|describe|events|exec|explain|get|logs"
        r"|rollout|scale|top|version|wait)( .*)?"
    ),
    "nslookup": r".*",
    "ping": r".*",
    "whois": r".*",
}
#: Arguments of such programs that name a file.
_NAMES_FILE = re.compile(
    r"-[A-Za-z0-9]*[FTfk].*|--(input|kustom|client-|cert|cache).*|.*(file|kubeconfig|=@).*"
)
#: Of git, which runs only what its settings and hooks say; those are watched.
_GIT_SUBCOMMANDS = frozenset({"clone", "fetch", "ls-remote", "pull", "push"})
_GIT_OPTIONS = frozenset(
    "--all --dry-run --ff-only --prune --quiet --rebase --tags --verbose".split()
)
#: A remote that the settings name, or one elsewhere; others may be folders.
_GIT_REMOTE = re.compile(r"[A-Za-z0-9_-]+")
_GIT_ADDRESS = re.compile(r"(https?|ssh|git)://.*|[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:.*")
#: Of curl, with options that read no file. One that begins with @ would be read from a file.
_CURL_ARGUMENT = re.compile(
    r"-[46GILOSfgikqsv]*([AHXdemoru]([^@].*)?)?|--(compressed|connect-timeout|data|data-raw|fail"
    r"|fail-with-body|get|head|header|include|insecure|ipv4|ipv6|location|max-time"
    r"|no-progress-meter|output|progress-bar|remote-name|request|retry|retry-delay|show-error"
    r"|silent|user|user-agent|verbose)|[^-@].*"
)
#: Of a line. Words are split letter by letter, and long ones ever more slowly.
_MAX_LINE_CHARS = 4096
_SHELL_SIGNS = frozenset(";&|<>$`(){}*?[]~#\\\n\r")


def lasting_words(command: object) -> tuple[str, ...] | None:
    """Return what a lasting grant for a command covers; None if there can be none.

    One word is the exact line. More are a subcommand whose arguments may vary. A line that runs
    or reads files of its folder could be granted today and do something else tomorrow.
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
    if not isinstance(command, str) or len(command) > _MAX_LINE_CHARS:
        return None
    if _SHELL_SIGNS & set(command):
        return None
    try:
        return tuple(shlex.split(command)) or None
    except ValueError:
        return None


def _always_does_the_same(program: str, *arguments: str) -> bool:
    match program:
        case "curl":
            return all(map(_CURL_ARGUMENT.fullmatch, arguments))
        case "git":
            return _asks_a_remote(*arguments)
        case _:
            known = re.fullmatch(_STABLE_PROGRAMS.get(program, r"(?!)"), " ".join(arguments))
            return known is not None and not any(map(_NAMES_FILE.fullmatch, arguments))


def _asks_a_remote(subcommand: str = "", *arguments: str) -> bool:
    options = {word for word in arguments if word.startswith("-")}
    if subcommand not in _GIT_SUBCOMMANDS or not options <= _GIT_OPTIONS:
        return False
    remote = next((word for word in arguments if word not in options), None)
    if subcommand != "clone" and (remote is None or _GIT_REMOTE.fullmatch(remote)):
        return True
    return remote is not None and _GIT_ADDRESS.fullmatch(remote) is not None
