"""The tool policy: whether a call is allowed, denied or needs approval, and the grants for it.

A server's own claims about its tools have no effect: `Tool.free` is set by us or by the owner.
"""

import hashlib
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, assert_never
from urllib.parse import urlsplit

from backburner.core.conversation import Conversation, Kind
from backburner.core.errors import BadRequest
from backburner.core.ids import GrantId, derive_grant_id
from backburner.core.question import NO, YES, Question
from backburner.core.validation import canonical_json, check_json

ALWAYS_HERE = "always here"
#: The server name of built-in tools.
OWN_SERVER = "backburner"
#: Discovery reads and proposes; it starts nothing.
DISCOVERY_TOOLS = ("task_propose", "task_list", "memory_search", "read_file", "list_files")
#: A single approval is meant for the run that follows it.
SINGLE_USE_LIFETIME = timedelta(days=1)
MAX_ARGUMENT_BYTES = 512 * 1024
#: Commands that run their arguments: a grant for a prefix of them would permit anything.
COMMAND_WRAPPERS = frozenset(
    """
    ! . ash awk bash builtin bun busybox chroot chrt command coproc csh dash deno doas env eval
    exec expect find fish flock gawk ionice ipython ksh lua make mawk nawk nice node nodejs nohup
    npx nsenter osascript parallel perl php pkexec powershell prlimit pwsh pypy python ruby
    runuser script setpriv setsid sg sh source ssh stdbuf strace su sudo systemd-run taskset tclsh
    tcsh time timeout trap unshare uv uvx watch xargs zsh
    """.split()
)
_SHELL_SIGNS = frozenset(";&|<>$`(){}*?[]~#\\\n\r")
#: Lower case ASCII only: a host that could be mistaken for another one needs approval each time.
_PLAIN_HOST = re.compile(r"[a-z0-9._:-]+")


class GrantMatch(StrEnum):
    """The part of a call that a lasting grant has to match."""

    TOOL = "tool"  #: The tool only.
    COMMAND = "command"  #: Also the first words of `command`.
    HOST = "host"  #: Also the host of `url`.


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    #: The connection it belongs to, or `OWN_SERVER`.
    server: str
    name: str
    #: Digest of the description and parameters that the agent was shown.
    definition: str
    #: Needs no approval: built in and without external effects, or known to be read-only.
    free: bool = False
    grant_match: GrantMatch = GrantMatch.TOOL


#: The same calls in a row, with the same result, after which a run ends.
MAX_REPEATED_CALLS = 5


@dataclass(frozen=True, slots=True)
class ToolCall:
    tool: Tool
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """An owner's approval of one exact call, once, or of a kind of call in one conversation."""

    id: GrantId
    server: str
    tool: str
    definition: str
    #: Digest of the single call it is for; None for a lasting grant.
    call: str | None = None
    #: Lasting grants: the first words of the command, or the host.
    words: tuple[str, ...] = ()
    #: The words must be the whole command, not only its beginning.
    whole: bool = False
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Allow:
    #: The single-use grant that this call consumes.
    uses: GrantId | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    #: Digest of the call to approve.
    call: str


@dataclass(frozen=True, slots=True)
class Deny:
    reason: str


Decision = Allow | Ask | Deny


def decide(
    call: ToolCall,
    grants: Iterable[Grant],
    *,
    allowed: tuple[str, ...] | None,
    in_doubt: bool,
    now: datetime,
) -> Decision:
    """Decide about one call. `allowed` names the tools this conversation is restricted to."""
    tool = call.tool
    if allowed is not None and not is_tool_allowed(tool, allowed):
        names = ", ".join(allowed) or "none"
        return Deny(f"{_qualified_name(tool)} is not one of the tools allowed here: {names}.")
    if in_doubt:
        return Deny(
            f"An earlier call of {tool.name} may or may not have happened, and the owner has been"
            " asked about it. Do not call the tool before they have answered."
        )
    try:
        check_json("The tool call", dict(call.arguments), limit=MAX_ARGUMENT_BYTES)
    except BadRequest as error:
        # Arguments that cannot be stored cannot be shown to the owner either.
        return Deny(str(error))
    if tool.free:
        return Allow()
    matching = [grant for grant in grants if _matches(grant, call, now)]
    if any(grant.call is None for grant in matching):
        return Allow()
    return Allow(uses=matching[0].id) if matching else Ask(call_digest(call))


def is_tool_allowed(tool: Tool, allowed: tuple[str, ...] | None) -> bool:
    return allowed is None or _qualified_name(tool) in allowed


def allowed_tools(conversation: Conversation) -> tuple[str, ...] | None:
    """Return the tools a conversation is restricted to, or None.

    The restriction of discovery does not apply to what it proposes.
    """
    return DISCOVERY_TOOLS if conversation.kind is Kind.DISCOVERY else conversation.tools


def call_digest(call: ToolCall) -> str:
    """Hash server, tool, definition and exact arguments: any difference is another call."""
    tool = call.tool
    text = canonical_json([tool.server, tool.name, tool.definition, dict(call.arguments)])
    return hashlib.sha256(text.encode()).hexdigest()


def inherits_grants(kind: Kind) -> bool:
    """Return whether conversations of this kind use their parent's lasting grants."""
    return kind is Kind.JOB


def approval_options(calls: Iterable[ToolCall]) -> tuple[str, ...]:
    """List the answers to an approval; "always here" only if a lasting grant can be limited."""
    if all(_words(call) is not None for call in calls):
        return (YES, ALWAYS_HERE, NO)
    return (YES, NO)


def approval_binding(calls: Iterable[ToolCall]) -> dict[str, Any]:
    """Record exactly which calls an approval is for."""
    return {
        "calls": [
            {
                "server": call.tool.server,
                "tool": call.tool.name,
                "definition": call.tool.definition,
                "arguments": dict(call.arguments),
                "digest": call_digest(call),
                "words": words if (words := _words(call)) is None else list(words),
                "whole": call.tool.grant_match is GrantMatch.HOST or _is_wrapper(words),
            }
            for call in calls
        ]
    }


def grants_given(question: Question, answer: str, *, now: datetime) -> tuple[Grant, ...]:
    """Turn the answer to an approval into grants: none, single-use, or lasting."""
    if answer not in (YES, ALWAYS_HERE):
        return ()
    lasting = answer == ALWAYS_HERE
    return tuple(
        Grant(
            id=derive_grant_id(question.id, number),
            server=bound["server"],
            tool=bound["tool"],
            definition=bound["definition"],
            call=None if lasting else bound["digest"],
            words=tuple(bound["words"] or ()) if lasting else (),
            whole=bound["whole"] if lasting else False,
            expires_at=None if lasting else now + SINGLE_USE_LIFETIME,
        )
        for number, bound in enumerate(question.binds_to["calls"])
    )


def widen_grant(grant: Grant, words: tuple[str, ...]) -> Grant:
    """Shorten the words of a lasting grant for a command, so that it matches more commands."""
    if grant.whole or not words or grant.words[: len(words)] != words:
        raise BadRequest(
            f"{' '.join(grant.words)!r} does not begin with {' '.join(words)!r}.",
            hint="Keep one or more of its first words.",
        )
    return replace(grant, words=words)


def _qualified_name(tool: Tool) -> str:
    """Name a tool as restrictions do: built-in tools by name, others as `connection/name`."""
    return tool.name if tool.server == OWN_SERVER else f"{tool.server}/{tool.name}"


def _matches(grant: Grant, call: ToolCall, now: datetime) -> bool:
    tool = call.tool
    same_tool = (grant.server, grant.tool, grant.definition) == (
        tool.server,
        tool.name,
        tool.definition,
    )
    if not same_tool or (grant.expires_at is not None and grant.expires_at <= now):
        return False
    if grant.call is not None:
        return grant.call == call_digest(call)
    words = _words(call)
    # A grant without words is for tools that match by name; for others it would permit anything.
    if words is None or bool(words) != bool(grant.words):
        return False
    return words == grant.words if grant.whole else words[: len(grant.words)] == grant.words


def _words(call: ToolCall) -> tuple[str, ...] | None:
    """Return the words a lasting grant for this call would have; None if it cannot be limited."""
    match call.tool.grant_match:
        case GrantMatch.TOOL:
            return ()
        case GrantMatch.COMMAND:
            return _command_words(call.arguments.get("command"))
        case GrantMatch.HOST:
            return _host(call.arguments.get("url"))
        case _:
            assert_never(call.tool.grant_match)


def _command_words(command: object) -> tuple[str, ...] | None:
    if isinstance(command, list) and command and all(isinstance(part, str) for part in command):
        return tuple(command)
    # A line with shell syntax does more than its words say, so it needs approval each time.
    if not isinstance(command, str) or _SHELL_SIGNS & set(command):
        return None
    try:
        words = tuple(shlex.split(command))
    except ValueError:
        return None
    return words if words and "=" not in words[0] else None


def _host(url: object) -> tuple[str, ...] | None:
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        port = parts.port
    except ValueError:
        return None
    host = parts.hostname or ""
    if parts.scheme not in ("http", "https") or parts.username is not None:
        return None
    if not _PLAIN_HOST.fullmatch(host):
        return None
    return (parts.scheme, host, "" if port is None else str(port))


def _is_wrapper(words: tuple[str, ...] | None) -> bool:
    if not words:
        return False
    # Some file systems ignore case.
    name = words[0].rsplit("/", 1)[-1].casefold()
    return (name.rstrip("0123456789.") or name) in COMMAND_WRAPPERS
