"""The setup of models: what an operator enters, tests, and stores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Protocol

from backburner.ports.engine import Trial


class ModelKind(StrEnum):
    CLAUDE_KEY = "claude-key"
    CLAUDE_TOKEN = "claude-token"  # noqa: S105 (a kind)
    OPENAI = "openai"
    DEMO = "demo"


#: Kinds in words for people.
MODEL_KINDS: Mapping[ModelKind, str] = {
    ModelKind.CLAUDE_KEY: "Claude, with an API key",
    ModelKind.CLAUDE_TOKEN: "Claude, with a subscription token (run `claude setup-token` to get"
    " one)",
    ModelKind.OPENAI: "a local model, or any server with an OpenAI-compatible API",
    ModelKind.DEMO: "the demo, without a model",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry:
    """A model as an operator enters it; empty: the default of its kind."""

    kind: ModelKind
    model: str = ""
    address: str = ""
    #: A key or a token; empty: none. None: the one that is stored, if it is for this address.
    secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelProfile:
    """A profile that is in use, without its key."""

    name: str
    kind: ModelKind
    model: str
    address: str
    has_key: bool
    #: Maximum concurrent runs; None: no limit of its own.
    seats: int | None
    #: False: it comes from the settings file or the environment, or is built in.
    can_change: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelList:
    profiles: Sequence[ModelProfile]
    chat: str
    #: None: the profile of chats.
    background: str | None
    #: Why no model can be stored here; empty: they can.
    obstacle: str = ""
    #: Why the profile of chats or that of background work cannot be chosen here; empty: it can.
    chat_obstacle: str = ""
    background_obstacle: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTest:
    """The result of a test of a model. It contains no secret."""

    trial: Trial
    latency: timedelta
    #: The models of the server, where they help to choose another.
    offered: Sequence[str] = ()
    #: What else is worth knowing; empty: nothing.
    note: str = ""


class ModelRole(StrEnum):
    CHATS = "chats"
    BACKGROUND = "background"


class ModelSetup(Protocol):
    """Models that are stored in the data folder. Errors quote no secret."""

    async def list(self) -> ModelList: ...
    async def test(self, entry: ModelEntry | None, profile: str | None) -> ModelTest:
        """Send one short request to a model, and store nothing.

        `profile` is one that exists: its key is used if the entry has none, and without an entry
        it is tested as it is.
        """

    async def offered(self, entry: ModelEntry | None, profile: str | None) -> Sequence[str]:
        """List the models of a server. Raises `EngineFailed` if it cannot tell them."""

    async def save(self, name: str, entry: ModelEntry, roles: Sequence[ModelRole]) -> ModelProfile:
        """Store a profile, and use it at once. An error changes nothing."""

    async def choose(self, chosen: Mapping[ModelRole, str | None]) -> None:
        """Choose the profiles of chats and of background work; None: that of chats."""

    async def remove(self, name: str) -> None: ...
