"""`/api/tasks`: create, list, change, approve, preview, test and control tasks."""

from datetime import datetime

from fastapi import APIRouter

from backburner.actions import browse
from backburner.actions.accounts import consent
from backburner.actions.deps import Deps
from backburner.actions.origin import Origin
from backburner.actions.work import control, preview, tasks
from backburner.api.http.auth import Approver, Reader, Writer
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.idempotency import IdempotentRoute
from backburner.api.http.openapi import error_responses
from backburner.api.http.pages import PageOut, Paging, make_page
from backburner.api.schemas.base import TaskIdPath
from backburner.api.schemas.run import RunOut
from backburner.api.schemas.task import (
    NewTaskBody,
    ProposalAnswerBody,
    TaskCancellationBody,
    TaskChangesBody,
    TaskOut,
    TaskPreviewOut,
    TaskTestRunOut,
)
from backburner.core.accounts import Caller
from backburner.core.ids import ConversationId
from backburner.core.work.views import TaskStatus
from backburner.ports import ConversationFilter, View

router = APIRouter(prefix="/api/tasks", tags=["tasks"], route_class=IdempotentRoute)


async def load_task(deps: Deps, caller: Caller, task_id: ConversationId) -> TaskOut:
    row, display = await tasks.show(deps, caller.user, task_id)
    return TaskOut.of(row, display, deps)


@router.get("", summary="List tasks")
async def list_tasks(
    deps: AppDeps, caller: Reader, *, status: TaskStatus | None = None, paging: Paging
) -> PageOut[TaskOut]:
    """List tasks and chats with background work, last changed first.

    Archived tasks are listed only if `status` asks for them.
    """
    filters = ConversationFilter(
        view=View.TASKS, task=status, archived=False if status is None else None
    )
    page, display = await browse.conversations(
        deps, caller.user, filters, paging.after(datetime, str), limit=paging.limit
    )
    return make_page(page, lambda row: TaskOut.of(row, display, deps))


@router.post("", summary="Create a task", status_code=201, responses=error_responses(404, 429))
async def create_task(body: NewTaskBody, deps: AppDeps, caller: Writer) -> TaskOut:
    """Create a task, which becomes active immediately unless it is `paused`."""
    if body.allowance is not None:
        consent.check_scope(caller)
    report = await tasks.add(deps, Origin.by(caller), body.task())
    return await load_task(deps, caller, report.work.id)


@router.get("/{task_id}", summary="Get a task")
async def get_task(task_id: TaskIdPath, deps: AppDeps, caller: Reader) -> TaskOut:
    return await load_task(deps, caller, task_id)


@router.patch("/{task_id}", summary="Update a task", responses=error_responses(409, 429))
async def update_task(
    task_id: TaskIdPath, body: TaskChangesBody, deps: AppDeps, caller: Writer
) -> TaskOut:
    """Change its prompt, schedule, limits or destinations. A proposal has to be approved anew.

    More connections need a credential that may approve. So does another prompt, description or list
    of tools, if the task uses a connection or a folder that the token was not given.
    """
    origin = Origin.by_user(caller.user)
    await control.update(
        deps,
        origin,
        task_id,
        body.changes(),
        check_consent=consent.checker(caller),
        check_instructions=consent.instructions_checker(caller),
    )
    return await load_task(deps, caller, task_id)


@router.delete(
    "/{task_id}", summary="Delete a task", status_code=204, responses=error_responses(409)
)
async def delete_task(task_id: TaskIdPath, deps: AppDeps, caller: Writer) -> None:
    """Delete it with its history. The journal of tool calls and the spending are kept."""
    await tasks.delete(deps, caller.user, task_id)


@router.post("/{task_id}/approve", summary="Approve a proposal", responses=error_responses(429))
async def approve_task(
    task_id: TaskIdPath, deps: AppDeps, caller: Approver, body: ProposalAnswerBody | None = None
) -> TaskOut:
    """Approve a proposed task, which becomes active."""
    await consent.check_work(deps, caller, task_id)
    question_id = None if body is None else body.question
    await tasks.approve(deps, caller.user, task_id, shown=question_id, by=caller)
    return await load_task(deps, caller, task_id)


@router.post("/{task_id}/reject", summary="Reject a proposal", status_code=204)
async def reject_task(
    task_id: TaskIdPath, deps: AppDeps, caller: Approver, body: ProposalAnswerBody | None = None
) -> None:
    """Reject a proposed task. The same task is not proposed again for a day."""
    await consent.check_work(deps, caller, task_id)
    question_id = None if body is None else body.question
    await tasks.reject(deps, caller.user, task_id, shown=question_id, by=caller)


@router.post("/{task_id}/cancel", summary="Cancel a task", status_code=204)
async def cancel_task(
    task_id: TaskIdPath, deps: AppDeps, caller: Writer, body: TaskCancellationBody | None = None
) -> None:
    """Stop a task for good and archive it. A chat keeps going; only its work is stopped."""
    reason = "" if body is None else body.reason
    await control.cancel_and_archive(deps, Origin.by_user(caller.user), task_id, reason=reason)


@router.post("/{task_id}/pause", summary="Pause a task", responses=error_responses(429))
async def pause_task(task_id: TaskIdPath, deps: AppDeps, caller: Writer) -> TaskOut:
    """Pause a task. A run in progress finishes."""
    await control.pause(deps, Origin.by_user(caller.user), task_id, task_only=True)
    return await load_task(deps, caller, task_id)


@router.post("/{task_id}/resume", summary="Resume a task", responses=error_responses(429))
async def resume_task(task_id: TaskIdPath, deps: AppDeps, caller: Writer) -> TaskOut:
    """Resume a paused task. The next run is scheduled from now."""
    await control.resume(deps, Origin.by_user(caller.user), task_id, task_only=True)
    return await load_task(deps, caller, task_id)


@router.post("/{task_id}/run-now", summary="Run a task now", responses=error_responses(429))
async def run_task_now(task_id: TaskIdPath, deps: AppDeps, caller: Writer) -> TaskOut:
    """Start a run now, independent of the schedule."""
    await control.run_now(deps, Origin.by_user(caller.user), task_id, task_only=True)
    return await load_task(deps, caller, task_id)


@router.get("/{task_id}/runs", summary="List the runs of a task")
async def list_task_runs(
    task_id: TaskIdPath, deps: AppDeps, caller: Reader, paging: Paging
) -> PageOut[RunOut]:
    """List runs, newest first. Skipped slots are included."""
    page = await tasks.runs(
        deps, caller.user, task_id, paging.after(datetime, int, str), limit=paging.limit
    )
    return make_page(page, RunOut.of)


@router.get("/{task_id}/preview", summary="Preview a task")
async def preview_task(task_id: TaskIdPath, deps: AppDeps, caller: Reader) -> TaskPreviewOut:
    """Show the prompt, the next times, tools, destinations and estimated cost of a task."""
    return TaskPreviewOut.of(await preview.preview(deps, caller.user, task_id))


@router.post(
    "/{task_id}/test-run", summary="Test a task", status_code=202, responses=error_responses(429)
)
async def start_test_run(task_id: TaskIdPath, deps: AppDeps, caller: Writer) -> TaskTestRunOut:
    """Run a task or a proposal once. Its schedule and run count stay unchanged.

    Tool calls that need approval are not made: when it ends, one question lists them all. A yes
    allows them in the next runs of the task. To test a proposal that uses a connection or a folder
    which the token was not given needs a credential that may approve.
    """
    check = consent.instructions_checker(caller)
    job = await preview.start_test_run(deps, caller.user, task_id, check_instructions=check)
    return TaskTestRunOut(conversation_id=job.id, task_id=task_id)
