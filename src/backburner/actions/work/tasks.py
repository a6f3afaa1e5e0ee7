"""What people do with their tasks: set up, change, approve, dismiss, steer, cancel, delete."""

from collections.abc import Awaitable, Callable

from backburner.actions import active_limit, browse, lookup, questions, schedules, tending
from backburner.actions.browse import DisplayContext, Page
from backburner.actions.deps import Deps
from backburner.actions.work import agent_tasks
from backburner.actions.work.agent_tasks import NewTask, TaskChanges
from backburner.core import transitions
from backburner.core.conversation import Conversation, Destination, Kind, Notify
from backburner.core.errors import BadRequest, Conflict
from backburner.core.ids import ConversationId, QuestionId, UserId
from backburner.core.question import NO, YES, Purpose
from backburner.core.run import Run
from backburner.core.schedule import Schedule
from backburner.core.transitions import Brief, Step
from backburner.ports import ConversationRow, PageKey, Tx

Verb = Callable[[Deps, UserId, ConversationId], Awaitable[Conversation]]


async def look(
    deps: Deps, user: UserId, conversation_id: ConversationId
) -> tuple[ConversationRow, DisplayContext]:
    def work(tx: Tx) -> tuple[ConversationRow, DisplayContext]:
        seen = tx.browse.conversation(user, conversation_id)
        lookup.require(seen.conversation)
        return seen, DisplayContext(tx.now, tx.users.load(user).zone)

    return await deps.store.transact(work)


async def runs(
    deps: Deps, user: UserId, conversation_id: ConversationId, after: PageKey | None, *, limit: int
) -> Page[Run]:
    def work(tx: Tx) -> Page[Run]:
        lookup.require(tx.conversations.load(user, conversation_id))
        return browse.page_of_runs(tx, user, conversation_id, after, limit=limit)

    return await deps.store.transact(work)


async def create(deps: Deps, user: UserId, new: NewTask) -> Conversation:
    """Set up a task, which begins."""
    check_places(deps, new.reports_to)

    def brief(timed: Schedule) -> Brief:
        return Brief(
            title=new.name,
            prompt=new.prompt,
            schedule=timed,
            description=new.description,
            notify=new.notify or Notify.ON_CHANGE,
            max_runs=new.max_runs,
            run_timeout=new.run_timeout,
            tools=None if new.tools is None else tuple(dict.fromkeys(new.tools)),
            profile=new.profile,
            reports_to=new.reports_to,
        )

    return await schedules.start(deps, user, new.timing, brief)


async def update(
    deps: Deps, user: UserId, conversation_id: ConversationId, changes: TaskChanges
) -> Conversation:
    """Give a task other terms or another time; a proposal is asked about anew."""

    def change(found: Conversation, tx: Tx) -> Step:
        step = agent_tasks.rework(tx, found, changes)
        check_places(deps, step.conversation.reports_to, known=found.reports_to)
        return step

    return await active_limit.change(deps, user, conversation_id, _of_task(change))


async def approve(
    deps: Deps, user: UserId, conversation_id: ConversationId, *, shown: QuestionId | None = None
) -> Conversation:
    """Say yes to a proposal: to the one that was `shown`, or to whatever it is now."""
    return await _decide(deps, user, conversation_id, YES, shown)


async def reject(
    deps: Deps, user: UserId, conversation_id: ConversationId, *, shown: QuestionId | None = None
) -> Conversation:
    return await _decide(deps, user, conversation_id, NO, shown)


async def pause(deps: Deps, user: UserId, conversation_id: ConversationId) -> Conversation:
    return await active_limit.change(
        deps, user, conversation_id, _of_task(lambda found, _: transitions.pause(found))
    )


async def resume(deps: Deps, user: UserId, conversation_id: ConversationId) -> Conversation:
    return await active_limit.change(
        deps,
        user,
        conversation_id,
        _of_task(lambda found, tx: transitions.resume(found, now=tx.now)),
    )


async def run_now(deps: Deps, user: UserId, conversation_id: ConversationId) -> Conversation:
    return await active_limit.change(
        deps, user, conversation_id, _of_task(lambda found, _: transitions.run_now(found))
    )


async def cancel(
    deps: Deps, user: UserId, conversation_id: ConversationId, *, reason: str = ""
) -> Conversation:
    """Stop a task for good and put it away, with the reason; a chat that had work stays."""
    return await active_limit.change(
        deps, user, conversation_id, _of_task(lambda found, tx: agent_tasks.stop(tx, found, reason))
    )


async def delete(deps: Deps, user: UserId, conversation_id: ConversationId) -> None:
    """Delete a task with all it handed out."""

    def work(tx: Tx) -> None:
        if lookup.require(tx.conversations.lock(user, conversation_id)).kind is Kind.CHAT:
            raise Conflict(
                "This is a chat that has work.", hint="Cancel the work, or delete the conversation."
            )
        tending.remove(tx, user, conversation_id)

    await deps.store.transact(work)


def check_places(
    deps: Deps, places: tuple[Destination, ...], *, known: tuple[Destination, ...] = ()
) -> None:
    """Refuse to report where nobody can."""
    for place in places:
        if place.channel not in deps.channels and place not in known:
            there_are = ", ".join(deps.channels) or "none"
            raise BadRequest(
                f"There is no channel {place.channel[:80]!r}.", hint=f"There are: {there_are}."
            )


async def _decide(
    deps: Deps, user: UserId, conversation_id: ConversationId, said: str, shown: QuestionId | None
) -> Conversation:
    def work(tx: Tx) -> Conversation:
        tx.users.lock(user)
        found = lookup.require(tx.conversations.lock(user, conversation_id))
        asked = next((one for one in found.questions if one.purpose is Purpose.PROPOSAL), None)
        if asked is None:
            raise Conflict("This is not a proposal, or it has been answered.")
        if shown is not None and shown != asked.id:
            raise Conflict("The proposal was changed since it was shown.", hint="Look at it again.")
        return questions.settle(tx, deps, found, asked.id, said)

    return await deps.store.transact(work)


def _of_task(
    transition: Callable[[Conversation, Tx], Step],
) -> Callable[[Conversation, Tx], Step]:
    """Let something happen to tasks only: any other conversation is not found."""

    def of_task(found: Conversation, tx: Tx) -> Step:
        return transition(lookup.require(found), tx)

    return of_task
