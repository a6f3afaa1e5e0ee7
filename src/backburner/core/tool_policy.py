"""May this tool call be made: allow, ask, deny. And the grants that an owner's yes leaves behind.

What a server says of its own tools never counts here: `Tool.free` is our word or the owner's.
"""

import hashlib
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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
#: The server of the tools that are part of this program.
OWN_SERVER = "backburner"
#: Discovery looks and proposes; it begins nothing.
DISCOVERY_TOOLS = ("task_propose", "task_list", "memory_search", "read_file", "list_files")
#: A yes is for the run that follows it, not for a day when nobody remembers having said it.
SINGLE_USE_LIFETIME = timedelta(days=1)
MAX_ARGUMENT_BYTES = 512 * 1024
#: These run what their arguments say, so a prefix of them would permit anything.
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
#: Lower case ASCII only: what looks like another host, or is read as one by some, is asked for.
_PLAIN_HOST = re.compile(r"[a-z0-9._:-]+")


class GrantMatch(StrEnum):
    """What a lasting grant for a tool is held to, besides the tool itself."""

    TOOL = "tool"  #: Nothing more.
    COMMAND = "command"  #: The words its `command` begins with.
    HOST = "host"  #: The host of its `url`.


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    #: The connection it belongs to, or `OWN_SERVER`.
    server: str
    name: str
    #: Digest of the description and parameters the agent was shown.
    definition: str
    #: It needs no consent: ours and without effect outside, or known to only read.
    free: bool = False
    grant_match: GrantMatch = GrantMatch.TOOL


@dataclass(frozen=True, slots=True)
class ToolCall:
    tool: Tool
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """An owner's yes: to one exact call, once, or to a kind of call in one conversation."""

    id: GrantId
    server: str
    tool: str
    definition: str
    #: Digest of the one call it is for; None: it lasts.
    call: str | None = None
    #: What a lasting one is held to: the words of a command, or a host.
    words: tuple[str, ...] = ()
    #: The words are all there may be, not the beginning of a command.
    whole: bool = False
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Allow:
    #: The single-use grant that this call uses up.
    uses: GrantId | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    #: What a yes would be for.
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
    """Judge one call. `allowed` names the tools this conversation is restricted to, if it is."""
    tool = call.tool
    if allowed is not None and not is_tool_allowed(tool, allowed):
        names = ", ".join(allowed) or "none"
        return Deny(f"{_qualified_name(tool)} is not among the tools of this work: {names}.")
    if in_doubt:
        return Deny(
            f"An earlier call of {tool.name} may or may not have happened; "
            "the owner has been asked. Do not call it until they have answered."
        )
    try:
        check_json("The arguments", dict(call.arguments), limit=MAX_ARGUMENT_BYTES)
    except BadRequest as error:
        # What cannot be written down cannot be shown to the owner either.
        return Deny(str(error))
    if tool.free:
        return Allow()
    fitting = [grant for grant in grants if _fits(grant, call, now)]
    if any(grant.call is None for grant in fitting):
        return Allow()
    return Allow(uses=fitting[0].id) if fitting else Ask(call_digest(call))


def is_tool_allowed(tool: Tool, allowed: tuple[str, ...] | None) -> bool:
    """See whether a conversation that is restricted to these tools may call one."""
    return allowed is None or _qualified_name(tool) in allowed


def allowed_tools(conversation: Conversation) -> tuple[str, ...] | None:
    """Say which tools a conversation is restricted to, if it is.

    What it hands out is another matter: discovery proposes what it may not do itself.
    """
    return DISCOVERY_TOOLS if conversation.kind is Kind.DISCOVERY else conversation.tools


def call_digest(call: ToolCall) -> str:
    """Bind to server, tool, definition and exact arguments: any other byte is another call."""
    tool = call.tool
    bound = canonical_json([tool.server, tool.name, tool.definition, dict(call.arguments)])
    return hashlib.sha256(bound.encode()).hexdigest()


def inherits_grants(kind: Kind) -> bool:
    """Jobs work under their parent's lasting grants, everything else only under its own."""
    return kind is Kind.JOB


def approval_options(calls: Iterable[ToolCall]) -> tuple[str, ...]:
    """Offer "always here" only where it can be held to something."""
    if all(_words(call) is not None for call in calls):
        return (YES, ALWAYS_HERE, NO)
    return (YES, NO)


def approval_binding(calls: Iterable[ToolCall]) -> dict[str, Any]:
    """Write down what exactly an approval is for."""
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
    """Let a lasting grant for a command cover more: everything that begins with fewer words."""
    if grant.whole or not words or grant.words[: len(words)] != words:
        raise BadRequest(
            f"{' '.join(words)!r} does not begin {' '.join(grant.words)!r}.",
            hint="Keep one or more of its first words.",
        )
    return Grant(
        id=grant.id,
        server=grant.server,
        tool=grant.tool,
        definition=grant.definition,
        words=words,
    )


def _qualified_name(tool: Tool) -> str:
    """Name a tool as a scope does: ours by name, those of a connection with where they are from."""
    return tool.name if tool.server == OWN_SERVER else f"{tool.server}/{tool.name}"


def _fits(grant: Grant, call: ToolCall, now: datetime) -> bool:
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
    # A grant without words is for tools that are held to none; for others it would permit anything.
    if words is None or bool(words) != bool(grant.words):
        return False
    return words == grant.words if grant.whole else words[: len(grant.words)] == grant.words


def _words(call: ToolCall) -> tuple[str, ...] | None:
    """Find what a lasting grant for this call would be held to; None: it cannot be held."""
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
    # A shell reads more into a line than its words: with any sign of that, each line is asked for.
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
    # Some file systems take no heed of case.
    name = words[0].rsplit("/", 1)[-1].casefold()
    return (name.rstrip("0123456789.") or name) in COMMAND_WRAPPERS
