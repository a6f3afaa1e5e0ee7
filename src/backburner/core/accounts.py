"""Accounts: who may do what, and what they show to be let in."""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from ipaddress import IPv6Address, ip_address, ip_network

from backburner.core.errors import NotAllowed
from backburner.core.ids import UserId


class Role(StrEnum):
    MEMBER = "member"
    OPERATOR = "operator"  #: Sees to accounts and settings of all; sees nobody's conversations.


class Scope(StrEnum):
    """What a credential is good for; each is given apart."""

    READ = "read"
    WRITE = "write"
    OPERATE = "operate"  #: Only together with the role.


class CredentialKind(StrEnum):
    SESSION = "session"  #: A browser that signed in.
    TOKEN = "token"  #: A program.  # noqa: S105
    LINK = "link"  #: Signs in once.
    INVITATION = "invitation"  #: Makes an account, once.
    RESET = "reset"  #: Sets a new password, once.


#: These are shown with every request; the others are used up.
REUSABLE_CREDENTIALS = (CredentialKind.SESSION, CredentialKind.TOKEN)

#: How long each is good where nobody says otherwise; a session from its last use on.
CREDENTIAL_LIFETIMES = {
    CredentialKind.SESSION: timedelta(days=30),
    CredentialKind.LINK: timedelta(minutes=15),
    CredentialKind.INVITATION: timedelta(days=7),
    CredentialKind.RESET: timedelta(days=1),
}
#: The use of a credential is written down no more often than this.
USE_RECORD_INTERVAL = timedelta(hours=1)

#: How often somebody may try to sign in, as one account or from one address.
MAX_SIGN_IN_ATTEMPTS = 10
SIGN_IN_WINDOW = timedelta(minutes=15)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who sends a request, and what it may be."""

    user: UserId
    role: Role
    scopes: frozenset[Scope]
    #: The id of what they showed, and its kind.
    credential: str
    kind: CredentialKind
    #: When that ends by itself.
    expires_at: datetime | None = None

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes & scopes_of(self.role)

    @property
    def has_full_access(self) -> bool:
        """Whether they may do all that they could after signing in, and for as long."""
        lasts = self.kind is CredentialKind.SESSION or self.expires_at is None
        return lasts and scopes_of(self.role) <= self.scopes


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Somebody with an account, as those see them who see to accounts."""

    id: UserId
    #: None: they sign in with a link.
    login: str | None
    name: str
    role: Role
    has_password: bool
    created_at: datetime
    disabled_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """What somebody is let in with, as they see it in a list; the secret is kept nowhere."""

    id: str
    kind: CredentialKind
    name: str
    scopes: frozenset[Scope]
    created_at: datetime
    expires_at: datetime | None
    used_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """What somebody can make an account with, as operators see it."""

    id: str
    #: For whom it is, as a reminder.
    name: str
    role: Role
    made_by: UserId
    created_at: datetime
    expires_at: datetime | None


def role_of(scopes: frozenset[Scope]) -> Role:
    """Give the role that an invitation with these makes."""
    return Role.OPERATOR if Scope.OPERATE in scopes else Role.MEMBER


def scopes_of(role: Role) -> frozenset[Scope]:
    """Give all that somebody in this role can be allowed."""
    everything = frozenset(Scope)
    return everything if role is Role.OPERATOR else everything - {Scope.OPERATE}


def check_new_token(
    caller: Caller, scopes: frozenset[Scope], expires_at: datetime | None
) -> datetime | None:
    """Refuse a token that may more than whoever asks for it, and say when it is to end."""
    if wider := sorted(scope for scope in scopes if not caller.may(scope)):
        raise NotAllowed(
            f"You cannot give what you do not have: {', '.join(wider)}.",
            hint="Ask for fewer scopes.",
        )
    if caller.kind is CredentialKind.SESSION or caller.expires_at is None:
        return expires_at
    return min(caller.expires_at, expires_at or caller.expires_at)


def network_of(address: str) -> str:
    """Name the place that an address stands for: one line often has many IPv6 addresses."""
    try:
        found = ip_address(address)
    except ValueError:
        return address
    if not isinstance(found, IPv6Address):
        return str(found)
    return str(found.ipv4_mapped or ip_network((found, 64), strict=False))


def secret_digest(secret: str) -> str:
    """Make what is kept of a secret; it is too long to be guessed, so this may be quick."""
    return hashlib.sha256(secret.encode()).hexdigest()
