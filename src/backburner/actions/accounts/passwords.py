"""Password hashing with Argon2, in its own threads and with limited concurrency."""

import asyncio
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from backburner.core.passwords import HashCost

_threads = ThreadPoolExecutor(2, thread_name_prefix="passwords")


async def hash_password(password: str, cost: HashCost) -> str:
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_threads, _hasher(cost).hash, _normalize(password))


async def verify_password(password: str, stored_hash: str | None, cost: HashCost) -> bool:
    """Check a password. Without a stored hash this takes as long, to hide whether one exists."""
    loop = asyncio.get_running_loop()
    matches = await loop.run_in_executor(_threads, _verify, password, stored_hash, cost)
    return matches and bool(stored_hash)


def _verify(password: str, stored_hash: str | None, cost: HashCost) -> bool:
    try:
        return _hasher(cost).verify(stored_hash or _dummy_hash(cost), _normalize(password))
    except (VerificationError, InvalidHashError):
        return False


def _normalize(password: str) -> str:
    # Keyboards write an accented letter as one character or as two.
    return unicodedata.normalize("NFC", password)


@cache
def _hasher(cost: HashCost) -> PasswordHasher:
    return PasswordHasher(time_cost=cost.rounds, memory_cost=cost.memory_kib, parallelism=1)


@cache
def _dummy_hash(cost: HashCost) -> str:
    return _hasher(cost).hash("")
