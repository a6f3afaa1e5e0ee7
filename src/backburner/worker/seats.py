"""Seats: how many runs there may be at once in this process, in all and for each engine."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from backburner.core.run import RunKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Seats:
    """Where there are several, one is kept for chat."""

    total: int
    #: For each engine, and what it is called where a conversation names none.
    per_profile: Mapping[str, int] = field(default_factory=dict)
    default_profile: str = ""
    #: Whether this machine has room for one more run with an engine, beside so many.
    has_room: Callable[[str, int], bool] = lambda _name, _runs: True
    #: Only replies are given.
    chat_only: bool = False

    def profile(self, name: str) -> str:
        return name or self.default_profile

    def free(self, kind: RunKind, taken: Iterable[str]) -> int:
        """Count the seats that a run of this kind may take."""
        if self.chat_only and kind is RunKind.BACKGROUND:
            return 0
        kept = 1 if kind is RunKind.BACKGROUND and self.total > 1 else 0
        return max(0, self.total - kept - len(list(taken)))

    def full_profiles(self, kind: RunKind, taken: Iterable[str]) -> tuple[str, ...]:
        """Find the engines that have no seat left for a run of this kind."""
        used = Counter(self.profile(name) for name in taken)
        names = []
        for name, count in sorted(self.per_profile.items()):
            kept = 1 if kind is RunKind.BACKGROUND and count > 1 else 0
            # One may always be tried: otherwise nothing would ever be.
            no_room = used[name] > 0 and not self.has_room(name, used[name])
            if no_room or used[name] >= count - kept:
                names += [name, ""] if name == self.default_profile else [name]
        return tuple(sorted(names))
