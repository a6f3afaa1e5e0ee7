"""The selection of the conversation list: all, those of a filter, or what a search finds."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlencode

from backburner.core.ids import ConversationId
from backburner.core.work.list_states import ListState
from backburner.ports import ConversationFilter


class ListFilter(StrEnum):
    NEEDS_YOU = "needs_you"
    WORKING = "working"
    SCHEDULED = "scheduled"
    PAUSED = "paused"
    FAILED = "failed"
    UNREAD = "unread"
    ARCHIVED = "archived"


@dataclass(frozen=True, slots=True)
class ListQuery:
    """The chosen filter and the words of the search."""

    chosen: ListFilter | None = None
    search: str = ""

    @property
    def has_groups_of_children(self) -> bool:
        """Children stand under their parent, and not on their own."""
        return not self.search and self.chosen in (None, ListFilter.ARCHIVED)

    @property
    def parameters(self) -> str:
        """Write it as the end of an address."""
        given = {"state": self.chosen.value if self.chosen else "", "q": self.search}
        return urlencode({name: value for name, value in given.items() if value})

    def conditions(
        self, *, pinned: bool | None = None, among: Sequence[ConversationId] | None = None
    ) -> ConversationFilter:
        is_mark = self.chosen in (None, ListFilter.UNREAD, ListFilter.ARCHIVED)
        return ConversationFilter(
            archived=self.chosen is ListFilter.ARCHIVED,
            state=None if is_mark else ListState(str(self.chosen)),
            unread=True if self.chosen is ListFilter.UNREAD else None,
            pinned=pinned,
            among=among,
            search=self.search or None,
            top_level=self.has_groups_of_children,
        )
