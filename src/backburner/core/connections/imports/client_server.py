"""A server as a file of another client names it: remote, or a program; or why it is left out."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedServer:
    """A server at an address."""

    name: str
    #: The folder whose work it is for; empty: for all.
    project: str = ""
    url: str
    #: Secret. Those without a value are left out.
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    #: Of an OAuth client that its user has registered.
    client_id: str = ""
    client_secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedProgram:
    """A program on this machine that is a server, started by argv."""

    name: str
    project: str = ""
    command: tuple[str, ...]
    #: The values are secret.
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    #: Where the value of each comes from, in words.
    sources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A server that cannot be taken over, and why."""

    name: str
    project: str = ""
    reason: str


ClientServer = ImportedServer | ImportedProgram | LeftOut


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """A value that the file leaves to be typed in."""

    id: str
    description: str = ""
    is_secret: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFile:
    """The servers of a file, with references where it has them."""

    servers: tuple[ClientServer, ...]
    inputs: Mapping[str, Input] = field(default_factory=dict)
