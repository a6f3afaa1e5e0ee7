"""Programs that use their own sign-in: the subcommands offered, and what a lasting grant covers.

The table knows subcommands with their options exactly. A reading subcommand may vary in the options
of the table, apart from those that are part of the grant; of some others the exact arguments can be
granted. Everything else that is offered needs approval each time: an option that the table does not
know could name a server, a file, a template or a program.
"""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from backburner.core.signed_in.table import (
    AWS_OPTIONS,
    BY_PROGRAM,
    OFFERED,
    PROGRAMS,
    Subcommand,
    define_subcommand,
)

SIGNED_IN_TOOL = "run_signed_in"
MAX_ARGUMENTS = 200
#: Of aws, subcommands of each service that only read.
_AWS_READING = re.compile(r"(describe|list)-[a-z0-9-]+")
_WORD = re.compile(r"[a-z0-9][a-z0-9-]*")
#: Of aws, what signs in or shows the sign-in.
_AWS_REFUSED = re.compile(
    r"(configure|history|login|logout|sso|sso-oidc) .*|sts (?!get-caller-identity$).*"
    r"|\S+ get-.*(authorization|credentials|login|password|token).*"
)
#: Programs that replace these by a folder or a variable of theirs, where the sign-in is.
_EXPANDS = frozenset({"aws", "npm"})
_EXPANDED = re.compile(r"[~$]")
_BELOW = re.compile(r"(?!/)(?!.*(^|/)\.\.(/|$)).*", re.DOTALL)


def lasting_arguments(arguments: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return what a lasting grant for a call covers; None if there can be none.

    One word is the exact line, except for its folder. Others begin with the program.
    """
    found = _find(arguments)
    if found is None:
        return None
    entry, fixed = found
    place = (f"in {arguments['folder']}",) if arguments.get("folder") else ()
    if entry.reads:
        return (entry.program, *entry.words, *fixed, *place)
    return (show_line(arguments), *place)


def only_reads(arguments: Mapping[str, Any]) -> bool:
    """Return whether a call is one of a reading subcommand, exactly as the table knows it."""
    found = _find(arguments)
    return found is not None and found[0].reads


def granted_programs(grants: Iterable[Sequence[str]]) -> frozenset[str]:
    """Return the programs that lasting grants with these words are for."""
    firsts = (words[0].split(" ")[0] for words in grants if words)
    return frozenset(firsts) & frozenset(PROGRAMS)


def show_line(arguments: Mapping[str, Any]) -> str:
    return shlex.join((str(arguments.get("program")), *map(str, arguments.get("arguments") or ())))


def refuse(arguments: Mapping[str, Any]) -> str | None:
    """Return why a call is not offered at all; None if it is."""
    program, words = arguments.get("program"), arguments.get("arguments")
    if program not in PROGRAMS:
        return f"run_signed_in was not called. The program has to be one of: {', '.join(PROGRAMS)}."
    if not _are_texts(words) or not words or len(words) > MAX_ARGUMENTS:
        return (
            "run_signed_in was not called. The arguments have to be a list of texts, at most"
            f" {MAX_ARGUMENTS}, that begins with a subcommand."
        )
    folder = arguments.get("folder")
    if folder is not None and not (isinstance(folder, str) and _BELOW.fullmatch(folder)):
        return "run_signed_in was not called. The folder has to be a path below the workspace."
    if not _is_offered(program, words):
        return (
            f"{shlex.join((program, *words[:2]))} is not offered with a sign-in. Begin with the"
            " subcommand, without options before it; some subcommands are never offered, because"
            " they show the sign-in or run other programs. Use run_command for work without it."
        )
    if program in _EXPANDS and any(map(_EXPANDED.search, words)):
        return f"{program} is not run with ~ or $ in its arguments: it would expand them."
    if program == "git" and (option := _unknown_option(words)) is not None:
        known = ", ".join(sorted(_entries(program, words)[0].options))
        return f"git {words[0]} has no option {option} with a sign-in. It has: {known}."
    return None


def _is_offered(program: str, words: Sequence[str]) -> bool:
    first, second = (*words[:2], "")[:2]
    if program == "aws":
        both = (first, second)
        is_named = all(map(_WORD.fullmatch, both))
        return is_named and not _AWS_REFUSED.fullmatch(" ".join(both))
    seconds = OFFERED[program].get(first)
    return seconds is not None and (not seconds or second in seconds)


def _unknown_option(words: Sequence[str]) -> str | None:
    options = _entries("git", words)[0].options
    named = (word.partition("=")[0] for word in words[1:] if word.startswith("-"))
    return next((name for name in named if name not in options), None)


def _find(arguments: Mapping[str, Any]) -> tuple[Subcommand, tuple[str, ...]] | None:
    if refuse(arguments) is not None:
        return None
    words = arguments["arguments"]
    for entry in _entries(arguments["program"], words):
        fixed = entry.parse(words[len(entry.words) :])
        if fixed is not None:
            return entry, fixed
    return None


def _entries(program: str, words: Sequence[str]) -> Sequence[Subcommand]:
    if program == "aws" and _AWS_READING.fullmatch(words[1]):
        return [define_subcommand(f"aws {words[0]} {words[1]}", AWS_OPTIONS)]
    entries = BY_PROGRAM[program]
    return [entry for entry in entries if tuple(words[: len(entry.words)]) == entry.words]


def _are_texts(words: object) -> bool:
    if not isinstance(words, list | tuple):
        return False
    return all(isinstance(word, str) and "\0" not in word for word in words)
