"""Standing work: the list of tasks, the page of one with its history, and forms to change them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from backburner.actions import browse, spending
from backburner.actions.connections import manage
from backburner.actions.deps import Deps
from backburner.actions.work import folders, preview, run_pages, schedule_choices, user_jobs
from backburner.api.http.auth import Reader
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.pages import DownTo, PageQuery, Paging, write_cursor
from backburner.api.schemas.base import TaskIdPath
from backburner.api.schemas.conversation import list_next_times
from backburner.core.accounts import Caller
from backburner.core.allowance import AllowanceScope
from backburner.core.conversation import Conversation, Notify, Status
from backburner.core.ids import ConversationId
from backburner.core.transitions import TEST_RUN_BATCH
from backburner.core.work.views import TaskStatus
from backburner.ports import ConversationFilter, ConversationRow, PageKey, View
from backburner.web.display import Display
from backburner.web.rendering import load_words, respond
from backburner.web.routes.lists import Shown, show_times
from backburner.web.views.conversation_state import show_state
from backburner.web.views.schedule import confirm_run, describe_misses, say_schedule
from backburner.web.views.work.task_page import (
    describe_success,
    describe_trouble,
    find_test_run,
    list_told,
    show_allowance,
    show_charts,
    show_past_run,
    show_tried,
)
from backburner.web.views.work.tasks import (
    group_tasks,
    is_proposal,
    list_cards,
    show_proposals,
    show_tasks,
)

#: Of each status; the limit on active tasks is lower.
MAX_LISTED = 200
ENDED_PAGE = 50
RUNS_PAGE = 25
#: Runs that an open page shows again in its first part.
MAX_RUNS_AGAIN = 200
_RUN_KEY = (datetime, int, str, str)

router = APIRouter(include_in_schema=False)


@router.get("/page/tasks")
async def list_tasks(
    deps: AppDeps,
    caller: Reader,
    show: Annotated[str, Query(max_length=20)] = "",
) -> Response:
    if show == "ended":
        return await _list_ended(deps, caller)
    proposed, display = await _load_some(deps, caller, TaskStatus.PROPOSED)
    active, _ = await _load_some(deps, caller, TaskStatus.ACTIVE)
    paused, _ = await _load_some(deps, caller, TaskStatus.PAUSED)
    shown = {task.id: task for task in show_tasks([*active, *paused], display)}
    groups = group_tasks(
        [shown[row.conversation.id] for row in active],
        [shown[row.conversation.id] for row in paused],
    )
    return await respond(
        "pages/tasks.html", display, cards=show_proposals(proposed, display), groups=groups
    )


@router.get("/page/tasks/ended")
async def list_more_ended(deps: AppDeps, caller: Reader, paging: Paging) -> Response:
    rows, next_page, display = await _load_ended(deps, caller, paging)
    tasks = show_tasks(rows, display)
    return await respond("pages/tasks_more.html", display, tasks=tasks, next_page=next_page)


@router.get("/page/tasks/new")
async def show_new_task(deps: AppDeps, caller: Reader, display: Shown) -> Response:
    connections = await manage.list_connections(deps, caller.user)
    places = await folders.list_folders(deps, caller.user)
    return await respond(
        "pages/task_new.html",
        display,
        connections=[one.connection for one in connections],
        folders=[state.folder for state in places if state.is_here],
        notify=list(Notify),
    )


@router.get("/page/t/{task_id}")
async def show_task(
    task_id: TaskIdPath,
    deps: AppDeps,
    caller: Reader,
    down_to: DownTo = None,
) -> Response:
    """Show a task; an open page asks for the runs that it shows, and for new ones."""
    plan = await preview.preview(deps, caller.user, task_id, is_past=True)
    row, context = await browse.conversation(deps, caller.user, task_id)
    display, conversation = show_times(context), row.conversation
    stats = await run_pages.stats(deps, caller.user, task_id)
    tried = await user_jobs.list_jobs(
        deps, caller.user, None, limit=1, batch=TEST_RUN_BATCH, parent=task_id
    )
    limits = spending.effective_allowances(deps, stats.account)
    run_limit = next((one.micros for one in limits if one.scope is AllowanceScope.RUN), None)
    return await respond(
        "pages/task.html",
        display,
        **await _describe_head(deps, row, display),
        charts=show_charts(stats, display, run_limit=run_limit),
        success=describe_success(stats),
        trouble=describe_trouble(conversation, stats, display),
        allowance=show_allowance(stats, plan.cost, conversation),
        uses=await _name_connections(deps, caller, conversation),
        told=list_told(conversation, load_words().tasks.notices),
        test_run=find_test_run(row, display),
        tried=show_tried(next(iter(tried.items), None), display),
        **await _load_runs(deps, caller, task_id, display, down_to=down_to),
    )


@router.get("/page/t/{task_id}/runs")
async def list_more_runs(
    task_id: TaskIdPath, deps: AppDeps, caller: Reader, display: Shown, paging: Paging
) -> Response:
    after = paging.after(*_RUN_KEY)
    shown = await _load_runs(deps, caller, task_id, display, after=after)
    return await respond("pages/task_runs.html", display, task_id=task_id, **shown)


@router.get("/page/t/{task_id}/edit")
async def show_edit_form(task_id: TaskIdPath, deps: AppDeps, caller: Reader) -> Response:
    row, context = await browse.conversation(deps, caller.user, task_id)
    display, conversation = show_times(context), row.conversation
    return await respond(
        "pages/task_edit.html",
        display,
        conversation=conversation,
        brief=str(conversation.state.context.get("prompt", "")),
        notify=list(Notify),
    )


@router.get("/page/t/{task_id}/uses")
async def show_uses_form(
    task_id: TaskIdPath, deps: AppDeps, caller: Reader, display: Shown
) -> Response:
    row, _ = await browse.conversation(deps, caller.user, task_id)
    connections = await manage.list_connections(deps, caller.user)
    return await respond(
        "pages/task_uses.html",
        display,
        conversation=row.conversation,
        connections=[one.connection for one in connections],
    )


async def _name_connections(
    deps: Deps, caller: Caller, conversation: Conversation
) -> Sequence[str]:
    """List the connections that it may use by their titles."""
    if not conversation.connections:
        return ()
    found = await manage.list_connections(deps, caller.user)
    titles = {one.connection.name: one.connection.title for one in found}
    return [titles.get(name) or name for name in conversation.connections]


async def _list_ended(deps: Deps, caller: Caller) -> Response:
    rows, next_page, display = await _load_ended(deps, caller, PageQuery())
    failed, _ = await _load_some(deps, caller, TaskStatus.FAILED)
    tasks = [*show_tasks(failed, display), *show_tasks(rows, display)]
    return await respond("pages/tasks_ended.html", display, tasks=tasks, next_page=next_page)


async def _load_some(
    deps: Deps, caller: Caller, status: TaskStatus
) -> tuple[list[ConversationRow], Display]:
    filters = ConversationFilter(view=View.TASKS, task=status)
    page, context = await browse.conversations(deps, caller.user, filters, None, limit=MAX_LISTED)
    return list(page.items), show_times(context)


async def _load_ended(
    deps: Deps, caller: Caller, paging: PageQuery
) -> tuple[list[ConversationRow], str | None, Display]:
    page, context = await browse.conversations(
        deps,
        caller.user,
        ConversationFilter(view=View.TASKS, task=TaskStatus.DONE),
        paging.after(datetime, str),
        limit=ENDED_PAGE,
    )
    return list(page.items), write_cursor(page.next_key), show_times(context)


async def _describe_head(deps: Deps, row: ConversationRow, display: Display) -> dict[str, Any]:
    conversation = row.conversation
    schedule = conversation.schedule
    other = await schedule_choices.load_predecessor(deps, conversation)
    proposed = is_proposal(conversation)
    return {
        "conversation": conversation,
        "title": conversation.title or load_words().common.untitled,
        # A proposal says it itself.
        "brief": "" if proposed else str(conversation.state.context.get("prompt", "")),
        "description": "" if proposed else str(conversation.state.context.get("description", "")),
        "state": show_state(row, display),
        "schedule": "" if schedule is None else say_schedule(schedule, display, other=other),
        "misses": describe_misses(schedule),
        "next_times": list_next_times(conversation),
        "is_proposal": proposed,
        "can_run": _can_run(conversation) and not proposed,
        "run_confirm": confirm_run(conversation, display),
        "can_pause": _can_pause(conversation) and not proposed,
        "cards": list_cards(conversation, display),
    }


def _can_run(conversation: Conversation) -> bool:
    return conversation.has_work and conversation.status in (Status.ACTIVE, Status.BACKGROUND)


def _can_pause(conversation: Conversation) -> bool:
    is_open = conversation.status is not Status.ARCHIVED
    return is_open and conversation.schedule is not None and conversation.pause_reason is None


async def _load_runs(
    deps: Deps,
    caller: Caller,
    task_id: ConversationId,
    display: Display,
    *,
    after: PageKey | None = None,
    down_to: str | None = None,
) -> dict[str, Any]:
    last = None if down_to is None else PageQuery(cursor=down_to).after(*_RUN_KEY)
    page = await run_pages.history(
        deps,
        caller.user,
        task_id,
        after,
        limit=RUNS_PAGE if last is None else MAX_RUNS_AGAIN,
        down_to=last,
    )
    return {
        "runs": [show_past_run(past, display) for past in page.items],
        "next_runs": write_cursor(page.next_key),
    }
