"""Passwords: hashed slowly on purpose, in threads of their own, and only a few at a time."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from backburner.core.passwords import HashCost

_threads = ThreadPoolExecutor(2, thread_name_prefix="passwords")


async def hash_password(password: str, cost: HashCost) -> str:
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_threads, _hasher(cost).hash, password)


async def verify_password(password: str, kept: str | None, cost: HashCost) -> bool:
    """Tell whether it is the one; where none is kept it takes just as long to say no."""
    loop = asyncio.get_running_loop()
    fits = await loop.run_in_executor(_threads, _verify, password, kept, cost)
    return fits and bool(kept)


def _verify(password: str, kept: str | None, cost: HashCost) -> bool:
    try:
        return _hasher(cost).verify(kept or _nobodys(cost), password)
    except (VerificationError, InvalidHashError):
        return False


@cache
def _hasher(cost: HashCost) -> PasswordHasher:
    return PasswordHasher(time_cost=cost.rounds, memory_cost=cost.memory_kib, parallelism=1)


@cache
def _nobodys(cost: HashCost) -> str:
    return _hasher(cost).hash("")
