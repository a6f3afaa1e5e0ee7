"""The activity of a run in progress: since when it runs, and what it is doing."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from backburner.core.ids import CallId, RunId
from backburner.core.run import RunKind


class Activity(StrEnum):
    CALLING = "calling"  #: A tool call is in progress.
    WRITING = "writing"
    THINKING = "thinking"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSummary:
    """A tool call, without its result."""

    id: CallId
    tool: str
    #: Its arguments in one line, without secrets.
    summary: str
    #: started, done or unknown.
    state: str
    failed: bool
    started_at: datetime
    ended_at: datetime | None

    @property
    def in_words(self) -> str:
        return f"{self.tool}: {self.summary}" if self.summary else self.tool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunActivity:
    """A run in progress."""

    run_id: RunId
    kind: RunKind
    started_at: datetime
    #: The tool call in progress, else the last one, and the number of calls so far.
    call: CallSummary | None
    calls: int
    #: When its text was last stored.
    drafted_at: datetime | None

    @property
    def activity(self) -> Activity:
        if self.call is not None and self.call.ended_at is None:
            return Activity.CALLING
        last_call_at = None if self.call is None else self.call.ended_at
        if self.drafted_at is None or (last_call_at is not None and last_call_at > self.drafted_at):
            return Activity.THINKING
        return Activity.WRITING

    @property
    def doing(self) -> str:
        """Describe in one line what it is doing."""
        activity = self.activity
        if self.call is None:
            return activity.value
        if activity is Activity.CALLING:
            return self.call.in_words
        return f"{activity}, after {self.call.in_words}"
