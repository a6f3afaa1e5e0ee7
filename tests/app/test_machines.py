"""Whether this machine has room for one more program of an agent."""

import pytest

from backburner.app.machines import ONE_CLAUDE, RESERVE, fits_one_more


@pytest.mark.parametrize("starting", [0, 1, 4])
def test_what_is_starting_takes_its_room_before_it_fills_it(starting: int) -> None:
    enough = (starting + 1) * ONE_CLAUDE + RESERVE

    assert fits_one_more(enough, starting=starting)
    assert not fits_one_more(enough - 1, starting=starting)


def test_where_nobody_knows_how_much_is_free_there_is_room() -> None:
    assert fits_one_more(None, starting=9)
