"""The vault: a key for each user and one for the install, wrapped by a master key.

The key of the install is made first, and says which master key is in use: the keys of users are
wrapped by that one. It is held while one is made, so that a rotation finds them all.
"""

from collections import Counter
from collections.abc import Sequence

from backburner.core.errors import Conflict, SecretDamaged, VaultLocked
from backburner.core.ids import UserId
from backburner.ports import RotationStart, Secrets, VaultStatus
from backburner.vault.master_keys import MasterKey, MasterKeys, key_id_of

BRING_KEY = "Bring it: docs/how-to/secrets.md."


class SealingVault:
    """`is_shared`: other machines use the same database, and have master keys of their own."""

    def __init__(self, master_keys: MasterKeys, *, is_shared: bool = False) -> None:
        self._master_keys = master_keys
        self._is_shared = is_shared

    def put(self, secrets: Secrets, owner: UserId | None, name: str, secret: bytes) -> None:
        secrets.put(owner, name, self._seal(secrets, owner, name, secret))

    def add(self, secrets: Secrets, owner: UserId | None, name: str, secret: bytes) -> bool:
        return secrets.add(owner, name, self._seal(secrets, owner, name, secret))

    def load(self, secrets: Secrets, owner: UserId | None, name: str) -> bytes | None:
        from backburner.vault import envelope  # noqa: PLC0415

        sealed = secrets.load(owner, name)
        if sealed is None:
            return None
        wrapped = secrets.load_key(owner)
        if wrapped is None:
            raise SecretDamaged("The key of a stored secret is gone.", permanent=True)
        secret = envelope.open_secret(self._unwrap(owner, wrapped), owner, name, sealed)
        if secret is None:
            raise SecretDamaged(permanent=True)
        return secret

    def check(self, secrets: Secrets) -> None:
        own = secrets.load_key(None)
        if own is not None:
            self._find(key_id_of(own))

    def status(self, secrets: Secrets) -> VaultStatus:
        wrapped = dict(secrets.all_keys())
        own = wrapped.get(None)
        current = "" if own is None else key_id_of(own)
        problem = hint = ""
        ids = list[str]()
        try:
            ids = [key.id for key in self._master_keys.reload()]
        except VaultLocked as error:
            problem, hint = error.message, error.hint
        locked = (
            key_id_of(one)
            for owner, one in wrapped.items()
            if problem or not self._opens(owner, one)
        )
        return VaultStatus(
            source=self._master_keys.source,
            master_keys=ids,
            current=current,
            users=len(wrapped.keys() - {None}),
            locked=dict(Counter(locked)),
            problem=problem,
            hint=hint,
        )

    def begin_rotation(self, secrets: Secrets) -> RotationStart:
        own = secrets.lock_key(None)
        if own is None:
            raise Conflict("Nothing is sealed yet, so there is no key to rotate.")
        # Before a key is made that could not take over.
        self._unwrap(None, own)
        waits = False
        with self._master_keys.changing_file():
            primary = self._master_keys.reload()[0]
            if primary.id == key_id_of(own) and not self._wrapped_otherwise(secrets, primary):
                primary, waits = self._master_keys.add_primary(), self._is_shared
        if waits:
            return RotationStart(new=primary.id, waits_for_hosts=True)
        # From now on it wraps the keys of new users: those made with the former one are listed.
        secrets.put_key(None, self._wrap(primary, None, own))
        return RotationStart(new=primary.id, owners=self._wrapped_otherwise(secrets, primary))

    def rewrap(self, secrets: Secrets, owner: UserId) -> None:
        # Held as when a key is made: another rotation may have begun.
        own, wrapped = secrets.hold_key(None), secrets.lock_key(owner)
        # Their user may have been erased.
        if own is not None and wrapped is not None:
            secrets.put_key(owner, self._wrap(self._find(key_id_of(own)), owner, wrapped))

    def end_rotation(self, secrets: Secrets) -> Sequence[str]:
        with self._master_keys.changing_file():
            return self._master_keys.keep({key_id_of(one) for _, one in secrets.all_keys()})

    def forget_locked(self, secrets: Secrets) -> int:
        # Raises if the master keys cannot be read, for then all of them seem to be missing.
        self._master_keys.reload()
        locked = [owner for owner, one in secrets.all_keys() if not self._opens(owner, one)]
        for owner in locked:
            secrets.forget(owner)
        return len(locked)

    def _seal(self, secrets: Secrets, owner: UserId | None, name: str, secret: bytes) -> bytes:
        from backburner.vault import envelope  # noqa: PLC0415 (loads cryptography)

        wrapped = secrets.load_key(owner) or self._make_key(secrets, owner)
        return envelope.seal_secret(self._unwrap(owner, wrapped), owner, name, secret)

    def _make_key(self, secrets: Secrets, owner: UserId | None) -> bytes:
        """Make the key of an owner; return the one that there is now."""
        from backburner.vault import envelope  # noqa: PLC0415

        own = secrets.hold_key(None) or self._make_own_key(secrets)
        # Not only its id: another machine may have another key of that name.
        self._unwrap(None, own)
        if owner is None:
            return own
        wrapped = envelope.wrap(self._find(key_id_of(own)), owner, envelope.make_data_key())
        return wrapped if secrets.add_key(owner, wrapped) else _existing(secrets.load_key(owner))

    def _make_own_key(self, secrets: Secrets) -> bytes:
        from backburner.vault import envelope  # noqa: PLC0415

        # The empty key keeps other machines waiting until this one has made a master key, if there
        # is none. They do not make another one then, for a database has one at a time.
        if not secrets.add_key(None, b""):
            return _existing(secrets.hold_key(None))
        master = self._first_master_key(secrets)
        wrapped = envelope.wrap(master, None, envelope.make_data_key())
        secrets.put_key(None, wrapped)
        return wrapped

    def _first_master_key(self, secrets: Secrets) -> MasterKey:
        if known := self._master_keys.reload():
            return known[0]
        for owner, wrapped in secrets.all_keys():
            if owner is not None:
                self._find(key_id_of(wrapped))
        return self._master_keys.make()

    def _wrap(self, master: MasterKey, owner: UserId | None, wrapped: bytes) -> bytes:
        """Wrap a key anew."""
        from backburner.vault import envelope  # noqa: PLC0415

        return envelope.wrap(master, owner, self._unwrap(owner, wrapped))

    def _unwrap(self, owner: UserId | None, wrapped: bytes) -> bytes:
        from backburner.vault import envelope  # noqa: PLC0415

        master = self._find(key_id_of(wrapped))
        key = envelope.unwrap(master, owner, wrapped)
        if key is None:
            raise VaultLocked(
                f"The master key {master.id} in {self._master_keys.source} does not open the key of"
                " this owner: it is another one of that name, or the key was changed.",
                hint=BRING_KEY,
                permanent=True,
            )
        return key

    def _opens(self, owner: UserId | None, wrapped: bytes) -> bool:
        try:
            self._unwrap(owner, wrapped)
        except VaultLocked:
            return False
        return True

    def _find(self, key_id: str) -> MasterKey:
        found = self._master_keys.find(key_id)
        if found is None:
            raise VaultLocked(
                f"The secrets in the database are sealed with the master key {key_id}, which is not"
                f" in {self._master_keys.source}.",
                hint=BRING_KEY,
                permanent=True,
            )
        return found

    def _wrapped_otherwise(self, secrets: Secrets, primary: MasterKey) -> Sequence[UserId]:
        """List the users whose keys another master key wraps, among those that can be opened."""
        return [
            owner
            for owner, wrapped in secrets.all_keys()
            if owner is not None
            and key_id_of(wrapped) != primary.id
            and self._opens(owner, wrapped)
        ]


def _existing(wrapped: bytes | None) -> bytes:
    if wrapped is None:
        raise SecretDamaged(
            "The key of a secret is gone: its owner was just erased.", permanent=True
        )
    return wrapped
