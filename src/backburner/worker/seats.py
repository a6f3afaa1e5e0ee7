"""Seats: the max concurrent runs of this process, in total and per profile."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from backburner.core.run import RunKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Seats:
    """With more than one seat, the last one is reserved for replies.

    Of two or more that are left for background work, long runs leave one to short runs, in total
    and of each profile: scheduled work does not wait until they have ended.
    """

    total: int
    #: Max runs by profile; conversations without one use `default_profile`.
    per_profile: Mapping[str, int] = field(default_factory=dict)
    default_profile: str = ""
    #: Checks whether the machine has memory for one more run of a profile beside this many.
    has_room: Callable[[str, int], bool] = lambda _name, _runs: True
    #: Background work is disabled.
    chat_only: bool = False

    def profile(self, name: str) -> str:
        return name or self.default_profile

    def free(self, kind: RunKind, taken: Iterable[str]) -> int:
        """Count the free seats for a run of this kind."""
        if self.chat_only and kind is RunKind.BACKGROUND:
            return 0
        reserved = 1 if kind is RunKind.BACKGROUND and self.total > 1 else 0
        return max(0, self.total - reserved - len(list(taken)))

    def short_profiles(self, taken_by_long: Iterable[str]) -> tuple[str, ...]:
        """List the profiles that may have no further long run: the seat left is for short ones."""
        used = Counter(self.profile(name) for name in taken_by_long)
        names = []
        for name, count in sorted(self.per_profile.items()):
            if _is_left_to_short(count, used[name]):
                names += [name, ""] if name == self.default_profile else [name]
        return tuple(sorted(names))

    def is_short_only(self, taken_by_long: Iterable[str]) -> bool:
        """Whether no profile may have a further long run."""
        return _is_left_to_short(self.total, len(list(taken_by_long)))

    def full_profiles(self, kind: RunKind, taken: Iterable[str]) -> tuple[str, ...]:
        """List the profiles without a free seat for a run of this kind."""
        used = Counter(self.profile(name) for name in taken)
        names = []
        for name, count in sorted(self.per_profile.items()):
            reserved = 1 if kind is RunKind.BACKGROUND and count > 1 else 0
            # The first run is always allowed, or a profile could never run.
            no_room = used[name] > 0 and not self.has_room(name, used[name])
            if no_room or used[name] >= count - reserved:
                names += [name, ""] if name == self.default_profile else [name]
        return tuple(sorted(names))


def _is_left_to_short(count: int, taken_by_long: int) -> bool:
    """Whether of so many seats, long runs have taken all that they may take."""
    for_work = count - 1 if count > 1 else count
    return for_work > 1 and taken_by_long >= for_work - 1
