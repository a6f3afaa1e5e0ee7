"""A job as it is shown: how it stands, what it found, and what was done to several of them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel, Field

from backburner.actions.work.jobs import JobsChanged
from backburner.api.schemas.base import example
from backburner.core.work.views import JobStatus, JobView

_JOB, _PARENT = "c_0123456789abcdefghjkmnpqrs", "c_srqpnmkjhgfedcba9876543210"
_NOON = "2026-11-16T12:00:00Z"
_ITEM = {
    "id": _JOB,
    "description": "Count the files",
    "agent": None,
    "status": "completed",
    "needs_you": False,
    "paused": False,
    "question": None,
    "parent_id": _PARENT,
    "parent_run_id": None,
    "parent_message_id": None,
    "batch": "b_0123456789abcdefghjkmnpqrs",
    "resume_count": 0,
    "created_at": _NOON,
    "completed_at": "2026-11-16T12:00:20Z",
    "retrieved_at": None,
    "calls": 2,
    "recent_tools": ["run_command", "list_files"],
    "updated_at": "2026-11-16T12:00:20Z",
}


class JobItem(BaseModel):
    """A piece of work that a conversation handed out."""

    model_config = example(**_ITEM)

    id: str
    description: str
    agent: str | None = Field(description="The profile that was asked for; null: none was.")
    status: JobStatus
    needs_you: bool = Field(description="It waits for an answer.")
    paused: bool
    question: str | None = Field(description="What it asks.")
    parent_id: str | None = Field(description="The conversation that handed it out.")
    parent_run_id: str | None
    parent_message_id: str | None = Field(description="The message it was asked for in.")
    batch: str | None = Field(description="What it shares with others of its group.")
    resume_count: int
    created_at: datetime
    completed_at: datetime | None
    retrieved_at: datetime | None = Field(description="When its parent read its result.")
    calls: int = Field(description="How many tools it has called.")
    recent_tools: Sequence[str] = Field(description="The last few, newest first.")
    updated_at: datetime = Field(description="When it was last heard of.")

    @classmethod
    def of(cls, job: JobView) -> Self:
        return cls.model_validate(job, from_attributes=True)


class JobOut(JobItem):
    """A job with what it is to do and what came of it."""

    model_config = example(
        **_ITEM,
        prompt="Count the files in the workspace.",
        result="There are 7 files.",
        data={"files": 7},
        error=None,
    )

    prompt: str
    result: str | None = Field(description="Of a completed one, in words.")
    data: Any = Field(description="Of a completed one: its bare finding, if it gave any.")
    error: str | None = Field(description="Of one that failed.")


class ChangedOut(BaseModel):
    """What became of several jobs."""

    model_config = example(done=[_ITEM], left=[], unknown=["c_gone"])

    done: Sequence[JobItem]
    left: Sequence[JobItem] = Field(description="Those for which it was not the time.")
    unknown: Sequence[str] = Field(description="What is no job of this conversation.")

    @classmethod
    def of(cls, changed: JobsChanged) -> Self:
        return cls(
            done=[JobItem.of(one) for one in changed.done],
            left=[JobItem.of(one) for one in changed.left],
            unknown=changed.unknown,
        )
