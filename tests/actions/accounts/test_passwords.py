"""Passwords: what is kept of them, and what is not let pass."""

import pytest

from backburner.actions.accounts.passwords import hash_password, verify_password
from backburner.core.passwords import DEFAULT_HASH_COST, HashCost


async def test_what_is_kept_is_slow_to_guess_and_never_the_same_twice() -> None:
    kept = [await hash_password("three words or more", DEFAULT_HASH_COST) for _ in range(2)]

    assert all(one.startswith("$argon2id$v=19$m=65536,t=3,p=1$") for one in kept)
    assert kept[0] != kept[1]
    assert await verify_password("three words or more", kept[0], DEFAULT_HASH_COST)
    assert not await verify_password("three words or less", kept[0], DEFAULT_HASH_COST)


@pytest.mark.parametrize("kept", [None, "", "none", "$argon2id$v=19$m=65536"])
@pytest.mark.parametrize("password", ["", "three words or more"])
async def test_without_one_nothing_is_right(kept: str | None, password: str) -> None:
    assert not await verify_password(password, kept, DEFAULT_HASH_COST)


async def test_a_password_is_right_however_a_keyboard_writes_its_accents() -> None:
    cheap = HashCost(rounds=1, memory_kib=8)
    kept = await hash_password("three caf\u00e9s or more", cheap)

    assert await verify_password("three cafe\u0301s or more", kept, cheap)
    assert not await verify_password("three cafes or more", kept, cheap)
