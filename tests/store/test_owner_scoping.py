"""Whoever has only the ids finds nothing: every function of the store wants the owner as well.

The functions are found by what they take, so one that is added needs an entry here.
"""

import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from inspect import isfunction
from typing import Any, get_args, get_type_hints

import pytest
from sqlalchemy import Connection, Table, select, update
from sqlalchemy.exc import IntegrityError
from support.stage import make
from support.stage.make import NOON, STRANGER, USER
from support.stage.scene import LEASE, Scene, read_everything

from backburner import store
from backburner.core import ids, transitions
from backburner.core.allowance import Allowance, AllowanceScope, Amount, Cost
from backburner.core.conversation import Conversation, Destination
from backburner.core.errors import Conflict, Fenced, NotFound
from backburner.core.ids import GrantId, NoticeId, QuestionId, UserId
from backburner.core.notice import Notice, NoticeKind
from backburner.core.question import Purpose
from backburner.core.run import (
    ItemKind,
    NewItem,
    RunEnding,
    RunKind,
    RunStatus,
    SkippedSlots,
    SkipReason,
    Turn,
)
from backburner.core.schedule import After, Gap, Interval
from backburner.core.tool_policy import Grant, Tool, ToolCall
from backburner.core.transitions import Step
from backburner.core.transitions.step import system_message
from backburner.core.work.discovery import Presence
from backburner.ports import Claim, ConversationFilter, ConversationPage, NewMemory, SpendingState
from backburner.store import steps, tables
from backburner.store.db import Database
from backburner.store.queries import browse_conversations, browse_work, discovery
from backburner.store.queue import turns
from backburner.store.records import (
    conversations,
    grants,
    inbox,
    memories,
    messages,
    notices,
    questions,
    runs,
    sessions,
    spending,
    tool_calls,
    waits,
)

#: What says whose something is.
OWNERS = (UserId, Turn, Conversation, Step)
IDS = tuple(kind for kind in vars(ids).values() if hasattr(kind, "__supertype__"))
REFUSALS = (NotFound, Fenced, Conflict, IntegrityError)

#: They make something of the caller's own, and look up nothing.
BIRTHS = {"conversations.add", "steps.add", "users.add"}


@dataclass(frozen=True)
class Home:
    """What a user has: conversations with everything in them."""

    held: Claim
    #: Held too, by somebody who has been asked to stop.
    stopping: Claim
    #: With a message, an item, a question, a grant, and a run that was handed back.
    kept: Conversation
    queued: Claim
    item: ids.ItemId
    #: With a run that was handed back until something happens, and parked.
    idle: Conversation
    #: Calls of the run that is held: one under way, and one that nobody knows about.
    call: ids.CallId
    doubtful: ids.CallId
    #: A message that was said, and a notice that was given.
    said: ids.MessageId
    told: NoticeId
    #: What looks for work.
    looks: Conversation


Attempt = Callable[[Connection, UserId, Home], object]

GRANT = Grant(id=GrantId("g_new"), server="s", tool="t", definition="d")
OLD_GRANT = replace(GRANT, id=GrantId("g_old"))
SINGLE_USE = replace(GRANT, id=GrantId("g_once"), call="digest")
CALL = ToolCall(Tool(server="s", name="t", definition="d"), {})
MEMORY = NewMemory(key="key", text="text")
COST = Cost(Amount(1, 1), priced=True)
ALLOWANCE = Allowance(AllowanceScope.CONVERSATION, 1, 1)
EVENT = NewItem(kind=ItemKind.EVENT, run_kind=RunKind.BACKGROUND)
SKIPPED = SkippedSlots(Gap(1, NOON, NOON), SkipReason.MISSED)
ABOUT_ALLOWANCE = make.question(
    id=QuestionId("q_allowance"), purpose=Purpose.ALLOWANCE, binds_to={"about": "all of it"}
)
SAID = (system_message("Said."),)
TOLD = (Notice(NoticeKind.RESULT, "Told."),)
SUCCESS = RunEnding(status=RunStatus.SUCCESS)


def turn_of(me: UserId, home: Home) -> Turn:
    return replace(home.held.turn, user_id=me)


def held_by(me: UserId, home: Home) -> Step:
    return Step(conversation=replace(home.held.conversation, user_id=me))


def kept_by(me: UserId, home: Home) -> Conversation:
    return replace(home.kept, user_id=me, title="Changed")


def _without(found: object, nothing: object) -> object:
    return None if found == nothing else found


ATTEMPTS: dict[str, Attempt] = {
    "browse_conversations.one": lambda db, me, home: browse_conversations.one(db, me, home.kept.id),
    "browse_conversations.page": lambda db, me, _: _without(
        browse_conversations.page(db, me, ConversationFilter(words="work"), None, limit=9),
        ConversationPage([], None),
    ),
    "browse_work.calls_of": lambda db, me, home: browse_work.calls_of(db, me, home.held.run.id),
    "browse_work.one_message": lambda db, me, home: browse_work.one_message(
        db, me, ids.MessageId(home.said)
    ),
    "browse_work.one_question": lambda db, me, _: browse_work.one_question(db, me, make.QUESTION),
    "browse_work.page_of_messages": lambda db, me, home: browse_work.page_of_messages(
        db, me, home.kept.id, None, limit=9
    ),
    "browse_work.page_of_notices": lambda db, me, _: browse_work.page_of_notices(
        db, me, None, unseen=False, limit=9
    ),
    "browse_work.page_of_questions": lambda db, me, _: browse_work.page_of_questions(
        db, me, None, limit=9
    ),
    "browse_work.page_of_runs": lambda db, me, home: browse_work.page_of_runs(
        db, me, home.kept.id, None, limit=9
    ),
    "browse_work.require": lambda db, me, home: browse_work.require(db, me, home.kept.id),
    "turns.commit": lambda db, me, home: turns.commit(
        db, turn_of(me, home), held_by(me, home), SUCCESS, now=NOON
    ),
    "turns.hand_back": lambda db, me, home: turns.hand_back(
        db, turn_of(me, home), held_by(me, home), until=None, now=NOON
    ),
    "turns.hold": lambda db, me, home: turns.hold(db, turn_of(me, home)),
    "turns.is_cancelled": lambda db, me, home: turns.is_cancelled(db, me, home.stopping.run.id),
    "turns.is_committed": lambda db, me, home: turns.is_committed(
        db, replace(home.queued.turn, user_id=me)
    ),
    "turns.note_outside": lambda db, me, home: turns.note_outside(db, turn_of(me, home)),
    "turns.renew": lambda db, me, home: turns.renew(db, turn_of(me, home), lease=LEASE, tick=1),
    "conversations.children": lambda db, me, home: conversations.children(db, me, home.kept.id),
    "conversations.followers": lambda db, me, home: conversations.followers(db, me, home.kept.id),
    "conversations.load": lambda db, me, home: conversations.load(db, me, home.kept.id),
    "conversations.lock": lambda db, me, home: conversations.lock(db, me, home.kept.id),
    "conversations.open_children": lambda db, me, home: conversations.open_children(
        db, me, home.kept.id
    ),
    "conversations.parked": lambda db, me, _: conversations.parked(db, me),
    "conversations.person_waits": lambda db, me, home: conversations.person_waits(
        db, me, home.kept.id
    ),
    "conversations.remove": lambda db, me, home: conversations.remove(
        db, me, home.kept.id, now=NOON
    ),
    "conversations.save": lambda db, me, home: conversations.save(db, kept_by(me, home), now=NOON),
    "grants.give": lambda db, me, home: grants.give(db, me, home.kept.id, [GRANT], now=NOON),
    "grants.given": lambda db, me, home: grants.given(db, me, home.kept.id),
    "grants.hold_to": lambda db, me, _: grants.hold_to(db, me, replace(OLD_GRANT, words=("git",))),
    "grants.one": lambda db, me, _: grants.one(db, me, OLD_GRANT.id),
    "grants.page": lambda db, me, _: grants.page(db, me, None, limit=9),
    "grants.revoke": lambda db, me, _: grants.revoke(db, me, OLD_GRANT.id, now=NOON),
    "grants.use": lambda db, me, home: grants.use(db, me, home.kept.id, SINGLE_USE.id, now=NOON),
    "grants.valid": lambda db, me, home: grants.valid(db, me, home.kept.id),
    "inbox.put": lambda db, me, home: inbox.put(
        db, me, home.kept.id, [replace(EVENT, id=ids.new_item_id())], now=NOON
    ),
    "inbox.serve": lambda db, me, home: inbox.serve(
        db, me, [home.item], run_id=home.held.run.id, now=NOON
    ),
    "inbox.served_by": lambda db, me, home: inbox.served_by(
        db, me, home.kept.id, home.queued.run.id
    ),
    "inbox.settle": lambda db, me, home: inbox.settle(db, me, home.kept.id, kind=None, now=NOON),
    "inbox.take_back": lambda db, me, home: inbox.take_back(
        db, me, home.kept.id, home.queued.run.id
    ),
    "inbox.waiting": lambda db, me, home: inbox.waiting(db, me, home.kept.id, RunKind.REPLY),
    "tool_calls.begin": lambda db, me, home: tool_calls.begin(
        db, turn_of(me, home), ids.new_call_id(), CALL, read_only=False, grant=None, now=NOON
    ),
    "tool_calls.end": lambda db, me, home: tool_calls.end(
        db, turn_of(me, home), home.call, "Done.", failed=False, now=NOON
    ),
    "tool_calls.give_up": lambda db, me, home: tool_calls.give_up(db, turn_of(me, home), now=NOON),
    "tool_calls.has_begun": lambda db, me, home: tool_calls.has_begun(
        db, turn_of(me, home), home.call
    ),
    "tool_calls.of_run": lambda db, me, home: tool_calls.of_run(db, me, home.held.run.id),
    "tool_calls.settle": lambda db, me, home: tool_calls.settle(
        db, me, home.doubtful, "It happened.", now=NOON
    ),
    "discovery.find": lambda db, me, _: discovery.find(db, me),
    "discovery.pass_over": lambda db, me, home: discovery.pass_over(
        db, replace(home.looks, user_id=me, next_run_at=None)
    ),
    "discovery.presence": lambda db, me, _: _without(
        discovery.presence(db, me), Presence(last_message_at=None, awaits_reply=False)
    ),
    "discovery.talk": lambda db, me, _: discovery.talk(db, me, limit=9),
    "memories.count": lambda db, me, _: memories.count(db, me),
    "memories.one": lambda db, me, _: memories.one(db, me, "key"),
    "memories.page": lambda db, me, _: memories.page(db, me, None, limit=9),
    "memories.recall": lambda db, me, _: memories.recall(db, me, ["text"], limit=9),
    "memories.remove": lambda db, me, _: memories.remove(db, me, "key"),
    "memories.search": lambda db, me, _: memories.search(db, me, ["text"], limit=9),
    "messages.append": lambda db, me, home: messages.append(
        db, me, home.kept.id, SAID, run_id=None, now=NOON
    ),
    "messages.recent": lambda db, me, home: messages.recent(db, me, home.kept.id, limit=9),
    "messages.take_back_last": lambda db, me, home: messages.take_back_last(
        db, me, home.kept.id, now=NOON
    ),
    "notices.put": lambda db, me, home: notices.put(
        db, kept_by(me, home), TOLD, cause="new", run_id=None, now=NOON
    ),
    "notices.see": lambda db, me, home: notices.see(db, me, [home.told], now=NOON),
    "notices.see_until": lambda db, me, home: notices.see_until(db, me, home.told, now=NOON),
    "questions.allowances_asked_about": lambda db, me, _: questions.allowances_asked_about(db, me),
    "questions.close": lambda db, me, _: questions.close(db, me, make.QUESTION, "yes", now=NOON),
    "questions.conversation_of": lambda db, me, _: questions.conversation_of(db, me, make.QUESTION),
    "questions.open_of": lambda db, me, home: questions.open_of(db, me, home.kept.id),
    "questions.purposes": lambda db, me, _: questions.purposes(db, me, [make.QUESTION]),
    "questions.open_of_all": lambda db, me, home: questions.open_of_all(db, me, [home.kept.id]),
    "questions.put": lambda db, me, home: questions.put(
        db, me, home.kept.id, [make.question(id=QuestionId("q_new"))]
    ),
    "questions.put_off": lambda db, me, _: questions.put_off(db, me, make.question(reminders=7)),
    "questions.was_asked": lambda db, me, _: questions.was_asked(db, me, make.QUESTION),
    "runs.ask_to_stop": lambda db, me, home: runs.ask_to_stop(
        db, me, home.held.conversation.id, kind=None, now=NOON
    ),
    "runs.draft": lambda db, me, home: runs.draft(db, turn_of(me, home), "So far.", now=NOON),
    "runs.drop_queued": lambda db, me, home: runs.drop_queued(
        db, me, home.kept.id, kind=None, now=NOON
    ),
    "runs.end": lambda db, me, home: runs.end(db, me, home.held.run.id, SUCCESS, now=NOON),
    "runs.go_on": lambda db, me, home: runs.go_on(
        db, me, home.queued.run.id, epoch=9, unattended=True, worker="another"
    ),
    "runs.history": lambda db, me, home: runs.history(db, me, home.kept.id, limit=9),
    "runs.is_proven": lambda db, me, home: runs.is_proven(
        db, me, home.queued.run.id, home.queued.turn.epoch
    ),
    "runs.load": lambda db, me, home: runs.load(db, me, home.held.run.id),
    "runs.prove": lambda db, me, home: runs.prove(db, me, home.held.run.id, 99, now=NOON),
    "runs.queue": lambda db, me, home: runs.queue(db, me, home.held.run.id, until=None),
    "runs.queued": lambda db, me, home: runs.queued(db, me, home.kept.id),
    "runs.skip": lambda db, me, home: runs.skip(
        db, me, home.kept.id, [SKIPPED], revision=1, now=NOON
    ),
    "runs.let_go_on": lambda db, me, home: runs.let_go_on(db, me, home.idle.id, at=NOON),
    "sessions.append": lambda db, me, home: sessions.append(db, turn_of(me, home), "s", ["new"]),
    "sessions.forget": lambda db, me, home: sessions.forget(db, me, home.held.conversation.id, "s"),
    "sessions.has_remembered": lambda db, me, home: sessions.has_remembered(
        db, replace(home.queued.turn, user_id=me)
    ),
    "sessions.load": lambda db, me, home: sessions.load(db, turn_of(me, home), "s"),
    "spending.account": lambda db, me, home: _without(
        spending.account(db, me, home.kept.id, ["user"]), SpendingState({}, [], [])
    ),
    "spending.has_spent": lambda db, me, home: spending.has_spent(db, turn_of(me, home), NOON),
    "spending.disallow": lambda db, me, _: spending.disallow(db, me, AllowanceScope.DAY),
    "steps.save": lambda db, me, home: steps.save(
        db, Step(conversation=kept_by(me, home), messages=SAID), cause="new", now=NOON
    ),
    "steps.write_down": lambda db, me, home: steps.write_down(
        db,
        Step(conversation=kept_by(me, home), messages=SAID),
        cause="new",
        run_id=None,
        now=NOON,
    ),
    "waits.awaited_by": lambda db, me, home: waits.awaited_by(db, me, home.kept.id, make.OTHER),
    "waits.begin": lambda db, me, home: waits.begin(
        db, turn_of(me, home), {make.OTHER: False}, now=NOON
    ),
    "waits.let_go_on": lambda db, me, home: waits.let_go_on(db, me, home.kept.id, now=NOON - LEASE),
    "waits.settle": lambda db, me, _: waits.settle(db, me, make.OTHER, now=NOON),
    "waits.take": lambda db, me, home: waits.take(db, me, home.queued.run.id),
}


#: They write down what is the caller's own affair, whatever ids it names.
OF_THEIR_OWN: dict[str, Attempt] = {
    "memories.put": lambda db, me, _: memories.put(db, me, MEMORY, now=NOON),
    "spending.add": lambda db, me, home: spending.add(
        db, turn_of(me, home), home.kept.id, "model", COST, counts_to=["user"], now=NOON
    ),
    "spending.allow": lambda db, me, home: spending.allow(db, me, ALLOWANCE, home.kept.id),
}
#: They are about a user as such: whoever calls them has made sure that it is the caller.
OF_A_USER = {
    *("users.describe", "users.load", "users.lock", "users.pause_everything", "users.set_zone"),
}


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield every public function that reads or writes rows, named with its module."""
    for found in pkgutil.walk_packages(store.__path__, f"{store.__name__}."):
        if ".migrations" in found.name:
            continue
        module = import_module(found.name)
        for name, value in vars(module).items():
            is_own = isfunction(value) and value.__module__ == module.__name__
            if is_own and not name.startswith("_") and takes(value, (Connection,)):
                yield f"{found.name.rpartition('.')[2]}.{name}", value


def takes(function: Callable[..., Any], kinds: tuple[Any, ...]) -> bool:
    """See whether any of these is among what a function takes, also inside of something else."""
    hints = get_type_hints(function)
    hints.pop("return", None)
    return any(_is_among(hint, kinds) for hint in hints.values())


def _is_among(hint: Any, kinds: tuple[Any, ...]) -> bool:
    return hint in kinds or any(_is_among(part, kinds) for part in get_args(hint))


def furnish(scene: Scene) -> Home:
    """Let the user have everything there is, and the stranger be there."""
    scene.user(STRANGER)
    idle = _begin(scene)
    scene.hand_back(idle, after=None)
    scene.change(idle.conversation, transitions.pause_for_allowance)
    kept = scene.task(
        Interval(LEASE, anchor=NOON), reports_to=(Destination("discord", "somebody"),)
    )
    queued = scene.begin_work()
    scene.run(lambda db: inbox.put(db, USER, kept.id, [EVENT], now=NOON))
    scene.run(lambda db: sessions.append(db, queued.turn, "s", ["entry"]))
    scene.hand_back(queued, served=scene.items(queued))
    scene.run(lambda db: waits.begin(db, queued.turn, {make.OTHER: False}, now=NOON))
    scene.change(kept, lambda found: transitions.ask_owner(found, make.question()))
    scene.change(kept, lambda found: transitions.ask_owner(found, ABOUT_ALLOWANCE))
    scene.change(kept, lambda found: Step(conversation=found, grants=(OLD_GRANT, SINGLE_USE)))
    scene.say(kept)
    scene.task(After(kept.id), parent_id=kept.id)
    held, stopping = _begin(scene), _begin(scene)
    scene.run(lambda db: sessions.append(db, held.turn, "s", ["entry"]))
    scene.change(stopping.conversation, lambda found: transitions.cancel(found, now=NOON))
    call, doubtful = _made_calls(scene, held)
    (item,) = scene.waiting(kept, RunKind.REPLY)
    kept = scene.load(kept)
    scene.run(lambda db: notices.put(db, kept, TOLD, cause="old", run_id=None, now=NOON))
    scene.run(lambda db: spending.allow(db, USER, Allowance(AllowanceScope.DAY, 1, 1), kept.id))
    home = Home(
        *(held, stopping, kept, queued, item.id, idle.conversation, call, doubtful),
        *(_only_id(scene, tables.messages), _only_id(scene, tables.notices)),
        scene.discovery(every=LEASE),
    )
    scene.say(scene.chat())
    for attempt in OF_THEIR_OWN.values():
        scene.run(_for_user(attempt, home))
    return home


def _only_id(scene: Scene, table: Table) -> Any:
    return scene.run(lambda db: db.execute(select(table.c.id).limit(1)).scalar_one())


def _for_user(attempt: Attempt, home: Home) -> Callable[[Connection], object]:
    return lambda db: attempt(db, USER, home)


def _made_calls(scene: Scene, claim: Claim) -> list[ids.CallId]:
    def begin(db: Connection) -> ids.CallId:
        which = ids.new_call_id()
        tool_calls.begin(db, claim.turn, which, CALL, read_only=False, grant=None, now=NOON)
        return which

    calls = [scene.run(begin), scene.run(begin)]
    unknown = update(tables.tool_calls).where(tables.tool_calls.c.id == calls[1])
    scene.run(lambda db: db.execute(unknown.values(state="unknown")))
    return calls


def _begin(scene: Scene) -> Claim:
    scene.task()
    return scene.begin_work()


@pytest.fixture
def scene(database: Database) -> Scene:
    return Scene(database)


@pytest.fixture
def home(scene: Scene) -> Home:
    return furnish(scene)


class UndoneError(Exception):
    """Ends a transaction without a trace."""


def test_every_function_that_takes_an_owner_has_an_entry_here() -> None:
    named = {name for name, function in functions() if takes(function, OWNERS)}

    assert named - BIRTHS - OF_A_USER == ATTEMPTS.keys() | OF_THEIR_OWN.keys()


def test_every_function_that_takes_an_id_takes_its_owner_too() -> None:
    others = tuple(kind for kind in IDS if kind is not UserId)
    ownerless = {
        name
        for name, function in functions()
        if takes(function, others) and not takes(function, OWNERS)
    }

    assert ownerless == set()


def test_a_stranger_with_the_ids_finds_nothing_and_changes_nothing(
    scene: Scene, home: Home
) -> None:
    before = scene.dump()
    for name in ATTEMPTS:
        assert not _attempt(scene, name, home), name
        assert scene.dump() == before, name


def test_a_stranger_who_has_the_same_ids_reaches_only_what_is_theirs(
    scene: Scene, home: Home
) -> None:
    for conversation in (home.kept, home.held.conversation):
        scene.add(Step(conversation=replace(conversation, user_id=STRANGER, questions=())))
    before = _rows_of_user(scene)
    for name in ATTEMPTS:
        _attempt(scene, name, home)
        assert _rows_of_user(scene) == before, name


def test_the_owner_with_the_same_ids_finds_or_changes_something(scene: Scene, home: Home) -> None:
    for name, attempt in ATTEMPTS.items():
        assert _does_something(scene, attempt, home), name


def _attempt(scene: Scene, name: str, home: Home) -> object:
    try:
        return scene.run(lambda db: ATTEMPTS[name](db, STRANGER, home))
    except REFUSALS:
        return None


def _rows_of_user(scene: Scene) -> list[str]:
    return [row for rows in scene.dump().values() for row in rows if f"'{USER}'" in row]


def _does_something(scene: Scene, attempt: Attempt, home: Home) -> bool:
    seen = []

    def work(db: Connection) -> None:
        before = read_everything(db)
        seen.append(bool(attempt(db, USER, home)) or read_everything(db) != before)
        raise UndoneError

    with pytest.raises(UndoneError):
        scene.run(work)
    return seen == [True]


@pytest.mark.parametrize("name", OF_THEIR_OWN)
def test_what_a_stranger_writes_down_is_their_own(scene: Scene, home: Home, name: str) -> None:
    before = _all_rows(scene)

    scene.run(lambda db: OF_THEIR_OWN[name](db, STRANGER, home))

    after = _all_rows(scene)
    assert before < after
    assert all(STRANGER in row for row in after - before)


def _all_rows(scene: Scene) -> set[str]:
    return {row for rows in scene.dump().values() for row in rows}
