"""Users, credentials, rate limits, MCP clients, personal data and stored responses."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from backburner.core.accounts import (
    Act,
    AuditEntry,
    Caller,
    Credential,
    CredentialKind,
    Invitation,
    Role,
    Scope,
    User,
    ZoneSource,
)
from backburner.core.conversation import Use
from backburner.core.ids import ConversationId, UserId
from backburner.ports.queries import PageKey


@dataclass(frozen=True, slots=True)
class UserState:
    """User settings that apply to every conversation."""

    id: UserId
    zone: str
    #: True while the user has paused all background work.
    paused: bool
    #: When it was last resumed, by the user or for all users.
    resumed_at: datetime | None = None
    zone_source: ZoneSource = ZoneSource.NONE


@dataclass(frozen=True, slots=True)
class NewCredential:
    kind: CredentialKind
    scopes: Iterable[Scope] = ()
    uses: frozenset[Use] = frozenset()
    name: str = ""
    expires_at: datetime | None = None
    connections: frozenset[str] = frozenset()
    #: Of a session: the browser and its system, in words.
    device: str = ""


class Accounts(Protocol):
    def ensure_owner(self, *, now: datetime) -> UserId | None:
        """Create the owner in an empty database; None: the owner was erased."""

    def add(self, user: UserId, *, login: str, name: str, role: Role, now: datetime) -> bool:
        """Add a user; False: the login is taken."""

    def load(self, user: UserId) -> User:
        """Load a user, or raise `NotFound`."""

    def find_login(self, login: str) -> tuple[UserId | None, str | None]:
        """Find the user id and password hash of a login; disabled users are left out."""

    def password_hash(self, user: UserId) -> str | None: ...
    def page(self, *, after: str = "", limit: int) -> Sequence[User]:
        """List users by id, from the one after `after`."""

    def known(self, users: Collection[UserId]) -> Sequence[User]:
        """List those of some users that there are, by id."""

    def lock_operators(self) -> Sequence[UserId]:
        """List enabled operators, and lock them until the transaction ends."""

    def has_any_password(self) -> bool:
        """Check whether any user can sign in with a password."""

    def change(
        self, user: UserId, *, name: str | None = None, role: Role | None = None
    ) -> None: ...

    def set_password(self, user: UserId, *, login: str, password: str) -> bool:
        """Save a password hash; False: another user has the login."""

    def disable(self, user: UserId, *, at: datetime | None) -> None:
        """Disable a user, or enable them again with None."""


class Audit(Protocol):
    def record(
        self, act: Act, *, actor: UserId, user: UserId | None = None, detail: str = ""
    ) -> None: ...
    def page(self, *, before: str = "", limit: int) -> Sequence[AuditEntry]:
        """List acts of everybody, newest first, from the one before `before`."""

    def of_user(self, user: UserId, *, limit: int) -> Sequence[AuditEntry]:
        """List what others did to a user's account, newest first."""


class Credentials(Protocol):
    def identify(self, digest: str, *, now: datetime) -> tuple[Caller, bool] | None:
        """Find the caller of a valid session or token, and whether to record its use now."""

    def record_use(self, digest: str, *, now: datetime) -> None:
        """Record the use of a valid session or token, which extends a session."""

    def find(self, user: UserId, credential_id: str, *, now: datetime) -> tuple[Caller, str] | None:
        """Find the caller of a valid session or token by its id, and the digest of its secret."""

    def valid(self, held: Collection[tuple[UserId, str]], *, now: datetime) -> frozenset[str]:
        """Return the ids that are still valid. `held` pairs each id with its owner."""

    def issue(self, user: UserId, digest: str, new: NewCredential, *, now: datetime) -> str:
        """Save a new credential and return its id."""

    def peek(
        self, digest: str, kind: CredentialKind, *, now: datetime
    ) -> tuple[UserId, frozenset[Scope]] | None:
        """Find the owner of a valid single-use credential without consuming it."""

    def consume(self, digest: str, kind: CredentialKind, *, now: datetime) -> bool:
        """Consume a single-use credential; False: it was used or has expired."""

    def page(
        self, user: UserId, kind: CredentialKind, *, after: str = "", limit: int, now: datetime
    ) -> Sequence[Credential]:
        """List valid credentials of one kind, by id."""

    def revoke(
        self, user: UserId, credential_id: str, kind: CredentialKind, *, now: datetime
    ) -> None:
        """Revoke a valid credential, or raise `NotFound`."""

    def revoke_all(
        self, user: UserId, kinds: Iterable[CredentialKind], *, now: datetime
    ) -> None: ...
    def revoke_named(self, user: UserId, name: str, *, kept_id: str, now: datetime) -> None: ...

    def invitations(self, *, after: str = "", limit: int, now: datetime) -> Sequence[Invitation]:
        """List the valid invitations of all operators, by id."""

    def revoke_invitation(self, invitation_id: str, *, now: datetime) -> None:
        """Revoke a valid invitation of any operator, or raise `NotFound`."""


class McpClients(Protocol):
    """The conversation of each token, parent of all jobs started with that token."""

    def conversation_of(self, user: UserId, token_id: str) -> ConversationId | None:
        """Return the conversation of a token, unless it is archived or deleted."""

    def former_conversation_of(
        self, user: UserId, name: str, *, now: datetime
    ) -> ConversationId | None:
        """Return the conversation of the last expired or revoked token with this name."""

    def name_of(self, user: UserId, token_id: str) -> str:
        """Return the name of a token, or raise `NotFound`."""

    def remember_conversation(
        self, user: UserId, token_id: str, conversation_id: ConversationId
    ) -> None: ...


class RateLimits(Protocol):
    def count(self, keys: Iterable[str], *, now: datetime) -> timedelta | None:
        """Count an attempt for each key; over the limit, count nothing and return the wait."""

    def reset(self, key: str) -> None:
        """Clear all attempts of a key."""

    def refund(self, key: str) -> None:
        """Subtract one attempt that was counted."""


@dataclass(frozen=True, slots=True)
class ExportPage:
    """Rows of one section. `next_key` is None on the last page."""

    rows: Sequence[Mapping[str, Any]]
    next_key: PageKey | None


class PersonalData(Protocol):
    @property
    def parts(self) -> Sequence[str]:
        """List the sections of an export, apart from the profile."""

    def profile(self, user: UserId) -> Mapping[str, Any]: ...
    def page(self, user: UserId, name: str, after: PageKey | None, *, limit: int) -> ExportPage: ...
    def is_last_operator(self, user: UserId) -> bool:
        """Check whether the user is the only operator while other users exist."""

    def stop_runs(self, user: UserId) -> Sequence[ConversationId]:
        """Stop all runs and pause background work; returns the conversations still running."""

    def erase(self, user: UserId) -> None:
        """Delete a user and all their data."""


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A request that was received before with the same idempotency key."""

    request_digest: str
    #: None: not answered yet.
    status: int | None
    body: str | None
    started_at: datetime


class StoredResponses(Protocol):
    def reserve(
        self, user: UserId, key: str, request: str, *, now: datetime
    ) -> StoredResponse | None:
        """Reserve a key and return None, or return the earlier request with that key."""

    def complete(self, user: UserId, key: str, status: int, body: str) -> None: ...
    def release(self, user: UserId, key: str) -> None:
        """Free a key whose request changed nothing."""

    def prune(self, *, before: datetime, limit: int) -> int: ...


class Users(Protocol):
    def load(self, user: UserId) -> UserState: ...
    def lock(self, user: UserId) -> UserState: ...
    def zones(self, users: Collection[UserId]) -> Mapping[UserId, str]:
        """Read the time zones of users."""

    def pause_everything(self, user: UserId | None, *, paused: bool) -> None: ...
    def set_zone(self, user: UserId, zone: str, source: ZoneSource = ZoneSource.USER) -> None: ...
