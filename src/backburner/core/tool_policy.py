"""The tool policy: whether a call is allowed, denied or needs approval, and the grants for it.

A server's own claims about its tools have no effect: `Tool.free` is set by us or by the owner.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, assert_never
from urllib.parse import urlsplit

from backburner.core.commands import NETWORK_ARGUMENT, Cage, LineStep, is_plain, lasting_words
from backburner.core.conversation import Conversation, Kind
from backburner.core.errors import BadRequest
from backburner.core.ids import ConnectionId, GrantId, derive_grant_id
from backburner.core.obeyed_files import is_obeyed
from backburner.core.question import NO, YES, Question
from backburner.core.signed_in import lasting_arguments, only_reads, refuse
from backburner.core.validation import canonical_json, check_json, escape_hidden

ALWAYS_HERE = "always here"
#: Of what an approval binds to: the task that gets the grants, after a test run of it.
GRANTS_TO_TASK = "grants_to"
#: The server name of built-in tools.
OWN_SERVER = "backburner"
#: An agent without it only reads.
WRITING_TOOL = "write_file"
COMMAND_TOOL = "run_command"
#: Gives the user a file.
HAND_OVER_TOOL = "hand_over"
#: Offered to every background run: it only says what the run is doing.
PROGRESS_TOOL = "report_progress"
#: Offered with tools whose results may be cut: it only reads what results here name.
RESULT_TOOL = "read_result"
#: These find tools of connections by words, and call one by its name; the gate sees that one.
FIND_TOOL, USE_TOOL = "find_tools", "use_tool"
#: A list of tools does not have to name these.
UNRESTRICTED_TOOLS = (PROGRESS_TOOL, RESULT_TOOL, FIND_TOOL)
#: In a list of tools, all those of a connection: `name/*`.
ANY_TOOL = "*"
#: Discovery reads and proposes; it starts nothing.
DISCOVERY_TOOLS = ("task_propose", "task_list", "memory_search", "read_file", "list_files")
#: A single approval is meant for the run that follows it.
SINGLE_USE_LIFETIME = timedelta(days=1)
MAX_ARGUMENT_BYTES = 512 * 1024
_PLAIN_TOOL = re.compile(r"[\w./:-]+")
#: Lower case ASCII only: a host that could be mistaken for another one needs approval each time.
_PLAIN_HOST = re.compile(r"[a-z0-9._:-]+")


class GrantMatch(StrEnum):
    """The part of a call that a lasting grant has to match."""

    TOOL = "tool"  #: The tool only.
    COMMAND = "command"  #: Also `command`; see `core.commands`.
    PROGRAM = "program"  #: Also `program` and `arguments`; see `core.signed_in`.
    HOST = "host"  #: Also the host of `url`.
    NOTHING = "nothing"  #: Each call needs approval.


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    #: The connection it belongs to, or `OWN_SERVER`.
    server: str
    name: str
    #: Digest of the description and parameters that the agent was shown.
    definition: str
    #: Needs no approval: built in and without external effects, or known to be read-only.
    free: bool = False
    #: A call may be made again even if it may have been made.
    repeatable: bool = False
    #: The id of its connection; None: it has none.
    connection: ConnectionId | None = None
    #: Its arguments become known to others: it is not free in a session that has read outside text.
    discloses: bool = False
    grant_match: GrantMatch = GrantMatch.TOOL
    #: Free except for files that other programs obey, by `path`.
    guards_files: bool = False
    #: Of commands: what holds them while they do not ask for the network.
    cage: Cage | None = None
    #: Why nothing holds them here, so that each needs approval.
    cage_missing: str = ""
    #: The tool whose results it is for; it is allowed wherever that one is.
    belongs_to: str | None = None


#: The same calls in a row, with the same result, after which a run ends.
MAX_REPEATED_CALLS = 5


@dataclass(frozen=True, slots=True)
class ToolCall:
    tool: Tool
    arguments: Mapping[str, Any]
    #: Of a command line that was read; empty: it could not be. None: it is plain, or free.
    steps: tuple[LineStep, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """An owner's approval of one exact call, once, or of a kind of call in one conversation."""

    id: GrantId
    server: str
    tool: str
    definition: str
    #: The connection of the tool; a later one of its name is another.
    connection: ConnectionId | None = None
    #: Digest of the single call it is for; None for a lasting grant.
    call: str | None = None
    #: Lasting grants: the command, or the host.
    words: tuple[str, ...] = ()
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
    outside_read: bool = False,
    now: datetime,
) -> Decision:
    """Decide about one call. `allowed` names the tools this conversation is restricted to.

    `outside_read`: its session has read outside text, which may have suggested the call.
    """
    tool = call.tool
    if allowed is not None and not is_tool_allowed(tool, allowed):
        names = ", ".join(allowed) or "none"
        return Deny(f"{qualified_name(tool)} is not one of the tools allowed here: {names}.")
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
    if tool.grant_match is GrantMatch.PROGRAM and (reason := refuse(call.arguments)) is not None:
        return Deny(reason)
    if _is_free(call, outside_read=outside_read):
        return Allow()
    matching = [grant for grant in grants if _matches(grant, call, now)]
    if any(grant.call is None for grant in matching):
        return Allow()
    return Allow(uses=matching[0].id) if matching else Ask(call_digest(call))


def is_tool_allowed(tool: Tool, allowed: tuple[str, ...] | None) -> bool:
    if allowed is None or tool.belongs_to in allowed:
        return True
    name, of_server = qualified_name(tool), f"{tool.server}/{ANY_TOOL}"
    return name in (*allowed, *UNRESTRICTED_TOOLS) or of_server in allowed


def allowed_tools(conversation: Conversation) -> tuple[str, ...] | None:
    """Return the tools a conversation is restricted to, or None.

    The restriction of discovery does not apply to what it proposes.
    """
    if conversation.kind is Kind.DISCOVERY:
        return DISCOVERY_TOOLS
    tools = conversation.tools
    if tools is None or not conversation.connections:
        return tools
    # Of a connection that is named, all tools, unless some of them are named as well.
    servers = {tool.partition("/")[0] for tool in tools if "/" in tool}
    unnamed = (name for name in conversation.connections if name not in servers)
    return (*tools, *(f"{name}/{ANY_TOOL}" for name in unnamed))


def choose_cage(conversation: Conversation) -> Cage:
    """Return what the commands of a conversation can use.

    To read only, if its folder was added so, or if its agent only reads.
    """
    allowed = allowed_tools(conversation)
    if conversation.folder is not None and conversation.folder.read_only:
        return Cage.LOOK
    return Cage.WORK if allowed is None or WRITING_TOOL in allowed else Cage.LOOK


def find_cage(call: ToolCall) -> Cage | None:
    """Return what keeps a call from reaching anything outside its folder; None: nothing does."""
    return call.tool.cage if call.arguments.get(NETWORK_ARGUMENT, False) is False else None


def line_to_read(call: ToolCall) -> str | None:
    """Return the command line of a call that has to be read before anybody is asked about it."""
    line = call.arguments.get("command")
    is_command = call.tool.grant_match is GrantMatch.COMMAND and isinstance(line, str)
    is_free = _is_free(call, outside_read=False)
    return line if is_command and not is_plain(line) and not is_free else None


def is_read_only(call: ToolCall) -> bool:
    """Return whether a call changes nothing, by its cage or by its arguments."""
    if call.tool.grant_match is GrantMatch.PROGRAM:
        return only_reads(call.arguments)
    return find_cage(call) is Cage.LOOK


def call_digest(call: ToolCall) -> str:
    """Hash server, tool, definition and exact arguments: any difference is another call.

    So is that of a later connection of the same name.
    """
    tool = call.tool
    parts = [tool.server, tool.name, tool.definition, dict(call.arguments)]
    text = canonical_json(parts if tool.connection is None else [*parts, tool.connection])
    return hashlib.sha256(text.encode()).hexdigest()


def inherits_grants(conversation: Conversation) -> bool:
    """Return whether work uses its parent's lasting grants: jobs that no token handed out."""
    return conversation.kind is Kind.JOB and conversation.uses is None


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
                "connection": call.tool.connection,
                "arguments": dict(call.arguments),
                "digest": call_digest(call),
                "words": words if (words := _words(call)) is None else list(words),
            }
            for call in calls
        ]
    }


def grants_given(question: Question, answer: str, *, now: datetime) -> tuple[Grant, ...]:
    """Turn the answer to an approval into grants: none, single-use, or lasting."""
    if answer not in (YES, ALWAYS_HERE):
        return ()
    is_list = GRANTS_TO_TASK in question.binds_to
    return tuple(
        _grant(
            derive_grant_id(question.id, number),
            bound,
            # The calls of a list are granted for as long as each of them can be.
            lasting=answer == ALWAYS_HERE and not (is_list and bound["words"] is None),
            now=now,
        )
        for number, bound in enumerate(question.binds_to["calls"])
    )


def _grant(grant_id: GrantId, bound: Mapping[str, Any], *, lasting: bool, now: datetime) -> Grant:
    return Grant(
        id=grant_id,
        server=bound["server"],
        tool=bound["tool"],
        definition=bound["definition"],
        # Questions that were asked before did not record it: a grant for nothing.
        connection=bound.get("connection"),
        call=None if lasting else bound["digest"],
        words=tuple(bound["words"] or ()) if lasting else (),
        expires_at=None if lasting else now + SINGLE_USE_LIFETIME,
    )


def grant_ids(answer: Mapping[str, Any]) -> tuple[GrantId, ...]:
    """Return the ids of the grants that an answer gave, from the inbox item that it left."""
    calls = answer.get("binds_to", {}).get("calls", ())
    return tuple(derive_grant_id(answer["question_id"], number) for number in range(len(calls)))


def qualified_name(tool: Tool) -> str:
    """Name a tool as restrictions do: built-in tools by name, others as `connection/name`."""
    return tool.name if tool.server == OWN_SERVER else f"{tool.server}/{tool.name}"


def show_tool(server: str, tool: str) -> str:
    """Name a tool of others to somebody who has to agree to a call of it.

    In quotes if not all of it is a plain word: the rest could look like arguments, or like ours.
    """
    is_plain = _PLAIN_TOOL.fullmatch(tool)
    return f"{server}/{tool if is_plain else escape_hidden(json.dumps(tool, ensure_ascii=False))}"


def _is_free(call: ToolCall, *, outside_read: bool) -> bool:
    tool, arguments = call.tool, call.arguments
    if tool.guards_files and is_obeyed(str(arguments.get("path"))):
        return False
    if tool.discloses and outside_read:
        return False
    return tool.free or find_cage(call) is not None


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
    return grant.connection == tool.connection and _words(call) == grant.words


def _words(call: ToolCall) -> tuple[str, ...] | None:
    """Return the words a lasting grant for this call would have; None if it cannot be limited."""
    match call.tool.grant_match:
        case GrantMatch.TOOL:
            return ()
        case GrantMatch.COMMAND:
            return lasting_words(call.arguments.get("command"), call.steps)
        case GrantMatch.PROGRAM:
            return lasting_arguments(call.arguments)
        case GrantMatch.HOST:
            return _host(call.arguments.get("url"))
        case GrantMatch.NOTHING:
            return None
        case _:
            assert_never(call.tool.grant_match)


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
