"""Accounts as rows: users, credentials, rate limits, MCP clients, personal data, responses."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from backburner.core.accounts import (
    Caller,
    Credential,
    CredentialKind,
    Invitation,
    Role,
    Scope,
    User,
)
from backburner.core.ids import (
    ConversationId,
    UserId,
)
from backburner.ports.queries import PageKey


@dataclass(frozen=True, slots=True)
class UserState:
    """A user, as far as their conversations are concerned."""

    id: UserId
    zone: str
    #: Whether their background work stands still: all of it.
    paused: bool


class Accounts(Protocol):
    def ensure_owner(self, *, now: datetime) -> UserId | None:
        """Make the owner where there is nobody yet; None: they were there and are gone."""

    def add(self, user: UserId, *, login: str, name: str, role: Role, now: datetime) -> bool:
        """Add somebody; False: the login is taken."""

    def load(self, user: UserId) -> User:
        """Find somebody, or raise `NotFound`."""

    def find_login(self, login: str) -> tuple[UserId | None, str | None]:
        """Find out who signs in as this, and what is kept of their password; nobody disabled."""

    def password_hash(self, user: UserId) -> str | None: ...

    def page(self, *, after: str = "", limit: int) -> Sequence[User]:
        """List those whose ids come after one, by their ids."""

    def lock_operators(self) -> Sequence[UserId]:
        """List operators who are not disabled; nobody else changes them meanwhile."""

    def has_any_password(self) -> bool:
        """Tell whether anybody can sign in with one."""

    def change(
        self, user: UserId, *, name: str | None = None, role: Role | None = None
    ) -> None: ...

    def set_password(self, user: UserId, *, login: str, password: str) -> bool:
        """Keep a hash; False: the login is somebody else's."""

    def disable(self, user: UserId, *, at: datetime | None) -> None:
        """Shut somebody out, or let them in again with None."""


class Credentials(Protocol):
    def identify(self, digest: str, *, now: datetime) -> Caller | None:
        """Find out whose a lasting credential is that is good now, and note its use."""

    def valid(self, held: Collection[tuple[UserId, str]], *, now: datetime) -> frozenset[str]:
        """Give those of these credentials, each with its owner, that are good now."""

    def issue(
        self,
        user: UserId,
        digest: str,
        kind: CredentialKind,
        scopes: Iterable[Scope],
        *,
        name: str = "",
        expires_at: datetime | None = None,
        now: datetime,
    ) -> str:
        """Keep a new credential, and give its id."""

    def peek(
        self, digest: str, kind: CredentialKind, *, now: datetime
    ) -> tuple[UserId, frozenset[Scope]] | None:
        """See whose one is that can be used once, without using it."""

    def consume(self, digest: str, kind: CredentialKind, *, now: datetime) -> bool:
        """Use one for the only time; False: somebody has, or it is good no longer."""

    def page(
        self, user: UserId, kind: CredentialKind, *, after: str = "", limit: int, now: datetime
    ) -> Sequence[Credential]:
        """List those of a kind that are good, by their ids."""

    def revoke(self, user: UserId, credential: str, kind: CredentialKind, *, now: datetime) -> None:
        """End one that is good, or raise `NotFound`."""

    def revoke_all(
        self, user: UserId, kinds: Iterable[CredentialKind], *, name: str = "", now: datetime
    ) -> None:
        """End all of these kinds, or those of a name."""

    def invitations(self, *, after: str = "", limit: int, now: datetime) -> Sequence[Invitation]:
        """List those that are good, whichever operator made them, by their ids."""

    def revoke_invitation(self, invitation: str, *, now: datetime) -> None:
        """End one that is good, whichever operator made it, or raise `NotFound`."""


class McpClients(Protocol):
    """The conversations under which all hangs that clients hand out, one for each token."""

    def conversation_of(self, user: UserId, token: str) -> ConversationId | None:
        """Give the conversation of a token, unless it is archived or gone."""

    def former_conversation_of(
        self, user: UserId, name: str, *, now: datetime
    ) -> ConversationId | None:
        """Give that of the last token of this name that is good no longer."""

    def name_of(self, user: UserId, token: str) -> str:
        """Say what a token is called, or raise `NotFound`."""

    def remember_conversation(
        self, user: UserId, token: str, conversation_id: ConversationId
    ) -> None: ...


class RateLimits(Protocol):
    def count(self, keys: Iterable[str], *, now: datetime) -> timedelta | None:
        """Count an attempt for each key, or for none if one has had too many: then how long yet."""

    def reset(self, key: str) -> None:
        """Forget all attempts of a key."""

    def refund(self, key: str) -> None:
        """Take back one attempt."""


@dataclass(frozen=True, slots=True)
class ExportPage:
    """Rows of one page, and where the next one begins; None: there is none."""

    rows: Sequence[Mapping[str, Any]]
    mark: PageKey | None


class PersonalData(Protocol):
    @property
    def parts(self) -> Sequence[str]:
        """Name what there is to take out, apart from the profile."""

    def profile(self, user: UserId) -> Mapping[str, Any]: ...
    def page(self, user: UserId, name: str, after: PageKey | None, *, limit: int) -> ExportPage: ...
    def is_last_operator(self, user: UserId) -> bool:
        """See whether somebody is the last operator, and there are others."""

    def stop_runs(self, user: UserId) -> Sequence[ConversationId]:
        """Ask all that is under way to stop, and name it; nothing new begins in the background."""

    def erase(self, user: UserId) -> None:
        """Delete a user with everything that is theirs."""


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A request that came with a key before."""

    #: Digest of the request.
    request_digest: str
    #: None: nobody has answered it yet.
    status: int | None
    body: str | None
    started_at: datetime


class StoredResponses(Protocol):
    def begin(
        self, user: UserId, key: str, request: str, *, now: datetime
    ) -> StoredResponse | None:
        """Take a key; if it was taken before, give what is known. None: it is the caller's now."""

    def keep(self, user: UserId, key: str, status: int, body: str) -> None: ...
    def release(self, user: UserId, key: str) -> None:
        """Let a key be used again, since nothing was done."""

    def prune(self, *, before: datetime, limit: int) -> int: ...


class Users(Protocol):
    def load(self, user: UserId) -> UserState: ...
    def lock(self, user: UserId) -> UserState: ...
    def pause_everything(self, user: UserId | None, *, paused: bool) -> None: ...
    def set_zone(self, user: UserId, zone: str) -> None: ...
