"""Addresses of downloads, which browsers open without the page's half of their session.

An address is for one credential and one item, and for a minute. Nothing is stored: its code is
keyed with the stored digest of the credential, and covers the half of the session that browsers
send by themselves. Whoever has only that half does not know the digest, which is of both halves;
whoever has only read the database does not have that half.
"""

import hashlib
import hmac
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from backburner.actions.deps import Deps
from backburner.core.accounts import Caller, CredentialKind, Scope
from backburner.core.errors import NotAllowed, NotFound
from backburner.core.ids import UserId
from backburner.ports import Tx

ADDRESS_LIFETIME = timedelta(minutes=1)
#: Separates the parts of an address; no id has it.
_SEPARATOR = "."


class DownloadItem(StrEnum):
    EXPORT = "export"
    BACKUP = "backup"


#: The scope that an item needs, here and where it is asked for directly.
SCOPES = {DownloadItem.EXPORT: Scope.READ, DownloadItem.BACKUP: Scope.OPERATE}


@dataclass(frozen=True, slots=True)
class HeldSecret:
    """The part of a credential that comes with a plain link: the cookie, or the whole token."""

    kind: CredentialKind
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class DownloadAddress:
    #: What the address ends in.
    secret: str = field(repr=False)
    expires_at: datetime


async def make_address(
    deps: Deps, caller: Caller, item: DownloadItem, held: HeldSecret
) -> DownloadAddress:
    """Make an address under which the same credential finds an item."""
    _check_scope(caller, item)

    def work(tx: Tx) -> DownloadAddress:
        _, digest = _find(tx, caller.user, caller.credential, held)
        expires = int((tx.now + ADDRESS_LIFETIME).timestamp())
        signed = _SEPARATOR.join((caller.user, caller.credential, str(expires)))
        secret = _SEPARATOR.join((signed, _sign(digest, item, signed, held)))
        return DownloadAddress(secret, datetime.fromtimestamp(expires, UTC))

    return await deps.store.read(work)


async def check_address(
    deps: Deps, item: str, secret: str, held: HeldSecret
) -> tuple[Caller, DownloadItem]:
    """Return whose address it is, and for what. One that is wrong or expired is not found."""
    parts = secret.split(_SEPARATOR)
    if len(parts) != 4 or item not in SCOPES or not all(map(_is_plain, parts)):
        raise _not_found()
    user, credential_id, expires, code = parts

    def work(tx: Tx) -> Caller:
        caller, digest = _find(tx, UserId(user), credential_id, held)
        signed = _SEPARATOR.join((user, credential_id, expires))
        if not hmac.compare_digest(_sign(digest, item, signed, held), code):
            raise _not_found()
        if tx.now.timestamp() >= int(expires):
            raise _not_found()
        return caller

    caller = await deps.store.read(work)
    _check_scope(caller, DownloadItem(item))
    return caller, DownloadItem(item)


def _is_plain(text: str) -> bool:
    return text.isascii() and text.replace("_", "").isalnum()


def _find(tx: Tx, user: UserId, credential_id: str, held: HeldSecret) -> tuple[Caller, str]:
    found = tx.credentials.find(user, credential_id, now=tx.now)
    if found is None or found[0].kind is not held.kind:
        raise _not_found()
    return found


def _sign(digest: str, item: str, signed: str, held: HeldSecret) -> str:
    message = f"download\n{item}\n{signed}\n{held.text}"
    return hmac.new(digest.encode(), message.encode(), hashlib.sha256).hexdigest()


def _check_scope(caller: Caller, item: DownloadItem) -> None:
    if not caller.may(SCOPES[item]):
        raise NotAllowed(
            "This credential lacks a scope.", hint=f"The download needs {SCOPES[item]}."
        )


def _not_found() -> NotFound:
    return NotFound(
        "This download link has expired, or belongs to another session.",
        hint="Links work for one minute, in the browser or with the token that asked.",
    )
