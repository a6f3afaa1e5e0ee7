"""Master keys: from a variable, or from a file, which the first use makes if there is none.

They never enter the database. The file is replaced as a whole, so that a process which dies leaves
either the old or the new one.
"""

import base64
import binascii
import fcntl
import os
import re
import secrets
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from backburner.core.errors import BadSetting, Conflict, VaultLocked
from backburner.private_file import write_private_file

#: The variable that gives keys, as operators know it.
VARIABLE = "BACKBURNER_MASTER_KEYS"
KEY_FILE = "master_keys"
KEY_BYTES = 32
MAKE_ONE = "echo NAME:$(openssl rand -base64 32)"
#: Access that others must not have. A file that the operator names may be for a group to read.
_OWN_FILE, _NAMED_FILE = 0o077, 0o027
_HEADER = """\
# The master keys of Backburner's vault; the first is the primary one. Keep a copy of this file,
# apart from backups of the database: without it nobody can open the secrets in them.
"""


@dataclass(frozen=True, slots=True)
class MasterKey:
    id: str
    secret: bytes = field(repr=False)


def parse_master_keys(text: str, source: str) -> tuple[MasterKey, ...]:
    """Read keys as ID:BASE64, separated by commas or line breaks; errors quote none of them."""
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
    words = re.split(r"[,\s]+", "\n".join(lines))
    keys = tuple(_parse(word, source) for word in words if word)
    ids = [key.id for key in keys]
    if twice := sorted({one for one in ids if ids.count(one) > 1}):
        raise BadSetting(
            f"{source} has two master keys with the id {twice[0]}.", hint="Give each its own id."
        )
    return keys


def key_id_of(wrapped: bytes) -> str:
    """Return the id of the master key that wraps a data key; empty if it cannot be read."""
    return wrapped[2 : 2 + wrapped[1]].decode("ascii", "replace") if len(wrapped) > 1 else ""


def wrapped_key_of(wrapped: bytes) -> bytes:
    return wrapped[2 + wrapped[1] :]


def to_text(key: MasterKey) -> str:
    """Return the secret as it is in a file or variable."""
    return base64.b64encode(key.secret).decode()


def _parse(word: str, source: str) -> MasterKey:
    key_id, _, encoded = word.partition(":")
    try:
        secret = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        secret = b""
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,40}", key_id) or len(secret) != KEY_BYTES:
        raise BadSetting(
            f"{source} has a master key that is not ID:BASE64 of {KEY_BYTES} bytes.",
            hint=f"Make one: {MAKE_ONE}",
        )
    return MasterKey(key_id, secret)


class MasterKeys:
    """The master keys of this machine: those that were given, else those in a file.

    The operator may name the file, which then exists; `own` is made at the first use. `redact` is
    called with values that must not appear in any output.
    """

    def __init__(
        self,
        own: Path,
        *,
        given: Sequence[MasterKey] = (),
        named: Path | None = None,
        redact: Callable[[Sequence[str]], None] = lambda _values: None,
    ) -> None:
        self._given = tuple(given)
        self._path = named or own
        self._is_named = named is not None
        self._redact = redact
        self._known: tuple[MasterKey, ...] | None = self._given or None

    @property
    def source(self) -> str:
        return VARIABLE if self._given else str(self._path)

    def all(self) -> tuple[MasterKey, ...]:
        """Return the keys, the primary one first; empty if there is no file yet."""
        return self.reload() if self._known is None else self._known

    def find(self, key_id: str) -> MasterKey | None:
        """Find a key; the file is read again if it is unknown, because it may have been brought."""
        return _find(self.all(), key_id) or _find(self.reload(), key_id)

    def reload(self) -> tuple[MasterKey, ...]:
        known = self._given or self._read()
        # Nothing is known of a file that will be made.
        self._known = known or None
        return known

    def make(self) -> MasterKey:
        """Make the file with a first key; return the primary key that there is now."""
        if self._is_named:
            raise self._locked("has no master key", f"Write one into it: {MAKE_ONE}")
        # Another process of this machine may just have made it.
        with suppress(FileExistsError):
            self._write((_new_key(),), overwrite=False)
        return self.reload()[0]

    def add_primary(self) -> MasterKey:
        """Put a new key before the others in the file."""
        if self._given:
            raise Conflict(
                f"{VARIABLE} has no new master key.",
                hint=f"Put one before the others, for all processes, and restart them: {MAKE_ONE}",
            )
        self._write((_new_key(), *self.reload()), overwrite=True)
        return self.reload()[0]

    def keep(self, ids: Collection[str]) -> Sequence[str]:
        """Delete all keys from the file but these and the primary one; return the others' ids."""
        keys = self.reload()
        kept = tuple(key for key in keys if key.id in ids or key == keys[0])
        if self._given or kept == keys:
            return ()
        self._write(kept, overwrite=True)
        self.reload()
        return [key.id for key in keys if key not in kept]

    @contextmanager
    def changing_file(self) -> Iterator[None]:
        """Keep other processes of this machine from changing the file meanwhile."""
        if self._given:
            yield
            return
        try:
            handle = os.open(self._real_path.parent, os.O_RDONLY)
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            # A child that was just forked still has the handle.
            fcntl.flock(handle, fcntl.LOCK_UN)
            os.close(handle)

    @property
    def _real_path(self) -> Path:
        # An operator may have linked it to another place, where it is replaced.
        return Path(os.path.realpath(self._path))

    def _read(self) -> tuple[MasterKey, ...]:
        try:
            with self._path.open("rb") as file:
                mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
                text = file.read().decode("ascii")
        except FileNotFoundError:
            if self._is_named:
                raise self._locked("does not exist", "Bring it.") from None
            return ()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not text"
            raise self._locked(f"cannot be read: {reason.lower()}", "Mend it.") from None
        if mode & (_NAMED_FILE if self._is_named else _OWN_FILE):
            raise self._locked("is open to other users", f"Run: chmod 600 {self._path}")
        try:
            keys = parse_master_keys(text, f"The file {self._path}")
        except BadSetting as error:
            raise VaultLocked(error.message, hint=error.hint, permanent=True) from None
        if not keys:
            raise self._locked("has no master key", "Bring it from a copy.")
        self._redact([to_text(key) for key in keys])
        return keys

    def _write(self, keys: Sequence[MasterKey], *, overwrite: bool) -> None:
        content = _HEADER + "".join(f"{key.id}:{to_text(key)}\n" for key in keys)
        path = self._real_path
        try:
            write_private_file(path, [content.encode()], overwrite=overwrite)
            # Before anything is wrapped: a power failure must not take the key away.
            _sync(path.parent)
        except FileExistsError:
            raise
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> VaultLocked:
        reason = (error.strerror or str(error)).lower()
        return self._locked(
            f"cannot be written: {reason}", f"Write a new key before the others: {MAKE_ONE}"
        )

    def _locked(self, problem: str, hint: str) -> VaultLocked:
        return VaultLocked(
            f"The file {self._path} of the vault's master keys {problem}.",
            hint=hint,
            permanent=True,
        )


def _new_key() -> MasterKey:
    return MasterKey(secrets.token_hex(4), secrets.token_bytes(KEY_BYTES))


def _find(keys: Sequence[MasterKey], key_id: str) -> MasterKey | None:
    return next((key for key in keys if key.id == key_id), None)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
