"""Passwords: hashed slowly on purpose, in threads of their own, and only a few at a time."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

#: Each takes this much memory, in KiB: who knocks often must not fill the machine.
ARGON2_MEMORY_KIB = 64 * 1024
_threads = ThreadPoolExecutor(2, thread_name_prefix="passwords")
_hasher = PasswordHasher(time_cost=3, memory_cost=ARGON2_MEMORY_KIB, parallelism=1)


async def hash_password(password: str) -> str:
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_threads, _hasher.hash, password)


async def is_password(password: str, kept: str | None) -> bool:
    """Tell whether it is the one; where none is kept it takes just as long to say no."""
    loop = asyncio.get_running_loop()
    fits = await loop.run_in_executor(_threads, _verify, password, kept)
    return fits and bool(kept)


def _verify(password: str, kept: str | None) -> bool:
    try:
        return _hasher.verify(kept or _nobodys(), password)
    except (VerificationError, InvalidHashError):
        return False


@cache
def _nobodys() -> str:
    return _hasher.hash("")
