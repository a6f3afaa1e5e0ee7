"""Signing in: how long it takes says nothing of who there is."""

from collections.abc import Callable
from statistics import median
from time import process_time

from support.people import people
from support.stage.make import OPERATOR
from support.stage.stage import Stage

from backburner.actions.accounts import sign_in, users
from backburner.core.accounts import Role
from backburner.core.passwords import DEFAULT_HASH_COST

#: Enough for a steady middle, and fewer than lead to a wait.
ROUNDS = 3


async def test_an_attempt_takes_as_long_whether_there_is_anybody_or_not(
    set_up: Callable[..., Stage],
) -> None:
    stage = set_up(password_cost=DEFAULT_HASH_COST)
    await people.add(stage)
    await users.add(stage.deps, actor=OPERATOR, login="eve", name="", role=Role.MEMBER)
    # By the time of the processor: others may use it as well.
    times = dict[str, list[float]]()
    for attempt in range(ROUNDS + 1):
        for login in ("ada", "eve", "nobody"):
            began = process_time()
            address = f"192.0.2.{attempt}"
            tried = await sign_in.sign_in(stage.deps, login, "wrong words", address=address)
            times.setdefault(login, []).append(process_time() - began)
            assert tried is None

    # The first of each is left out: something is made only then.
    usual = {login: median(taken[1:]) for login, taken in times.items()}
    for login in ("eve", "nobody"):
        assert 0.5 < usual[login] / usual["ada"] < 2, usual
