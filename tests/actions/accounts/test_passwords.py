"""Passwords: what is kept of them, and what is not let pass."""

import pytest

from backburner.actions.accounts.passwords import hash_password, is_password


async def test_what_is_kept_is_slow_to_guess_and_never_the_same_twice() -> None:
    kept = [await hash_password("three words or more") for _ in range(2)]

    assert all(one.startswith("$argon2id$v=19$m=65536,t=3,p=1$") for one in kept)
    assert kept[0] != kept[1]
    assert await is_password("three words or more", kept[0])
    assert not await is_password("three words or less", kept[0])


@pytest.mark.parametrize("kept", [None, "", "none", "$argon2id$v=19$m=65536"])
@pytest.mark.parametrize("password", ["", "three words or more"])
async def test_without_one_nothing_is_right(kept: str | None, password: str) -> None:
    assert not await is_password(password, kept)
