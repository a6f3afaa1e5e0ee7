"""Jobs: trees of what conversations have handed out, and one with what it was told and came to."""

from fastapi import APIRouter
from starlette.responses import Response

from backburner.actions import browse
from backburner.actions.work import job_trees, user_jobs
from backburner.api.http.auth import Reader
from backburner.api.http.dependencies import AppDeps
from backburner.api.schemas.base import ConversationIdPath
from backburner.core.conversation import Kind
from backburner.web.rendering import load_words, respond
from backburner.web.routes.lists import Shown, show_times
from backburner.web.views.work.jobs import describe_job, show_tree
from backburner.web.views.work.tasks import list_cards

router = APIRouter(include_in_schema=False)


@router.get("/page/jobs")
async def list_trees(deps: AppDeps, caller: Reader, display: Shown) -> Response:
    found = await job_trees.trees(deps, caller.user)
    trees = [show_tree(tree, display) for tree in found.trees]
    return await respond("pages/jobs.html", display, trees=trees, is_cut=found.is_cut)


@router.get("/page/jobs/{conversation_id}")
async def show_one(conversation_id: ConversationIdPath, deps: AppDeps, caller: Reader) -> Response:
    """Show the jobs of a conversation; of a job, also itself."""
    row, context = await browse.conversation(deps, caller.user, conversation_id)
    display, conversation = show_times(context), row.conversation
    found = await job_trees.trees(deps, caller.user, conversation_id)
    job = None
    if conversation.kind is Kind.JOB:
        job = await user_jobs.show(deps, caller.user, conversation_id)
    tree = found.trees[0]
    burner, line, tone = ("rest", "", "")
    if job is not None:
        burner, line, tone = describe_job(job, conversation.pending_question, tree.waits_for)
    return await respond(
        "pages/job.html",
        display,
        conversation=conversation,
        title=conversation.title or load_words().common.untitled,
        tree=show_tree(tree, display),
        is_cut=found.is_cut,
        job=job,
        cards=list_cards(conversation, display),
        burner_state=burner,
        line=line,
        tone=tone,
    )
