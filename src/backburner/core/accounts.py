"""Accounts: users, their roles, and the credentials they authenticate with."""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from ipaddress import IPv6Address, ip_address, ip_network

from backburner.core.conversation import Use, Uses
from backburner.core.errors import NotAllowed
from backburner.core.ids import UserId


class Role(StrEnum):
    MEMBER = "member"
    OPERATOR = "operator"  #: Manages accounts and settings; cannot read users' conversations.


class ZoneSource(StrEnum):
    """Where the time zone of a user comes from."""

    NONE = "none"  #: Nobody has said; UTC is used.
    TERMINAL = "terminal"
    BROWSER = "browser"  #: Nearer to the user than the machine of the server.
    USER = "user"  #: They set it themselves.

    def may_replace(self, before: "ZoneSource") -> bool:
        order = list(ZoneSource)
        return order.index(self) >= order.index(before)


class Scope(StrEnum):
    """A permission of a credential; none implies another."""

    READ = "read"
    WRITE = "write"
    APPROVE = "approve"  #: Gives consent: answers approvals, and widens what may happen unasked.
    METRICS = "metrics"  #: Reads the metrics of the server; only with the operator role.
    OPERATE = "operate"  #: Takes effect only with the operator role.


class CredentialKind(StrEnum):
    SESSION = "session"  #: A signed-in browser.
    TOKEN = "token"  #: A program.  # noqa: S105
    LINK = "link"  #: Signs in once.
    INVITATION = "invitation"  #: Creates an account, once.
    RESET = "reset"  #: Sets a new password, once.


#: Name of the token of the local command line; each start of the server replaces it.
LOCAL_CLIENT_NAME = "command line of this machine"
#: Sent with every request; credentials of the other kinds are single-use.
REUSABLE_CREDENTIALS = (CredentialKind.SESSION, CredentialKind.TOKEN)

#: Default lifetimes; a session expires this long after its last use.
CREDENTIAL_LIFETIMES = {
    CredentialKind.SESSION: timedelta(days=30),
    CredentialKind.LINK: timedelta(minutes=15),
    CredentialKind.INVITATION: timedelta(days=7),
    CredentialKind.RESET: timedelta(days=1),
}
#: After its start a session expires, however often it is used.
MAX_SESSION_LIFETIME = timedelta(days=90)
#: The last use of a credential is recorded at most this often.
USE_RECORD_INTERVAL = timedelta(hours=1)

LOOPBACK = "127.0.0.1"
#: Limit on sign-in attempts, for one account and for one network address.
MAX_SIGN_IN_ATTEMPTS = 10
SIGN_IN_WINDOW = timedelta(minutes=15)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The authenticated sender of a request."""

    user: UserId
    role: Role
    scopes: frozenset[Scope]
    #: The credential's id and kind.
    credential: str
    kind: CredentialKind
    #: The name of the credential, if it has one.
    name: str = ""
    #: What of the user's the work of a token may use.
    uses: frozenset[Use] = frozenset()
    #: The names of the connections that the work of a token may use.
    connections: frozenset[str] = frozenset()

    def may(self, scope: Scope) -> bool:
        is_given = self.kind is CredentialKind.SESSION or scope in self.scopes
        return is_given and scope in scopes_of(self.role)

    @property
    def is_direct(self) -> bool:
        """Whether users act themselves: in a browser, or on the server's own command line."""
        return is_direct(self.kind, self.name)

    @property
    def is_local_client(self) -> bool:
        """Whether it is the command line of the machine that the server runs on."""
        return self.kind is CredentialKind.TOKEN and self.name == LOCAL_CLIENT_NAME

    @property
    def work_uses(self) -> Uses:
        """The user's things that work started by this caller may use."""
        return None if self.is_direct else self.uses

    @property
    def work_connections(self) -> frozenset[str] | None:
        """The connections that work started by this caller may use; None for all."""
        return None if self.is_direct else self.connections


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A user account, as operators see it."""

    id: UserId
    #: None if the user signs in with a link.
    login: str | None
    name: str
    role: Role
    has_password: bool
    created_at: datetime
    disabled_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """A credential as its user sees it in a list; the secret itself is not stored."""

    id: str
    kind: CredentialKind
    name: str
    scopes: frozenset[Scope]
    uses: frozenset[Use]
    connections: frozenset[str]
    created_at: datetime
    expires_at: datetime | None
    used_at: datetime | None
    #: Of a session: the browser and its system, in words; empty: they are not known.
    device: str = ""

    @property
    def work_uses(self) -> Uses:
        return None if is_direct(self.kind, self.name) else self.uses

    @property
    def work_connections(self) -> frozenset[str] | None:
        return None if is_direct(self.kind, self.name) else self.connections


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """An invitation to create an account, as operators see it."""

    id: str
    #: The invited person, as a reminder.
    name: str
    role: Role
    made_by: UserId
    created_at: datetime
    expires_at: datetime | None


def is_direct(kind: CredentialKind, name: str) -> bool:
    return kind is CredentialKind.SESSION or name == LOCAL_CLIENT_NAME


def role_of(scopes: frozenset[Scope]) -> Role:
    """Return the role that an invitation with these scopes grants."""
    return Role.OPERATOR if Scope.OPERATE in scopes else Role.MEMBER


def scopes_of(role: Role) -> frozenset[Scope]:
    """Return every scope that a user in this role can have."""
    scopes = frozenset(Scope)
    return scopes if role is Role.OPERATOR else scopes - {Scope.METRICS, Scope.OPERATE}


def check_new_token(caller: Caller, scopes: frozenset[Scope]) -> None:
    """Refuse a token that a token would make, and one with more scopes than its creator has."""
    check_direct(caller)
    if missing := sorted(scope for scope in scopes if not caller.may(scope)):
        raise NotAllowed(
            f"You do not have these scopes yourself: {', '.join(missing)}.",
            hint="Request fewer scopes.",
        )


def check_direct(caller: Caller, act: str = "create credentials") -> None:
    """Refuse tokens for what makes credentials: none of those may outlive the token.

    And for what chooses where a stored key is sent.
    """
    if not caller.is_direct:
        raise NotAllowed(
            f"A token cannot {act}.",
            hint="Sign in, or use the command line on the machine of the server.",
        )


def network_of(address: str) -> str:
    """Return the network to rate-limit: one subscriber often has a whole IPv6 /64.

    Every program of this machine has all addresses of loopback.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    if parsed.is_loopback:
        return LOOPBACK
    if isinstance(parsed, IPv6Address):
        return str(ip_network((parsed, 64), strict=False))
    return str(parsed)


def secret_digest(secret: str) -> str:
    """Hash a secret for storage; secrets are too long to guess, so a fast hash is enough."""
    return hashlib.sha256(secret.encode()).hexdigest()


#: The actor of what was done with the database itself, on the machine of the server.
ON_THE_SERVER = UserId("on the server")


class Act(StrEnum):
    USER_ADDED = "user_added"
    USER_CHANGED = "user_changed"  #: Their name.
    ROLE_CHANGED = "role_changed"
    USER_DISABLED = "user_disabled"
    USER_ENABLED = "user_enabled"
    PASSWORD_RESET = "password_reset"  # noqa: S105 (somebody made a link for a new password)
    USER_INVITED = "user_invited"
    INVITATION_REVOKED = "invitation_revoked"
    INVITATION_ACCEPTED = "invitation_accepted"
    BACKUP_MADE = "backup_made"
    MODELS_RELOADED = "models_reloaded"
    MODEL_SAVED = "model_saved"
    MODELS_CHOSEN = "models_chosen"  #: Those of chats and of background work.
    MODEL_REMOVED = "model_removed"
    CONNECTION_ADDED = "connection_added"
    CONNECTION_CHANGED = "connection_changed"
    CONNECTION_SIGNED_IN = "connection_signed_in"  #: With an account, or with other headers.
    CONNECTION_REMOVED = "connection_removed"
    TOOLS_ACCEPTED = "tools_accepted"  #: New or changed definitions of tools of a connection.
    TOOL_TICKED = "tool_ticked"  #: What its owner said of a tool: that it only reads, for example.
    ALLOWANCE_LIMITED = "allowance_limited"  #: The most that a user may spend, by an operator.
    EVERYONE_PAUSED = "everyone_paused"  #: All background work of all users.
    EVERYONE_RESUMED = "everyone_resumed"
    MASTER_KEY_ROTATED = "master_key_rotated"
    SECRETS_FORGOTTEN = "secrets_forgotten"  #: Their master key was lost.


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    id: str
    at: datetime
    #: Who did it; see `ON_THE_SERVER`.
    actor: UserId
    act: Act
    #: Whom it concerns, if anybody.
    user: UserId | None
    detail: str
