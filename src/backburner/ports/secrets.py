"""The vault: secrets of users and of the install, sealed, and the keys that seal them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from backburner.core.ids import UserId


class Secrets(Protocol):
    """Sealed secrets, and the wrapped keys that seal them. Owner None: the install's own."""

    def load(self, owner: UserId | None, name: str) -> bytes | None: ...
    def put(self, owner: UserId | None, name: str, sealed: bytes) -> None: ...
    def add(self, owner: UserId | None, name: str, sealed: bytes) -> bool:
        """Add a secret; False: there is one of that name, perhaps added by another transaction."""

    def remove(self, owner: UserId | None, prefix: str) -> None:
        """Delete the secrets whose name begins with the prefix."""

    def find(self, prefix: str, *, owner: UserId | None = None) -> Sequence[tuple[UserId, str]]:
        """List secrets of a user whose name begins with the prefix; None: those of all users."""

    def load_key(self, owner: UserId | None) -> bytes | None: ...
    def hold_key(self, owner: UserId | None) -> bytes | None:
        """Load a wrapped key that no other transaction changes before this one ends."""

    def lock_key(self, owner: UserId | None) -> bytes | None:
        """Load a wrapped key to change it; waits for the transactions that hold it."""

    def add_key(self, owner: UserId | None, wrapped: bytes) -> bool:
        """Add the first key of an owner; False: another transaction has just added one."""

    def put_key(self, owner: UserId | None, wrapped: bytes) -> None: ...
    def all_keys(self) -> Sequence[tuple[UserId | None, bytes]]:
        """List the wrapped keys, that of the install first."""

    def forget(self, owner: UserId | None) -> None:
        """Delete the key of an owner, and all secrets that it seals."""


class Vault(Protocol):
    """Seals secrets with a key of their owner, which a master key wraps.

    Raises `VaultLocked` if the master key is missing or is another one, and `SecretDamaged` if a
    secret is not what was sealed for this owner under this name.
    """

    def put(self, secrets: Secrets, owner: UserId | None, name: str, secret: bytes) -> None: ...
    def add(self, secrets: Secrets, owner: UserId | None, name: str, secret: bytes) -> bool:
        """Seal a secret unless there is one of that name; of several at once the first wins."""

    def load(self, secrets: Secrets, owner: UserId | None, name: str) -> bytes | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultStatus:
    """Whether the secrets in the database can be opened here."""

    #: Where the master keys come from: the name of a variable, or the path of a file.
    source: str
    #: The ids of the master keys that are here; the first is the primary one.
    master_keys: Sequence[str] = ()
    #: The id of the master key that wraps new keys; empty until the vault is used.
    current: str = ""
    #: How many users have secrets.
    users: int = 0
    #: By the id of a master key that is missing, or is another one: how many keys it wraps.
    locked: Mapping[str, int] = field(default_factory=dict)
    #: Why the master keys cannot be read; empty: they can.
    problem: str = ""
    hint: str = ""

    @property
    def is_open(self) -> bool:
        return not self.problem and not self.locked


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationStart:
    """The work of a rotation."""

    #: The id of the master key that is going to wrap all keys.
    new: str
    #: A new master key was written to a file, which the other hosts need first.
    waits_for_hosts: bool = False
    #: The users whose keys are wrapped by another one.
    owners: Sequence[UserId] = ()


class VaultKeys(Protocol):
    """The keys of a vault, for operators. Raises as `Vault`."""

    def check(self, secrets: Secrets) -> None:
        """Raise `VaultLocked` unless the master key in use is here; no secret is opened."""

    def status(self, secrets: Secrets) -> VaultStatus: ...
    def begin_rotation(self, secrets: Secrets) -> RotationStart:
        """Make a new master key, or continue with one that wraps nothing or not all yet.

        Wraps the key of the install by it.
        """

    def rewrap(self, secrets: Secrets, owner: UserId) -> None:
        """Wrap the key of a user by the master key that wraps the key of the install."""

    def end_rotation(self, secrets: Secrets) -> Sequence[str]:
        """Delete the master keys in the file that wrap nothing any more; return their ids."""

    def forget_locked(self, secrets: Secrets) -> int:
        """Delete the secrets that no master key here can open, with their keys; return whose."""
