"""Accounts and credentials, as far as they are kept."""

from collections.abc import Iterable
from datetime import datetime
from typing import Protocol

from backburner.core.accounts import Caller, CredentialKind, Scope
from backburner.core.ids import UserId


class Accounts(Protocol):
    def identify(self, digest: str, *, now: datetime) -> Caller | None:
        """Find out whose a lasting credential is that is good now; None: nobody's."""

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
