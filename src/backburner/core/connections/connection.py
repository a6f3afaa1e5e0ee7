"""Connections of a user to MCP servers, and what the user has decided about their tools."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from backburner.core.ids import ConnectionId, UserId
from backburner.core.validation import canonical_json

#: How long a call of a tool may take, and how long its owner may let it.
CALL_TIMEOUT = timedelta(minutes=1)
MIN_CALL_TIMEOUT, MAX_CALL_TIMEOUT = timedelta(seconds=5), timedelta(minutes=30)


class AuthKind(StrEnum):
    """How we sign in to a server."""

    NONE = "none"
    HEADER = "header"  #: A fixed secret in a header of every request.
    OAUTH = "oauth"


class ConnectionState(StrEnum):
    SIGNING_IN = "signing_in"  #: Added; its owner has not signed in yet.
    READY = "ready"
    SIGNED_OUT = "signed_out"  #: Its owner has to sign in again.


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A connection of one user to one MCP server. Its secrets are in the vault."""

    id: ConnectionId
    user_id: UserId
    #: Unique among the user's, and never changed: lower case letters, digits and hyphens. Tools are
    #: `name/tool`.
    name: str
    title: str
    #: Empty for a program that the operator has defined.
    url: str = ""
    #: The name of a program in the operator's settings; empty for a URL.
    program: str = ""
    auth: AuthKind = AuthKind.NONE
    #: The names of the headers whose values are in the vault.
    headers: tuple[str, ...] = ()
    state: ConnectionState = ConnectionState.READY
    #: The entry of the catalogue that it was made from.
    catalogue: str = ""
    #: Nothing uses it before its owner enables it again.
    disabled: bool = False
    #: Chats use it without being told to.
    in_chats: bool = True
    #: Of each attempt at a call. A run has a timeout of its own besides.
    call_timeout: timedelta = CALL_TIMEOUT
    #: Increases with every new set of secrets.
    sign_in_revision: int = 0
    scopes: tuple[str, ...] = ()
    #: Those that its server wants besides: the next sign-in asks for them.
    wanted_scopes: tuple[str, ...] = ()
    #: Those that a sign-in asked for and did not get: nobody is asked for them again.
    refused_scopes: tuple[str, ...] = ()
    created_at: datetime
    #: When its tools were last listed; None: never.
    listed_at: datetime | None = None
    #: When the sign-in ends; None: it renews itself, or it is not known.
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    last_error: str = ""
    last_error_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition:
    """A tool as a server describes it."""

    name: str
    description: str = ""
    #: JSON schema of its arguments.
    parameters: Mapping[str, Any] = field(default_factory=dict)
    #: Shown to its owner only: a server's claims about its tools have no effect.
    says_read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolNature:
    """The effects of a tool's calls, by our catalogue."""

    #: They change nothing.
    read_only: bool = False
    #: One that may have been made may be made again.
    repeatable: bool = False
    #: Their arguments become known to others, as those of a search or of a fetched address do.
    discloses: bool = False


#: Of tools that the catalogue does not have.
UNKNOWN_NATURE = ToolNature()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticks:
    """Decisions of the owner about a tool; None: nothing, so the catalogue counts."""

    read_only: bool | None = None
    repeatable: bool | None = None
    #: Agents do not get the tool.
    off: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionTool:
    """A tool of a connection, with what its owner has decided about it."""

    #: As it was last listed.
    definition: ToolDefinition
    digest: str
    #: The digest of the definition that the owner has accepted; another one is withheld.
    accepted: str = ""
    #: The definition that was accepted, to show what has changed.
    accepted_definition: ToolDefinition | None = None
    #: The digest of the withheld definition that the owner was told about.
    reported: str = ""
    #: By our catalogue, and by the owner: a server's own claims have no effect.
    nature: ToolNature = UNKNOWN_NATURE
    ticks: Ticks = Ticks()
    #: The server does not list it any more.
    gone: bool = False

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def is_accepted(self) -> bool:
        return self.accepted == self.digest

    @property
    def is_withheld(self) -> bool:
        """Whether it waits for its owner to accept its definition."""
        return not (self.gone or self.is_accepted or self.ticks.off)

    @property
    def is_offered(self) -> bool:
        """Whether agents may see and call it."""
        return self.is_accepted and not (self.gone or self.ticks.off)

    @property
    def read_only(self) -> bool:
        """Whether it changes nothing, so that it needs no approval."""
        ticked = self.ticks.read_only
        return self.nature.read_only if ticked is None else ticked

    @property
    def repeatable(self) -> bool:
        """Whether a call may be repeated that may have been made."""
        if self.ticks.repeatable is not None:
            return self.ticks.repeatable
        # Our catalogue says it of tools that read: whoever says that one does not, denies both.
        return self.read_only or (self.nature.repeatable and self.ticks.read_only is not False)

    @property
    def discloses(self) -> bool:
        """Whether its arguments become known to others, which its owner has not agreed to.

        Such a call needs approval in a session that has read outside text.
        """
        return self.nature.discloses and self.ticks.read_only is not True


def definition_digest(definition: ToolDefinition) -> str:
    """Hash what an agent is shown of a tool: name, description and schema."""
    shown = [definition.name, definition.description, dict(definition.parameters)]
    return hashlib.sha256(canonical_json(shown).encode()).hexdigest()
