"""Work that an agent arranges from within a conversation: there, under it, or as a proposal."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from backburner.actions import active_limit, create
from backburner.actions.create import WorkReport
from backburner.actions.deps import Deps
from backburner.actions.origin import Origin
from backburner.actions.steps import save
from backburner.core import transitions
from backburner.core.conversation import (
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
from backburner.core.transitions import Brief
from backburner.core.validation import check_text
from backburner.core.work import lookup
from backburner.ports import Tx

FIRST_STEP = "At the beginning."


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkRequest:
    """What is to be done, and when, in words."""

    what: str
    when: str
    title: str = ""
    #: It is one of several things, so none of them is the work of the conversation itself.
    separate: bool = False
    notify: Notify | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkList:
    """What goes on in a conversation: its own work, if it has any, and that of its children."""

    own: Conversation | None
    children: Sequence[Conversation]
    zone: str
    now: datetime


async def arrange(deps: Deps, turn: Turn, wish: WorkRequest) -> WorkReport:
    """Put work into the background; what nobody there has asked for is only proposed."""
    child, tried = new_conversation_id(), list[Conversation]()

    def work(tx: Tx) -> WorkReport:
        tx.users.lock(turn.user_id)
        here = tx.turns.hold(turn)
        # An earlier try may have gone through, and only its answer been lost.
        made = _find_made(tx, here, tried)
        if made is None:
            made = _make(tx, deps, turn, child, here, wish)
            tried.append(made)
        return create.report(tx, made)

    return await deps.store.transact(work)


async def rearrange(deps: Deps, turn: Turn, called: str, wish: WorkRequest) -> WorkReport:
    """Give work that is there another time, and if something is said of it, another content."""

    def work(tx: Tx) -> WorkReport:
        zone = tx.users.lock(turn.user_id).zone
        if not Origin.of(turn).may_start(tx.turns.hold(turn)):
            raise Conflict(
                "Work cannot be changed from here: what was read may have put the idea there.",
                hint="Schedule it anew, without `change`: the owner is asked about it."
                " Stop the old work with stop_work.",
            )
        found = tx.conversations.lock(turn.user_id, _only(called, _works(tx, turn)).id)
        schedule = parse_schedule(wish.when, zone=zone, now=tx.now)
        step = transitions.set_schedule(
            _with_manner(found, wish), schedule, now=tx.now, state=_changed(found, wish)
        )
        active_limit.check(deps, tx, step.conversation, before=found)
        save(tx, step)
        return create.report(tx, step.conversation)

    return await deps.store.transact(work)


async def stop(deps: Deps, turn: Turn, called: str) -> Sequence[Conversation]:
    """Stop the work that is called so, here or in a child; without a name, the only one there is.

    Gives what was stopped.
    """
    tried = list[ConversationId]()

    def work(tx: Tx) -> Sequence[Conversation]:
        if not tried:
            tried.extend(one.id for one in _meant(called, _works(tx, turn)))
        if turn.kind is RunKind.BACKGROUND and turn.conversation_id in tried:
            raise Conflict(
                "A run cannot stop the work it belongs to.", hint="End it with complete and final."
            )
        return [_stop(tx, turn, which) for which in tried]

    return await deps.store.transact(work)


async def look(deps: Deps, turn: Turn) -> WorkList:
    """See what goes on in a conversation."""
    return await deps.store.transact(lambda tx: _works(tx, turn))


def _find_made(tx: Tx, here: Conversation, tried: Sequence[Conversation]) -> Conversation | None:
    for made in tried:
        if made.id == here.id:
            is_later = here.schedule_revision >= made.schedule_revision
            if is_later and here.state.context == made.state.context:
                return here
        else:
            with suppress(NotFound):
                return tx.conversations.load(made.user_id, made.id)
    return None


def _make(
    tx: Tx, deps: Deps, turn: Turn, child: ConversationId, here: Conversation, wish: WorkRequest
) -> Conversation:
    origin = Origin.of(turn)
    at_once = origin.may_start(here)
    timed = parse_schedule(wish.when, zone=tx.users.load(turn.user_id).zone, now=tx.now)
    if at_once and not wish.separate and here.schedule is None:
        return _put_here(tx, deps, here, wish, timed)
    return create.start(tx, deps, origin, child, _brief(here, wish, timed))


def _put_here(
    tx: Tx, deps: Deps, here: Conversation, wish: WorkRequest, timed: Schedule
) -> Conversation:
    if not wish.what.strip():
        raise BadRequest("Work needs a description.", hint="Say what is to be done.")
    state = State(context={"prompt": wish.what, "description": ""}, step=FIRST_STEP)
    step = transitions.set_schedule(_with_manner(here, wish), timed, now=tx.now, state=state)
    active_limit.check(deps, tx, step.conversation, before=here)
    save(tx, step)
    return step.conversation


def _brief(here: Conversation, wish: WorkRequest, timed: Schedule) -> Brief:
    brief = Brief(
        title=_title(wish),
        prompt=wish.what,
        schedule=timed,
        notify=wish.notify or here.notify,
        # Children may use no more tools than their parent.
        tools=here.tools,
    )
    return create.under(here, brief)


def _title(wish: WorkRequest) -> str:
    title = " ".join(wish.title.split()) or make_title(wish.what)
    return check_text("The title", title, limit=MAX_TITLE_CHARS)


def _with_manner(found: Conversation, wish: WorkRequest) -> Conversation:
    return found if wish.notify is None else replace(found, notify=wish.notify)


def _changed(found: Conversation, wish: WorkRequest) -> State:
    if not wish.what.strip():
        return found.state
    return replace(found.state, context={**found.state.context, "prompt": wish.what})


def _works(tx: Tx, turn: Turn) -> WorkList:
    here = tx.conversations.load(turn.user_id, turn.conversation_id)
    return WorkList(
        own=here if lookup.is_open(here) else None,
        children=tx.conversations.open_children(turn.user_id, turn.conversation_id),
        zone=tx.users.load(turn.user_id).zone,
        now=tx.now,
    )


def _meant(called: str, works: WorkList) -> Sequence[Conversation]:
    """Find what a name means: one piece of work, or expressly all."""
    found = lookup.find_named(called, works.own, works.children)
    if not found and not called.strip():
        raise Conflict("There is no background work here.")
    if not found:
        raise NotFound(
            f"No work here is called {called.strip()[:80]!r}.",
            hint="list_work shows what there is.",
        )
    if len(found) > 1 and not lookup.means_all(called):
        names = ", ".join(_name(work, works) for work in found)
        raise BadRequest(f"That could be any of these: {names}.", hint="Say which, or `all`.")
    return found


def _name(work: Conversation, works: WorkList) -> str:
    if work is works.own:
        # Its title is that of the talk, which may say nothing of the work.
        return f"`this` ({make_title(str(work.state.context.get('prompt', work.title)))})"
    return f"{work.title!r} ({work.id})"


def _only(called: str, works: WorkList) -> Conversation:
    (found, *others) = _meant(called, works)
    if others:
        raise BadRequest("Only one piece of work can be changed at a time.", hint="Say which.")
    return found


def _stop(tx: Tx, turn: Turn, conversation_id: ConversationId) -> Conversation:
    found = tx.conversations.lock(turn.user_id, conversation_id)
    # It may have ended meanwhile, perhaps by an earlier try whose answer was lost.
    if lookup.is_open(found):
        by_parent = conversation_id != turn.conversation_id
        save(tx, transitions.cancel(found, now=tx.now, by_parent=by_parent))
    return found
