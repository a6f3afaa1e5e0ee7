"""How many runs there may be at once, in all and for each engine; one seat is kept for chat."""

import pytest

from backburner.core.run import RunKind
from backburner.worker.seats import Seats

REPLY, WORK = RunKind.REPLY, RunKind.BACKGROUND
SEATS = Seats(total=5, per_profile={"claude": 3, "local": 1}, default_profile="claude")


@pytest.mark.parametrize(
    ("total", "taken", "for_reply", "for_work"),
    [(5, 0, 5, 4), (5, 3, 2, 1), (5, 4, 1, 0), (5, 5, 0, 0), (1, 0, 1, 1), (1, 1, 0, 0)],
)
def test_work_leaves_a_seat_where_there_are_several(
    total: int, taken: int, for_reply: int, for_work: int
) -> None:
    seats = Seats(total=total)

    assert seats.free(REPLY, [""] * taken) == for_reply
    assert seats.free(WORK, [""] * taken) == for_work


@pytest.mark.parametrize(
    ("taken", "for_reply", "for_work"),
    [
        ([], (), ()),
        (["local"], ("local",), ("local",)),
        (["", "claude"], (), ("", "claude")),
        (["", "claude", ""], ("", "claude"), ("", "claude")),
        (["", "claude", "", "local"], ("", "claude", "local"), ("", "claude", "local")),
        (["other"] * 4, (), ()),
    ],
)
def test_an_engine_is_full_when_its_own_seats_are_taken(
    taken: list[str], for_reply: tuple[str, ...], for_work: tuple[str, ...]
) -> None:
    assert SEATS.full_profiles(REPLY, taken) == for_reply
    assert SEATS.full_profiles(WORK, taken) == for_work


@pytest.mark.parametrize(
    ("long", "short_profiles", "short_only"),
    [
        ([], (), False),
        # Two of the three seats of its engine are for work, and one of them for short runs.
        (["claude"], ("", "claude"), False),
        ([""], ("", "claude"), False),
        # An engine with one seat for work gives it to any run.
        (["local"], (), False),
        (["other"] * 3, (), True),
        (["local", "", "other"], ("", "claude"), True),
    ],
)
def test_long_runs_leave_a_seat_to_short_ones(
    long: list[str], short_profiles: tuple[str, ...], *, short_only: bool
) -> None:
    assert SEATS.short_profiles(long) == short_profiles
    assert SEATS.is_short_only(long) == short_only


@pytest.mark.parametrize("total", [1, 2])
def test_a_single_seat_for_work_is_given_to_long_runs_too(total: int) -> None:
    seats = Seats(total=total, per_profile={"claude": total})

    assert not seats.is_short_only([])
    assert seats.short_profiles([]) == ()


def test_where_background_work_is_switched_off_only_chat_has_seats() -> None:
    seats = Seats(total=5, chat_only=True)

    assert (seats.free(REPLY, []), seats.free(WORK, [])) == (5, 0)


def seats_on_a_full_machine() -> Seats:
    """Have many seats for both engines, but no memory for one more run with `claude`."""
    return Seats(
        total=9,
        per_profile={"claude": 5, "local": 5},
        default_profile="claude",
        has_room=lambda name, _: name != "claude",
    )


@pytest.mark.parametrize("kind", RunKind)
def test_an_engine_is_full_where_the_machine_has_no_room_beside_what_runs(kind: RunKind) -> None:
    seats = seats_on_a_full_machine()

    assert seats.full_profiles(kind, ["claude"]) == ("", "claude")
    assert seats.full_profiles(kind, ["", "local"]) == ("", "claude")


@pytest.mark.parametrize("kind", RunKind)
def test_one_run_with_an_engine_is_always_allowed(kind: RunKind) -> None:
    seats = seats_on_a_full_machine()

    assert seats.full_profiles(kind, []) == ()
    assert seats.full_profiles(kind, ["local", "local"]) == ()


def test_whether_there_is_room_is_asked_with_the_runs_there_are() -> None:
    seats = Seats(
        total=9,
        per_profile={"claude": 9},
        default_profile="claude",
        has_room=lambda _, runs: runs < 2,
    )

    assert seats.full_profiles(REPLY, ["claude", "local"]) == ()
    assert seats.full_profiles(REPLY, ["claude", "local", ""]) == ("", "claude")
