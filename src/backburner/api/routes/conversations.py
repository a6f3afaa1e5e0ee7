"""`/api/conversations`: begin, find, look, change, delete, and what people do with its work."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import AfterValidator, Field, model_validator

from backburner.actions import browse, chat, conversations, schedules
from backburner.actions.deps import Deps
from backburner.actions.origin import Origin
from backburner.actions.work import control, tasks
from backburner.actions.work.tasks import NewTask
from backburner.api.http import pages
from backburner.api.http.auth import Reader, TheDeps, Writer
from backburner.api.http.idempotency import KeyedRoute
from backburner.api.http.pages import USUAL, Cursor, Limit, Page
from backburner.api.schemas.base import BODY, LONGEST_RUN, Body, Id, as_id, example, refusals
from backburner.api.schemas.conversation import ConversationItem, ConversationOut
from backburner.core.accounts import Caller
from backburner.core.conversation import (
    MAX_TITLE_CHARS,
    Kind,
    Notify,
    Status,
    make_title,
)
from backburner.core.errors import BadRequest
from backburner.core.ids import ConversationId
from backburner.core.validation import check_text
from backburner.ports import ConversationFilter, View

LONGEST_SEARCH = 200

Words = Annotated[
    str | None,
    Query(
        max_length=LONGEST_SEARCH,
        description="Words in the title or in recent messages. A page may then have fewer than"
        " `limit`, and still be followed by another.",
    ),
]
Parent = Annotated[str, Query(description="What made them."), AfterValidator(as_id)]
Verb = Callable[[Deps, Origin, str], Awaitable[object]]
#: What can be done to a conversation as a whole, with what it is called and means.
VERBS: dict[str, tuple[Verb, str, str]] = {
    "pause": (control.pause, "Pause its work", "A run that is under way finishes."),
    "resume": (control.resume, "Resume its work", "The next time is counted from now."),
    "run-now": (control.run_now, "Run its work now", "Whatever the schedule says."),
    "cancel": (control.cancel, "Stop its work for good", "The conversation stays."),
    "archive": (
        lambda deps, origin, which: conversations.archive(deps, origin.user, ConversationId(which)),
        "Archive it",
        "Work that it has is stopped.",
    ),
    "reopen": (
        lambda deps, origin, which: conversations.reopen(deps, origin.user, ConversationId(which)),
        "Open it again",
        "What was stopped stays stopped.",
    ),
}


class NewConversation(Body):
    """A chat; or a task of its own, where it is said what is to be done and when."""

    model_config = example(what="Look whether CI on main is green.", when="every weekday at 9")

    message: str | None = Field(default=None, description="What to say first in a chat.")
    title: str = Field(default="", max_length=MAX_TITLE_CHARS)
    profile: str | None = Field(default=None, description="A named model; null: as is usual.")
    what: str | None = Field(default=None, description="What is to be done each time.")
    when: str | None = Field(default=None, description="When, in words.")
    schedule: dict[str, Any] | None = Field(default=None, description="When, in full.")
    description: str = Field(default="", max_length=2_000)
    notify: Notify = Notify.ON_CHANGE
    max_runs: int | None = Field(default=None, ge=1, le=1_000_000)
    run_timeout: float | None = Field(
        default=None, ge=1, le=LONGEST_RUN.total_seconds(), description="In seconds."
    )
    tools: list[str] | None = Field(
        default=None, max_length=200, description="What it is restricted to; null: nothing."
    )

    @model_validator(mode="after")
    def _is_one_of_both(self) -> "NewConversation":
        if (self.what is None) != (self.when is None and self.schedule is None):
            raise BadRequest(
                "Work needs both what is to be done and when.",
                hint="Give `what`, and `when` or `schedule`; or neither, for a chat.",
            )
        if self.what is not None and self.message is not None:
            raise BadRequest("A task begins with `what`, and a chat with `message`.")
        if self.when is not None and self.schedule is not None:
            raise BadRequest("`when` and `schedule` say the same.", hint="Give one of them.")
        return self

    def task(self) -> NewTask:
        what = self.what or ""
        return NewTask(
            name=self.title or make_title(what),
            prompt=what,
            timing=schedules.Timing(self.when, self.schedule),
            description=self.description,
            notify=self.notify,
            max_runs=self.max_runs,
            run_timeout=None if self.run_timeout is None else timedelta(seconds=self.run_timeout),
            tools=self.tools,
            profile=self.profile,
        )


class Changes(Body):
    """What is left out stays as it is."""

    model_config = example(title="Watch CI", notify="always")

    title: str | None = Field(default=None, max_length=MAX_TITLE_CHARS)
    notify: Notify | None = None


def build_router() -> APIRouter:
    router = APIRouter(prefix="/api", tags=["conversations"], route_class=KeyedRoute)
    _add_list(router)
    _add_creation(router)
    _add_one(router)
    for name in VERBS:
        _add_verb(router, name)
    return router


async def show(deps: Deps, caller: Caller, which: str) -> ConversationOut:
    seen, here = await browse.conversation(deps, caller.user, ConversationId(which))
    return ConversationOut.of(seen, here, deps)


def _read_wanted(
    *,
    status: Status | None = None,
    kind: Kind | None = None,
    view: View | None = None,
    archived: bool | None = None,
    parent_id: Parent | None = None,
    q: Words = None,
) -> ConversationFilter:
    words = None if q is None or not q.strip() else check_text("q", q, limit=LONGEST_SEARCH)
    return ConversationFilter(
        status=status,
        kind=kind,
        view=view,
        # Who asks for a status has said whether archived ones are meant.
        archived=bool(archived) if status is None else archived,
        parent_id=ConversationId(parent_id) if parent_id else None,
        words=words and words.strip(),
    )


def _add_list(router: APIRouter) -> None:
    @router.get("/conversations", summary="List conversations", responses=refusals(404))
    async def list_conversations(
        deps: TheDeps,
        caller: Reader,
        wanted: Annotated[ConversationFilter, Depends(_read_wanted)],
        limit: Limit = USUAL,
        cursor: Cursor = None,
    ) -> Page[ConversationItem]:
        """List conversations, those that changed last first; archived ones only if asked for.

        One that changes while pages are turned moves to the front, and is not in those that follow.
        """
        after = pages.read(cursor, datetime, str)
        found, here = await browse.conversations(deps, caller.user, wanted, after, limit=limit)
        return pages.show(found, lambda seen: ConversationItem.of(seen, here, deps))


def _add_creation(router: APIRouter) -> None:
    @router.post(
        "/conversations",
        summary="Begin a conversation",
        status_code=201,
        responses=refusals(404, 409, 429, *BODY),
    )
    async def create_conversation(
        body: NewConversation, deps: TheDeps, caller: Writer
    ) -> ConversationOut:
        """Begin a chat, with a first message or without; or a task, which begins at once."""
        if body.what is not None:
            born = (await tasks.add(deps, Origin.by_user(caller.user), body.task())).work
        else:
            born = await chat.begin(
                deps, caller.user, body.message, profile=body.profile, title=body.title
            )
        return await show(deps, caller, born.id)


def _add_one(router: APIRouter) -> None:
    path = "/conversations/{which}"

    @router.get(path, summary="Look at a conversation", responses=refusals(404))
    async def get_conversation(which: Id, deps: TheDeps, caller: Reader) -> ConversationOut:
        return await show(deps, caller, which)

    @router.patch(path, summary="Change a conversation", responses=refusals(404, *BODY))
    async def change_conversation(
        which: Id, body: Changes, deps: TheDeps, caller: Writer
    ) -> ConversationOut:
        """Rename it, or say when to tell of its work."""
        await conversations.amend(
            deps, caller.user, ConversationId(which), title=body.title, notify=body.notify
        )
        return await show(deps, caller, which)

    @router.delete(path, summary="Delete a conversation", status_code=204, responses=refusals(404))
    async def delete_conversation(which: Id, deps: TheDeps, caller: Writer) -> None:
        """Delete it with all that it handed out; what was done and spent stays known."""
        await conversations.delete(deps, caller.user, ConversationId(which))


def _add_verb(router: APIRouter, name: str) -> None:
    act, summary, meaning = VERBS[name]

    async def do(which: Id, deps: TheDeps, caller: Writer) -> ConversationOut:
        await act(deps, Origin.by_user(caller.user), which)
        return await show(deps, caller, which)

    router.add_api_route(
        f"/conversations/{{which}}/{name}",
        do,
        methods=["POST"],
        name=f"{name.replace('-', '_')}_conversation",
        summary=summary,
        description=meaning,
        responses=refusals(404, 409, 429),
    )
