"""Jobs as trees."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel, Field

from backburner.actions.work import job_trees
from backburner.api.schemas.base import example
from backburner.api.schemas.run import ProgressOut
from backburner.api.schemas.spending import AmountOut
from backburner.core.conversation import Kind
from backburner.core.work.views import JobStatus
from backburner.ports import JobCounts

_COUNTS = {"total": 1, "completed": 0, "failed": 0, "cancelled": 0, "in_words": "0 of 1 done"}
_NONE = {"total": 0, "completed": 0, "failed": 0, "cancelled": 0, "in_words": ""}
_JOB: dict[str, Any] = {
    "id": "c_0123456789abcdefghjkmnpqrs",
    "title": "Count the files",
    "batch": "b_0123456789abcdefghjkmnpqrs",
    "status": "running",
    "needs_you": False,
    "paused": False,
    "question": None,
    "question_id": None,
    "waits_for": None,
    "error": None,
    "doing": "list_files: path=src",
    "progress": {"text": "Read 40 of 120 files", "reported_at": "2026-11-16T12:00:10Z"},
    "calls": 2,
    "created_at": "2026-11-16T12:00:00Z",
    "completed_at": None,
    "elapsed_seconds": 20.0,
    "spent": {"micros": 12_000, "tokens": 1834},
    "counts": _NONE,
    "children": [],
}


class JobCountsOut(BaseModel):
    """The jobs of one conversation or job, all of them."""

    total: int
    completed: int
    failed: int
    cancelled: int
    in_words: str = Field(description="`2 of 5 done, 1 failed`; empty: there are none.")

    @classmethod
    def of(cls, counts: JobCounts) -> Self:
        parts = [f"{counts.completed} of {counts.total} done"] if counts.total else []
        parts += [f"{counts.failed} failed"] if counts.failed else []
        parts += [f"{counts.cancelled} cancelled"] if counts.cancelled else []
        return cls(
            total=counts.total,
            completed=counts.completed,
            failed=counts.failed,
            cancelled=counts.cancelled,
            in_words=", ".join(parts),
        )


class JobNodeOut(BaseModel):
    """A job with the jobs that it has started."""

    model_config = example(**_JOB)

    id: str
    title: str
    batch: str | None
    status: JobStatus
    needs_you: bool
    paused: bool
    question: str | None
    question_id: str | None = Field(description="Of its open question, to answer it.")
    waits_for: str | None = Field(
        description="What it waits for, in a sentence; null: it runs, is paused or has ended."
    )
    error: str | None
    doing: str | None = Field(description="What its run in progress is doing.")
    progress: ProgressOut | None = Field(description="What it says that it is doing.")
    calls: int
    created_at: datetime
    completed_at: datetime | None
    elapsed_seconds: float = Field(description="From its start to its end, or to now.")
    spent: AmountOut
    counts: JobCountsOut
    children: Sequence["JobNodeOut"]

    @classmethod
    def of(cls, node: job_trees.JobNode) -> "JobNodeOut":
        view = node.view
        return cls(
            id=view.id,
            title=view.description,
            batch=view.batch,
            status=view.status,
            needs_you=view.needs_you,
            paused=view.paused,
            question=view.question,
            question_id=None if node.asked is None else node.asked.id,
            waits_for=node.waits_for,
            error=view.error,
            doing=None if view.running is None else view.running.doing,
            progress=ProgressOut.of(view.progress),
            calls=view.calls,
            created_at=view.created_at,
            completed_at=view.completed_at,
            elapsed_seconds=node.elapsed.total_seconds(),
            spent=AmountOut.of(node.spent),
            counts=JobCountsOut.of(node.counts),
            children=[JobNodeOut.of(child) for child in node.children],
        )


class JobTreeOut(BaseModel):
    """A conversation with its jobs."""

    conversation_id: str
    title: str
    kind: Kind
    counts: JobCountsOut
    children: Sequence[JobNodeOut] = Field(description="Open ones first, then the newest.")

    @classmethod
    def of(cls, tree: job_trees.JobTree) -> Self:
        return cls(
            conversation_id=tree.parent.id,
            title=tree.parent.title,
            kind=tree.parent.kind,
            counts=JobCountsOut.of(tree.counts),
            children=[JobNodeOut.of(child) for child in tree.children],
        )


class JobTreesOut(BaseModel):
    model_config = example(
        trees=[
            {
                "conversation_id": "c_srqpnmkjhgfedcba9876543210",
                "title": "Files",
                "kind": "chat",
                "counts": _COUNTS,
                "children": [_JOB],
            }
        ],
        is_cut=False,
    )

    trees: Sequence[JobTreeOut] = Field(description="The conversation whose jobs changed first.")
    is_cut: bool = Field(description="There are more jobs.")

    @classmethod
    def of(cls, found: job_trees.JobTrees) -> Self:
        return cls(trees=[JobTreeOut.of(tree) for tree in found.trees], is_cut=found.is_cut)
