"""What is a user's own, as far as it is kept: to be taken out, or to be erased."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from backburner.core.ids import ConversationId, UserId

Key = str | int


class PersonalData(Protocol):
    @property
    def parts(self) -> Sequence[str]:
        """Name what there is to take out, apart from the profile."""

    def profile(self, user: UserId) -> Mapping[str, Any]: ...
    def keys(self, user: UserId, part: str) -> Sequence[Key]:
        """List all of a part, in order."""

    def read(self, user: UserId, part: str, keys: Sequence[Key]) -> Sequence[Mapping[str, Any]]: ...
    def is_needed(self, user: UserId) -> bool:
        """See whether somebody is the last operator, and there are others."""

    def stop(self, user: UserId) -> Sequence[ConversationId]:
        """Ask all that is under way to stop, and name it; nothing new begins in the background."""

    def erase(self, user: UserId) -> None:
        """Delete a user with everything that is theirs."""
