"""Work that an agent schedules: in its conversation, in a child, or as a proposal."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from backburner.actions import active_limit, create
from backburner.actions.create import WorkReport
from backburner.actions.deps import Deps
from backburner.actions.origin import Origin
from backburner.actions.steps import save
from backburner.actions.work import instructions
from backburner.core import transitions
from backburner.core.conversation import (
    CONTEXT_MARK,
    MAX_TITLE_CHARS,
    Conversation,
    Notify,
    State,
    make_title,
)
from backburner.core.errors import BadRequest, Conflict, NotFound
from backburner.core.ids import ConversationId, new_conversation_id
from backburner.core.run import RunKind, Turn
from backburner.core.schedule import Schedule
from backburner.core.schedule.phrases import parse_schedule
from backburner.core.transitions import Brief, Terms
from backburner.core.transitions.change import Verb, WorkChange
from backburner.core.validation import check_text
from backburner.core.work import lookup
from backburner.ports import Tx

#: For the message that a chat has its title from.
MESSAGES_SEARCHED = 20
FIRST_STEP = "At the beginning."


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkRequest:
    prompt: str
    #: A schedule as a phrase.
    when: str
    title: str = ""
    #: Make it a child task even if the conversation has no work of its own.
    separate: bool = False
    notify: Notify | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkList:
    """The open work of a conversation and of its children."""

    own: Conversation | None
    children: Sequence[Conversation]
    zone: str
    now: datetime


async def start_work(deps: Deps, turn: Turn, request: WorkRequest) -> WorkReport:
    """Schedule work, or propose it where no user can have asked for it."""
    child, attempts = new_conversation_id(), list[Conversation]()

    def transaction(tx: Tx) -> WorkReport:
        tx.users.lock(turn.user_id)
        here = Origin.of(turn).hold_to_start(tx)
        # An earlier attempt may have been committed although its result was lost.
        work = _find_committed(tx, here, attempts)
        if work is None:
            work = _start(tx, deps, turn, child, here, request)
            attempts.append(work)
        return create.report(tx, work)

    return await deps.store.transact(transaction)


async def change_work(deps: Deps, turn: Turn, name: str, request: WorkRequest) -> WorkReport:
    """Reschedule existing work; a prompt in the request replaces its prompt."""

    def work(tx: Tx) -> WorkReport:
        zone = tx.users.lock(turn.user_id).zone
        origin = Origin.of(turn)
        here = origin.hold_to_start(tx)
        before = tx.conversations.lock(turn.user_id, _find_one(name, _load(tx, turn)).id)
        schedule = parse_schedule(request.when, zone=zone, now=tx.now)
        state = before.state
        if request.prompt.strip():
            state = replace(state, context={**state.context, "prompt": request.prompt})
        step = transitions.set_schedule(
            _with_notify(before, request),
            schedule,
            now=tx.now,
            state=state,
            by_run=turn.run_id,
        )
        if not origin.may_start(here) or instructions.need_consent(tx, origin, here, before, step):
            wanted = WorkChange(
                work_id=before.id,
                verb=Verb.UPDATE,
                terms=Terms.of(step.conversation),
                schedule=schedule,
            )
            question = create.propose_change(tx, origin, here, before, wanted)
            return replace(create.report(tx, before), proposed=question)
        active_limit.check(deps, tx, step.conversation, before=before)
        save(tx, step)
        return create.report(tx, step.conversation)

    return await deps.store.transact(work)


async def stop(deps: Deps, turn: Turn, name: str) -> Sequence[Conversation]:
    """Stop work by name, here or in a child; without a name, the only work there is."""
    ids = list[ConversationId]()

    def work(tx: Tx) -> Sequence[Conversation]:
        if not ids:
            ids.extend(work.id for work in _find(name, _load(tx, turn)))
        if turn.kind is RunKind.BACKGROUND and turn.conversation_id in ids:
            raise Conflict(
                "A run cannot stop the work it belongs to.", hint="End it with complete and final."
            )
        return [_stop(tx, turn, conversation_id) for conversation_id in ids]

    return await deps.store.transact(work)


async def list_work(deps: Deps, turn: Turn) -> WorkList:
    def work(tx: Tx) -> WorkList:
        works = _load(tx, turn)
        if any(_is_outside(child) for child in works.children):
            Origin.of(turn).mark_outside_text(tx, deps)
        return works

    return await deps.store.transact(work)


def _find_committed(
    tx: Tx, here: Conversation, attempts: Sequence[Conversation]
) -> Conversation | None:
    for work in attempts:
        if work.id == here.id:
            is_later = here.schedule_revision >= work.schedule_revision
            if is_later and here.state.context == work.state.context:
                return here
        else:
            with suppress(NotFound):
                return tx.conversations.load(work.user_id, work.id)
    return None


def _start(
    tx: Tx, deps: Deps, turn: Turn, child: ConversationId, here: Conversation, request: WorkRequest
) -> Conversation:
    origin = Origin.of(turn)
    schedule = parse_schedule(request.when, zone=tx.users.load(turn.user_id).zone, now=tx.now)
    if origin.may_start(here) and not request.separate and here.schedule is None:
        return _schedule_here(tx, deps, turn, here, request, schedule)
    return create.start(tx, deps, origin, child, _brief(here, request, schedule))


def _schedule_here(
    tx: Tx,
    deps: Deps,
    turn: Turn,
    here: Conversation,
    request: WorkRequest,
    schedule: Schedule,
) -> Conversation:
    if not request.prompt.strip():
        raise BadRequest("Work needs a description.", hint="Describe the work.")
    state = State(context={"prompt": request.prompt, "description": ""}, step=FIRST_STEP)
    named = _with_title(tx, _with_notify(here, request), request)
    step = transitions.set_schedule(named, schedule, now=tx.now, state=state, by_run=turn.run_id)
    active_limit.check(deps, tx, step.conversation, before=here)
    save(tx, step)
    return step.conversation


def _brief(here: Conversation, request: WorkRequest, schedule: Schedule) -> Brief:
    title = " ".join(request.title.split()) or make_title(request.prompt)
    brief = Brief(
        title=check_text("The title", title, limit=MAX_TITLE_CHARS),
        prompt=request.prompt,
        schedule=schedule,
        notify=request.notify or here.notify,
        # Children may use no more tools than their parent.
        tools=here.tools,
    )
    return create.as_child(here, brief)


def _with_title(tx: Tx, here: Conversation, request: WorkRequest) -> Conversation:
    """Name a chat after its work, unless the user has named it."""
    if not request.title.strip():
        return here
    said = tx.messages.recent(here.user_id, here.id, limit=MESSAGES_SEARCHED)
    if here.title not in ("", *(make_title(message.content) for message in said)):
        return here
    return transitions.rename(here, request.title).conversation


def _with_notify(conversation: Conversation, request: WorkRequest) -> Conversation:
    return replace(conversation, notify=request.notify or conversation.notify)


def _load(tx: Tx, turn: Turn) -> WorkList:
    here = tx.conversations.load(turn.user_id, turn.conversation_id)
    return WorkList(
        own=here if lookup.is_open(here) else None,
        children=tx.conversations.open_children(turn.user_id, turn.conversation_id),
        zone=tx.users.load(turn.user_id).zone,
        now=tx.now,
    )


def _is_outside(work: Conversation) -> bool:
    """Check whether the prompt or the question of work may be outside text."""
    asks = any(question.outside for question in work.questions)
    return asks or CONTEXT_MARK in work.state.outside


def _find(name: str, works: WorkList) -> Sequence[Conversation]:
    """Find work by name: exactly one, or all of it for `all`."""
    matches = lookup.find_named(name, works.own, works.children)
    if not matches and not name.strip():
        raise Conflict("There is no background work here.")
    if not matches:
        raise NotFound(
            f"No work here is called {name.strip()[:80]!r}.", hint="List the work with list_work."
        )
    if len(matches) > 1 and not lookup.means_all(name):
        names = ", ".join(_name(work, works) for work in matches)
        raise BadRequest(f"Several match: {names}.", hint="Name one of them, or `all`.")
    return matches


def _name(work: Conversation, works: WorkList) -> str:
    if work is works.own:
        # Its title is that of the chat, which may not describe the work.
        return f"`this` ({make_title(str(work.state.context.get('prompt', work.title)))})"
    return f"{work.title!r} ({work.id})"


def _find_one(name: str, works: WorkList) -> Conversation:
    work, *others = _find(name, works)
    if others:
        raise BadRequest("Only one task can be changed at a time.", hint="Name one of them.")
    return work


def _stop(tx: Tx, turn: Turn, conversation_id: ConversationId) -> Conversation:
    work = tx.conversations.lock(turn.user_id, conversation_id)
    # It may have ended meanwhile, or been stopped by an attempt whose result was lost.
    if lookup.is_open(work):
        by_itself = conversation_id == turn.conversation_id
        step = transitions.cancel(work, now=tx.now, by_parent=not by_itself, by_itself=by_itself)
        save(tx, step)
    return work
