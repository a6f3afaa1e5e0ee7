"""Commands that an agent runs: the cage of each, and what a lasting grant for one may cover.

The kernel holds the cage. So a command that reaches nothing outside needs no approval, whatever its
line says; with the network it needs one for its exact line.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from backburner.core.validation import hidden_characters

#: The argument with which an agent asks for the network.
NETWORK_ARGUMENT = "network"


class Cage(StrEnum):
    """The use a command has of its folder. Without the network, it can use nothing else of ours."""

    LOOK = "look"  #: Its folder, to read.
    WORK = "work"  #: Its folder, to read and write.


class Join(StrEnum):
    """How a step of a line follows the one before, by the operator between them."""

    START = ""
    THEN = ";"  #: Or a new line.
    IF_SUCCEEDED = "&&"
    IF_FAILED = "||"
    PIPE = "|"
    PIPE_WITH_ERRORS = "|&"


@dataclass(frozen=True, slots=True)
class Redirection:
    #: Its digit, or empty: the one that the operator means.
    descriptor: str
    operator: str
    #: A file, or the digit of another descriptor.
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LineStep:
    """One program of a command line. All text is that of the line, with its quotes."""

    join: Join = Join.START
    assignments: tuple[str, ...] = ()
    #: The program and its arguments; none: only variables are set.
    words: tuple[str, ...] = ()
    redirections: tuple[Redirection, ...] = ()


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
#: Programs that only pass on some of their input, with arguments that name no file.
_FILTERS = {
    "cat": r"",
    "grep": r"(-[EFcinovwx]+ )*[^ -][^ ]*",
    "head": r"(-[0-9]+|-[cn] ?[0-9]+)?",
    "jq": r"(-[CMSacejrs]+ )*\.[A-Za-z0-9_.]*",
    "sort": r"(-[bdfghinruV]+)?",
    "tail": r"(-[0-9]+|-[cn] ?\+?[0-9]+)?",
    "uniq": r"(-[cdiu]+)?",
    "wc": r"(-[clmw]+)?",
}
#: Arguments with which a step writes files that a later step of the same line could obey, such as
#: hooks or settings of git and npm: they are put back when the line ends, and not before.
_WRITES_FILE = {
    "curl": re.compile(r"-[A-Za-z0-9]*[Oo].*|--(output|remote).*"),
    "gh": re.compile(r"merge"),
    "git": re.compile(r"clone|pull"),
    "kubectl": re.compile(r"--output-d.*"),
}
#: Of a line. Words are split letter by letter, and long ones ever more slowly.
MAX_LINE_CHARS = 4096
_SHELL_SIGNS = frozenset(";&|<>$`(){}*?[]~#\\\n\r")


def lasting_words(
    command: object, steps: Sequence[LineStep] | None = None
) -> tuple[str, ...] | None:
    """Return what a lasting grant for a command covers; None if there can be none.

    One word is the exact line. More are a subcommand whose arguments may vary. A line that runs
    or reads files of its folder could be granted today and do something else tomorrow. A line of
    several steps is covered if each of them would be, and none changes what another does.
    """
    words = _plain_words(command)
    if words is None:
        does_the_same = steps and all(map(_is_lasting_step, steps))
        return (str(command),) if does_the_same else None
    return _find_reading_subcommand(words) or (
        (str(command),) if _always_does_the_same(*words) else None
    )


def is_plain(command: object) -> bool:
    """Return whether a line is one program and its arguments, so that it needs no reading."""
    return _plain_words(command) is not None and not hidden_characters(str(command))


def _is_lasting_step(step: LineStep) -> bool:
    words = _plain_words(" ".join(step.words))
    if words is None or step.assignments or step.redirections:
        return False
    program, *arguments = words
    if step.join in (Join.PIPE, Join.PIPE_WITH_ERRORS):
        # A program that stands alone has no input that could tell it what to do.
        filtering = _FILTERS.get(program, r"(?!)")
        return re.fullmatch(filtering, " ".join(arguments)) is not None
    writing = _WRITES_FILE.get(program)
    if writing is not None and any(map(writing.fullmatch, arguments)):
        return False
    return _find_reading_subcommand(words) is not None or _always_does_the_same(*words)


def _find_reading_subcommand(words: tuple[str, ...]) -> tuple[str, ...] | None:
    for subcommand in READING_SUBCOMMANDS:
        names = words[len(subcommand) :]
        if words[: len(subcommand)] == subcommand and names and all(map(_PACKAGE.fullmatch, names)):
            return subcommand
    return None


def _plain_words(command: object) -> tuple[str, ...] | None:
    """Split a line into words; None if it is more than one program and its arguments."""
    if not isinstance(command, str) or len(command) > MAX_LINE_CHARS:
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
