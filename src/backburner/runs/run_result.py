"""The result of a run: what it is for, and what became of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from backburner.core.conversation import Session
from backburner.core.ids import ConversationId
from backburner.core.outcome import Outcome
from backburner.core.run import Failure, Item, ItemKind
from backburner.core.tool_journal import JournalEntry
from backburner.core.work.summary import NewSummary


@dataclass(slots=True, kw_only=True)
class RunResult:
    """The result of a run, filled in while it is performed."""

    items: Sequence[Item]
    #: Items it served before it was handed back.
    served_before: Sequence[Item] = ()
    #: Calls of earlier attempts that handed files over: their message may not have been written.
    hand_overs_before: Sequence[JournalEntry] = ()
    zone: str
    root: ConversationId
    #: None: it could not be prepared.
    claimed_at: datetime | None = None
    #: What the agent was told at first.
    prompt: str = ""
    text: str = ""
    outcome: Outcome | None = None
    failure: Failure | None = None
    #: The agent ended its turn properly.
    is_done: bool = False
    #: The profile in use, and the one that failed before.
    profile: str = ""
    #: Profiles that it used with a key of the user's own.
    own_keys: set[str] = field(default_factory=set)
    #: Messages asked for the profile: the conversation keeps its own, and its session.
    is_for_one_run: bool = False
    escalated_from: str | None = None
    #: The model of its own profile has answered; None: it was under no other.
    own_model_answered: bool | None = None
    #: The agent's session, and its new entries.
    session: Session | None = None
    entries: list[str] = field(default_factory=list)
    #: Why the previous session was not resumed, in words for the user.
    session_note: str | None = None
    #: Written at the end of a session that has become too long.
    summary: NewSummary | None = None

    def remember(self, session_id: str, entries: Sequence[str], tokens: int | None) -> None:
        if tokens is None:
            tokens = self.session.tokens if self.session else 0
        self.session = Session(self.profile, session_id, tokens)
        self.entries += entries

    @property
    def all_items(self) -> Sequence[Item]:
        """Return all items that the run is for, also from before it was handed back."""
        return [*self.served_before, *self.items]

    @property
    def events(self) -> Sequence[Item]:
        return [item for item in self.all_items if item.kind is ItemKind.EVENT]

    @property
    def is_unattended(self) -> bool:
        """Whether nobody waits for it: it is a reply to results of jobs."""
        items = self.all_items
        return bool(items) and all(item.kind is ItemKind.JOB_RESULT for item in items)
