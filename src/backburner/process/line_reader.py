"""Reads a command line with the grammar of bash, so that a question can say what it does.

Only lists of programs are understood: arguments, variables, redirections, pipes, `&&`, `||`, `;`
and new lines. The grammar finds the parts. That they are no more than they seem is checked here
part by part, and how they belong together follows from their order: the tree of the grammar gives
the redirection of a last program to the whole list, and takes a continued line for two words.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from backburner.core.commands import MAX_LINE_CHARS, Join, LineStep, Redirection
from backburner.core.validation import hidden_characters

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_STEPS = 40

#: Kinds of nodes whose parts count, and those that are parts. There are no others.
_WHOLES = frozenset(
    {
        "program",
        "list",
        "pipeline",
        "redirected_statement",
        "command",
        "variable_assignments",
        "declaration_command",
    }
)
_WORDS = frozenset(
    {
        "command_name",
        "concatenation",
        "expansion",
        "export",
        "number",
        "raw_string",
        "simple_expansion",
        "string",
        "word",
    }
)
_JOINS = {join.value: join for join in Join if join is not Join.START}

_PIPES = frozenset({Join.PIPE, Join.PIPE_WITH_ERRORS})

_VARIABLE = r"\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\})"
_QUOTED = (
    r"'[^'`\n]*'"
    r"|" + rf'"(?:[^"\\$`\n]|\\[^`\n]|{_VARIABLE})*"'
)
_BARE = r"[A-Za-z0-9_@%+=:,./~^*?\[\]{}!-]|\\[!-_a-~ ]"
_PIECE = rf"{_BARE}|{_QUOTED}|{_VARIABLE}"
_WORD = re.compile(rf"(?:{_PIECE})(?:{_PIECE}|#)*")
_PROGRAM = re.compile(r"(?:~/)?[A-Za-z0-9_./+-]+")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_TO_FILE = re.compile(r"([0-9]?)(>>|>\||>|<)[ \t]*([^<>&|].*)|()(&>>|&>)[ \t]*([^<>&|].*)")
_TO_DESCRIPTOR = re.compile(r"([0-9]?)(>&)([0-9])")
#: A file by name: no variable, pattern or escape, and nothing below /dev, where bash has a network.
_FILE = re.compile(r"[A-Za-z0-9_@%+=:,./-]+|'[A-Za-z0-9_@%+=:,./ -]+'|\"[A-Za-z0-9_@%+=:,./ -]+\"")
_DEVICES = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr"})
#: Words of the language, and programs of the shell itself that run text or change how the rest of
#: a line is read.
_REFUSED_PROGRAMS = frozenset(
    """
    if then elif else fi case esac for select while until do done in function time coproc
    . alias bind builtin command complete declare enable eval exec fc hash let local mapfile
    readarray readonly set shopt source trap typeset unalias unset
    """.split()
)


class _NotUnderstoodError(Exception):
    """The line may do more than its parts say."""


@dataclass(frozen=True, slots=True)
class _Part:
    kind: str
    text: str
    start: int
    end: int


def read_line(line: str) -> tuple[LineStep, ...]:
    """Return the steps of a line; none if any of it is not understood."""
    if len(line) > MAX_LINE_CHARS or hidden_characters(line) or not _is_shown_as_it_is(line):
        return ()
    try:
        return _read(line)
    except _NotUnderstoodError:
        return ()


def _is_shown_as_it_is(line: str) -> bool:
    """Check that no character moves or changes those beside it."""
    others = {char for char in line if not char.isascii()}
    return all(char.isalnum() and unicodedata.bidirectional(char) == "L" for char in others)


def _read(line: str) -> tuple[LineStep, ...]:
    source = line.encode()
    root = _parser().parse(source).root_node
    if root.has_error:
        raise _NotUnderstoodError
    parts = [
        _Part(node.type, source[node.start_byte : node.end_byte].decode(), *node.byte_range)
        for node in _parts(root)
    ]
    if not parts or source[: parts[0].start].strip(b" \t\n"):
        raise _NotUnderstoodError
    if source[parts[-1].end :].strip(b" \t\n"):
        raise _NotUnderstoodError
    steps = _Steps()
    steps.add(parts[0])
    for before, part in pairwise(parts):
        steps.separate(source[before.end : part.start].decode(), before, part)
        steps.add(part)
    return steps.finish()


def _parts(root: "Node") -> "Iterator[Node]":
    """Yield the parts of a line in their order."""
    # No recursion: a list of a thousand programs is a thousand nodes deep.
    left = [root]
    while left:
        node = left.pop()
        if node.is_missing or node.is_error:
            raise _NotUnderstoodError
        if node.type in _WHOLES:
            left += reversed(node.children)
        else:
            yield node


class _Steps:
    """The steps so far, and the one that is being read."""

    def __init__(self) -> None:
        self._done: list[LineStep] = []
        self._step = LineStep()

    def separate(self, gap: str, before: _Part, part: _Part) -> None:
        """Check the text between two parts; a new line ends a step as a semicolon does."""
        if gap.strip(" \t\n"):
            raise _NotUnderstoodError
        if "\n" in gap and before.kind not in _JOINS:
            if part.kind in _JOINS:
                raise _NotUnderstoodError
            self._end(Join.THEN)
        # Without a blank, the end of a word could be the descriptor of a redirection.
        if not gap and before.kind not in _JOINS and part.kind not in _JOINS:
            raise _NotUnderstoodError

    def add(self, part: _Part) -> None:
        if part.kind in _JOINS:
            self._end(_JOINS[part.kind])
            return
        step = self._step
        if part.kind == "file_redirect":
            redirections = (*step.redirections, _read_redirection(part.text))
            self._step = replace(step, redirections=redirections)
        elif step.redirections:
            raise _NotUnderstoodError
        elif part.kind == "variable_assignment" and not step.words:
            assignments = (*step.assignments, _check_assignment(part.text))
            self._step = replace(step, assignments=assignments)
        else:
            self._step = replace(step, words=(*step.words, _check_word(part, step)))

    def finish(self) -> tuple[LineStep, ...]:
        # The last semicolon ends the line.
        if self._step != LineStep(join=Join.THEN):
            self._end(Join.THEN)
        for before, step in pairwise(self._done):
            # In a pipe each has a shell of its own, and changes nothing for the steps after it.
            if step.join in _PIPES and (_changes_shell(before) or _changes_shell(step)):
                raise _NotUnderstoodError
        return tuple(self._done)

    def _end(self, join: Join) -> None:
        step = self._step
        if not (step.words or step.assignments) or len(self._done) == MAX_STEPS:
            raise _NotUnderstoodError
        if step.redirections and not step.words:
            raise _NotUnderstoodError
        self._done.append(step)
        self._step = LineStep(join=join)


def _changes_shell(step: LineStep) -> bool:
    return not step.words or step.words[0] in ("cd", "export")


def _check_word(part: _Part, step: LineStep) -> str:
    if part.kind == "variable_assignment":
        # Of `export`; other programs get such a word as an argument like any other.
        return _check_assignment(part.text)
    if part.kind not in _WORDS or not _WORD.fullmatch(part.text):
        raise _NotUnderstoodError
    is_program = not step.words
    if is_program and (part.text in _REFUSED_PROGRAMS or not _PROGRAM.fullmatch(part.text)):
        raise _NotUnderstoodError
    return part.text


def _check_assignment(text: str) -> str:
    name = _ASSIGNMENT.match(text)
    if name is None or not (name.end() == len(text) or _WORD.fullmatch(text, name.end())):
        raise _NotUnderstoodError
    return text


def _read_redirection(text: str) -> Redirection:
    if match := _TO_DESCRIPTOR.fullmatch(text):
        return Redirection(*match.groups())
    match = _TO_FILE.fullmatch(text)
    if match is None:
        raise _NotUnderstoodError
    descriptor, operator, target = (group for group in match.groups() if group is not None)
    name = target.strip("'\"")
    if not _FILE.fullmatch(target) or ("/dev" in name and name not in _DEVICES):
        raise _NotUnderstoodError
    return Redirection(descriptor, operator, target)


@cache
def _parser() -> "Parser":
    # Few lines have to be read, so that most processes never need the grammar.
    import tree_sitter_bash  # noqa: PLC0415
    from tree_sitter import Language, Parser  # noqa: PLC0415

    return Parser(Language(tree_sitter_bash.language()))
