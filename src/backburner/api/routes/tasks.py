"""`/api/tasks`: standing work, set up, found, looked at, changed, approved, tried and stopped."""

from collections.abc import Awaitable, Callable
from datetime import datetime

from fastapi import APIRouter

from backburner.actions import browse
from backburner.actions.deps import Deps
from backburner.actions.origin import Origin
from backburner.actions.work import control, preview, tasks
from backburner.api.http import pages
from backburner.api.http.auth import Reader, TheDeps, Writer
from backburner.api.http.idempotency import KeyedRoute
from backburner.api.http.pages import USUAL, Cursor, Limit, Page
from backburner.api.schemas.base import BODY, Id, refusals
from backburner.api.schemas.shown import RunOut
from backburner.api.schemas.task import TaskItem, TaskPreviewOut, TriedOut
from backburner.api.schemas.task_bodies import Cancelling, NewTaskBody, Shown, TaskChangesIn
from backburner.core.accounts import Caller
from backburner.core.ids import ConversationId
from backburner.core.work.views import TaskStatus
from backburner.ports import ConversationFilter, View

Verb = Callable[..., Awaitable[object]]
#: What can be done to a task as a whole, with what it is called and means.
VERBS: dict[str, tuple[Verb, str, str]] = {
    "pause": (control.pause, "Pause a task", "A run that is under way finishes."),
    "resume": (control.resume, "Resume a task", "The next time is counted from now."),
    "run-now": (control.run_now, "Run a task now", "Whatever its schedule says."),
}


def build_router() -> APIRouter:
    router = APIRouter(prefix="/api", tags=["tasks"], route_class=KeyedRoute)
    _add_collection(router)
    _add_one(router)
    _add_answers(router)
    _add_looks(router)
    for name in VERBS:
        _add_verb(router, name)
    return router


async def show(deps: Deps, caller: Caller, which: str) -> TaskItem:
    seen, here = await tasks.show(deps, caller.user, ConversationId(which))
    return TaskItem.of(seen, here, deps)


def _add_collection(router: APIRouter) -> None:
    @router.get("/tasks", summary="List tasks", responses=refusals())
    async def list_tasks(
        deps: TheDeps,
        caller: Reader,
        *,
        status: TaskStatus | None = None,
        limit: Limit = USUAL,
        cursor: Cursor = None,
    ) -> Page[TaskItem]:
        """List tasks and chats that have work, those that changed last first.

        Without a status, those that were put away are left out.
        """
        wanted = ConversationFilter(
            view=View.TASKS, task=status, archived=False if status is None else None
        )
        after = pages.read(cursor, datetime, str)
        found, here = await browse.conversations(deps, caller.user, wanted, after, limit=limit)
        return pages.show(found, lambda seen: TaskItem.of(seen, here, deps))

    @router.post(
        "/tasks", summary="Set up a task", status_code=201, responses=refusals(404, 409, 429, *BODY)
    )
    async def create_task(body: NewTaskBody, deps: TheDeps, caller: Writer) -> TaskItem:
        """Set up standing work, which begins."""
        made = await tasks.add(deps, Origin.by_user(caller.user), body.task())
        return await show(deps, caller, made.work.id)


def _add_one(router: APIRouter) -> None:
    path = "/tasks/{which}"

    @router.get(path, summary="Look at a task", responses=refusals(404))
    async def get_task(which: Id, deps: TheDeps, caller: Reader) -> TaskItem:
        return await show(deps, caller, which)

    @router.patch(path, summary="Change a task", responses=refusals(404, 409, 429, *BODY))
    async def change_task(
        which: Id, body: TaskChangesIn, deps: TheDeps, caller: Writer
    ) -> TaskItem:
        """Change what it does, when and for whom; a proposal is asked about anew."""
        await control.update(deps, Origin.by_user(caller.user), which, body.changes())
        return await show(deps, caller, which)

    @router.delete(path, summary="Delete a task", status_code=204, responses=refusals(404, 409))
    async def delete_task(which: Id, deps: TheDeps, caller: Writer) -> None:
        """Delete it with its history; what was done and spent stays known. See `cancel`."""
        await tasks.delete(deps, caller.user, ConversationId(which))


def _add_answers(router: APIRouter) -> None:
    @router.post(
        "/tasks/{which}/approve",
        summary="Approve a proposal",
        responses=refusals(404, 409, 429, *BODY),
    )
    async def approve_task(
        which: Id, deps: TheDeps, caller: Writer, body: Shown | None = None
    ) -> TaskItem:
        """Say yes to what is proposed; the work begins."""
        shown = None if body is None else body.question
        await tasks.approve(deps, caller.user, ConversationId(which), shown=shown)
        return await show(deps, caller, which)

    @router.post(
        "/tasks/{which}/reject",
        summary="Dismiss a proposal",
        status_code=204,
        responses=refusals(404, 409, *BODY),
    )
    async def reject_task(
        which: Id, deps: TheDeps, caller: Writer, body: Shown | None = None
    ) -> None:
        """Say no to what is proposed; the same is not proposed again for a day."""
        shown = None if body is None else body.question
        await tasks.reject(deps, caller.user, ConversationId(which), shown=shown)

    @router.post(
        "/tasks/{which}/cancel",
        summary="Cancel a task",
        status_code=204,
        responses=refusals(404, 409, *BODY),
    )
    async def cancel_task(
        which: Id, deps: TheDeps, caller: Writer, body: Cancelling | None = None
    ) -> None:
        """Stop it for good and put it away; of a chat only the work is stopped."""
        reason = "" if body is None else body.reason
        await control.put_away(deps, Origin.by_user(caller.user), which, reason=reason)


def _add_looks(router: APIRouter) -> None:
    @router.get("/tasks/{which}/runs", summary="List the runs of a task", responses=refusals(404))
    async def list_task_runs(
        which: Id, deps: TheDeps, caller: Reader, limit: Limit = USUAL, cursor: Cursor = None
    ) -> Page[RunOut]:
        """List runs, the newest first; slots that nobody served are among them, as skipped."""
        after = pages.read(cursor, datetime, int, str)
        found = await tasks.runs(deps, caller.user, ConversationId(which), after, limit=limit)
        return pages.show(found, RunOut.of)

    @router.get("/tasks/{which}/preview", summary="Preview a task", responses=refusals(404))
    async def preview_task(which: Id, deps: TheDeps, caller: Reader) -> TaskPreviewOut:
        """Show what it would do, when, with what, for whom, and what that is likely to cost."""
        seen = await preview.preview(deps, caller.user, ConversationId(which))
        return TaskPreviewOut.of(seen)

    @router.post(
        "/tasks/{which}/test-run",
        summary="Try a task out",
        status_code=202,
        responses=refusals(404, 409, 429),
    )
    async def try_task(which: Id, deps: TheDeps, caller: Writer) -> TriedOut:
        """Do its work once, to see what comes of it; its schedule and its count stay as they are.

        Works for proposals too. Tool calls ask as always.
        """
        job = await preview.try_out(deps, caller.user, ConversationId(which))
        return TriedOut(conversation_id=job.id, task_id=which)


def _add_verb(router: APIRouter, name: str) -> None:
    act, summary, meaning = VERBS[name]

    async def do(which: Id, deps: TheDeps, caller: Writer) -> TaskItem:
        await act(deps, Origin.by_user(caller.user), which, task_only=True)
        return await show(deps, caller, which)

    router.add_api_route(
        f"/tasks/{{which}}/{name}",
        do,
        methods=["POST"],
        name=f"{name.replace('-', '_')}_task",
        summary=summary,
        description=meaning,
        responses=refusals(404, 409, 429),
    )
