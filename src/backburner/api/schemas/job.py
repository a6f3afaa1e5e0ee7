"""Jobs: work that a conversation delegates."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field

from backburner.actions.work.jobs import MAX_JOBS_PER_CALL, JobRequest, JobsChanged
from backburner.api.schemas.base import RequestBody, check_id, example
from backburner.api.schemas.conversation import RunTimeout
from backburner.api.schemas.run import ProgressOut, RunningField
from backburner.api.schemas.work.connection import ConnectionNames, ConnectionNamesOut
from backburner.api.schemas.work.folder import FolderName
from backburner.core.conversation import MAX_TITLE_CHARS
from backburner.core.ids import ConversationId
from backburner.core.run import Progress
from backburner.core.work.agents import BUILT_IN, Agent
from backburner.core.work.jobs import MAX_BATCH_CHARS
from backburner.core.work.views import JobStatus, JobView

_JOB, _PARENT = "c_0123456789abcdefghjkmnpqrs", "c_srqpnmkjhgfedcba9876543210"
_NOON = "2026-11-16T12:00:00Z"
_SUMMARY = {
    "id": _JOB,
    "description": "Count the files",
    "agent": None,
    "folder": None,
    "connections": ["mail"],
    "timeout": 3600.0,
    "status": "completed",
    "needs_you": False,
    "paused": False,
    "waits_for": None,
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
    "progress": None,
    "updated_at": "2026-11-16T12:00:20Z",
    "running": None,
}

Parent = Annotated[
    ConversationId, AfterValidator(check_id), Field(description="The conversation's id.")
]


def _to_seconds(duration: object) -> object:
    return duration.total_seconds() if isinstance(duration, timedelta) else duration


def _to_progress(progress: object) -> object:
    return ProgressOut.of(progress) if isinstance(progress, Progress) else progress


Seconds = Annotated[float | None, BeforeValidator(_to_seconds)]


class NewJobBody(RequestBody):
    """A job of a conversation, which receives the result."""

    model_config = example(
        conversation=_PARENT, description="Count the files", prompt="Count the files here."
    )

    conversation: Parent
    description: str = Field(min_length=1, max_length=MAX_TITLE_CHARS, description="A short name.")
    prompt: str = Field(min_length=1, description="Complete instructions; a job has no history.")
    agent: str | None = Field(
        default=None, description="An agent or a profile; null: as in the conversation."
    )
    timeout: RunTimeout | None = Field(
        default=None, description="Of a run, in seconds; null: the default of jobs."
    )
    folder: FolderName = None
    connections: ConnectionNames = None
    batch: str = Field(
        default="", max_length=MAX_BATCH_CHARS, description="The group; empty: a new one."
    )

    def request(self) -> JobRequest:
        return JobRequest(
            description=self.description,
            prompt=self.prompt,
            agent=self.agent or None,
            folder=self.folder,
            connections=self.connections,
            timeout=None if self.timeout is None else timedelta(seconds=self.timeout),
        )


class AgentOut(BaseModel):
    """An agent: what is asked of a model, and what it may use."""

    model_config = example(
        name="researcher",
        instructions="You find things out, and change nothing.",
        tools=["read_file", "list_files"],
        profile=None,
        built_in=True,
    )

    name: str
    instructions: str
    tools: Sequence[str] | None = Field(
        description="The only tools it may use; null: all that the work may use."
    )
    profile: str | None = Field(description="The profile it uses; null: that of the work.")
    built_in: bool

    @classmethod
    def of(cls, agent: Agent) -> Self:
        return cls(
            name=agent.name,
            instructions=agent.instructions,
            tools=agent.tools,
            profile=agent.profile,
            built_in=BUILT_IN.get(agent.name) == agent,
        )


class JobFollowUpBody(RequestBody):
    model_config = example(message="And how many of them are empty?")

    message: str = Field(min_length=1, description="Further instructions, or a question.")


class JobSelectionBody(RequestBody):
    """Jobs of one conversation: those listed, or those of a batch."""

    model_config = example(conversation=_PARENT, batch="b_0123456789abcdefghjkmnpqrs")

    conversation: Parent
    jobs: list[str] = Field(
        default=[], max_length=MAX_JOBS_PER_CALL, description="Ids or unique prefixes."
    )
    batch: str | None = Field(default=None, max_length=MAX_BATCH_CHARS)


class JobSummaryOut(BaseModel):
    """A job in a list, without its prompt and result."""

    model_config = example(**_SUMMARY)

    id: str
    description: str
    agent: str | None = Field(description="The agent or profile that was asked for, if any.")
    folder: str | None = Field(description="Where it works; null: the private workspace.")
    connections: ConnectionNamesOut
    timeout: Seconds = Field(description="Of a run, in seconds.")
    status: JobStatus
    needs_you: bool = Field(description="It waits for an answer.")
    paused: bool
    waits_for: str | None = Field(description="Which connection its user has to reconnect first.")
    question: str | None = Field(description="Its open question.")
    parent_id: str | None = Field(description="The conversation that started it.")
    parent_run_id: str | None
    parent_message_id: str | None = Field(description="The message that requested it.")
    batch: str | None = Field(description="The group of jobs that it belongs to.")
    resume_count: int
    created_at: datetime
    completed_at: datetime | None
    retrieved_at: datetime | None = Field(description="When its parent read its result.")
    calls: int = Field(description="The number of tool calls so far.")
    recent_tools: Sequence[str] = Field(description="The last few tools it called, newest first.")
    progress: Annotated[ProgressOut | None, BeforeValidator(_to_progress)] = Field(
        description="What its run in progress says that it is doing."
    )
    updated_at: datetime = Field(description="The time of its last activity.")
    running: RunningField

    @classmethod
    def of(cls, job: JobView) -> Self:
        return cls.model_validate(job, from_attributes=True)


class JobOut(JobSummaryOut):
    """A job with its prompt and result."""

    model_config = example(
        **_SUMMARY,
        prompt="Count the files in the workspace.",
        result="There are 7 files.",
        data={"files": 7},
        error=None,
    )

    prompt: str
    result: str | None = Field(description="The result as text, once completed.")
    data: Any = Field(description="The result as JSON, if the job gave one.")
    error: str | None = Field(description="The error of a failed job.")


class JobChangesOut(BaseModel):
    """The outcome of a request for several jobs."""

    model_config = example(done=[_SUMMARY], left=[], unknown=["c_gone"])

    done: Sequence[JobSummaryOut]
    left: Sequence[JobSummaryOut] = Field(description="Jobs whose status does not allow it.")
    unknown: Sequence[str] = Field(description="Ids that are no jobs of this conversation.")

    @classmethod
    def of(cls, changed: JobsChanged) -> Self:
        return cls(
            done=[JobSummaryOut.of(job) for job in changed.done],
            left=[JobSummaryOut.of(job) for job in changed.left],
            unknown=changed.unknown,
        )
