"""Accounts: who may do what, and what they show to be let in."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum

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
LASTING = (CredentialKind.SESSION, CredentialKind.TOKEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who sends a request, and what it may be."""

    user: UserId
    role: Role
    scopes: frozenset[Scope]
    #: The id of what they showed, and its kind.
    credential: str
    kind: CredentialKind

    def may(self, scope: Scope) -> bool:
        is_operator = self.role is Role.OPERATOR or scope is not Scope.OPERATE
        return is_operator and scope in self.scopes


def digest(secret: str) -> str:
    """Make what is kept of a secret; it is too long to be guessed, so this may be quick."""
    return hashlib.sha256(secret.encode()).hexdigest()
