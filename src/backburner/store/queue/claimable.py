"""What can be claimed, as statements: replies that people wait for, and work that may be done.

A turn that somebody has, expired or not, is never among it. Nor is work in a conversation where a
person waits, or where the same kind of run was handed back and has yet to go on.

To find out whose turn it is, users are asked one after the other about that of which there is a
lot, and gathered from the rest; with little to do that is far less than asking everybody.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Integer,
    ScalarSelect,
    Select,
    Text,
    and_,
    bindparam,
    case,
    exists,
    func,
    literal_column,
    not_,
    or_,
    select,
    text,
    true,
    union_all,
)

from backburner.core.run import RunKind
from backburner.store.tables import (
    PAUSED,
    conversations,
    inbox,
    install,
    is_due_some_time,
    is_queued,
    is_running,
    memories,
    runs,
    unserved,
    users,
)

is_free = conversations.c.turn_run.is_(None)
is_open = and_(is_free, conversations.c.status != text("'archived'"))
_same_conversation = and_(
    inbox.c.user_id == conversations.c.user_id, inbox.c.conversation_id == conversations.c.id
)


def _no_person_waits() -> ColumnElement[bool]:
    waiting = inbox.alias("person")
    return not_(
        exists().where(
            waiting.c.user_id == conversations.c.user_id,
            waiting.c.conversation_id == conversations.c.id,
            waiting.c.served_at.is_(None),
            waiting.c.from_person,
        )
    )


def _none_is_queued(kind: RunKind) -> ColumnElement[bool]:
    handed_back = runs.alias(f"queued_{kind.value}")
    return not_(
        exists().where(
            handed_back.c.user_id == conversations.c.user_id,
            handed_back.c.conversation_id == conversations.c.id,
            handed_back.c.status == text("'queued'"),
            handed_back.c.kind == text(f"'{kind.value}'"),
        )
    )


_run_of_conversation = and_(
    runs.c.user_id == conversations.c.user_id, runs.c.conversation_id == conversations.c.id
)
_owner, _which = bindparam("owner", type_=Text()), bindparam("which", type_=Text())
_ONE = literal_column("1", Integer)
#: Of each kind: somebody may have the first ones locked.
_SOME = literal_column("5", Integer)
#: From as many rows on, each of which may be claimable, there is a lot.
A_LOT = 200


def _count(*conditions: ColumnElement[bool]) -> ScalarSelect[int]:
    found = select(_ONE.label("one")).where(*conditions).limit(literal_column(str(A_LOT), Integer))
    return select(func.count()).select_from(found.subquery()).scalar_subquery()


def _how_much(now: ColumnElement[Any]) -> Any:
    return select(
        exists().where(unserved, inbox.c.from_person).label("people"),
        _count(is_due_some_time, conversations.c.next_run_at <= now).label("due"),
        (
            _count(unserved, not_(inbox.c.from_person))
            + _count(is_queued, runs.c.wait_until <= now)
        ).label("more"),
        exists().where(install.c.key == text(f"'{PAUSED}'")).label("all_paused"),
    )


#: How much there may be to claim, counted up to a lot; where there is nothing it reads nothing.
how_much = _how_much(bindparam("now", type_=conversations.c.next_run_at.type))
#: The same by the clock of the database, and what that says.
how_much_now = _how_much(func.statement_timestamp()).add_columns(
    func.statement_timestamp().label("clock")
)
_have_all_they_may = (
    select(runs.c.user_id)
    .where(is_running, runs.c.unattended)
    .group_by(runs.c.user_id)
    .having(func.count() >= bindparam("cap"))
)
_under_way = (
    select(func.count())
    .select_from(runs)
    .where(runs.c.user_id == _owner, is_running, runs.c.unattended)
    .scalar_subquery()
)


def _is_there(*conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    waits = and_(inbox.c.user_id == _owner, inbox.c.conversation_id == _which, unserved)
    return exists().where(waits, *conditions)


_for_work = inbox.c.run_kind == text("'background'")
#: Why something may be done in a conversation, apart from its schedule.
reasons = select(
    _is_there(inbox.c.from_person).label("person"),
    _is_there(inbox.c.run_kind == text("'reply'")).label("reply"),
    _is_there(_for_work).label("work"),
    _is_there(_for_work, inbox.c.at_once).label("work_at_once"),
    exists()
    .where(runs.c.user_id == _owner, runs.c.conversation_id == _which, is_queued)
    .label("queued"),
)


@dataclass(frozen=True, slots=True)
class Statements:
    """What claims are made with."""

    #: The conversation in which somebody has waited longest for a reply.
    person_first: Select[Any]
    #: Whose turn it is, by whether a lot is due, whether there is a lot of the rest, and whether
    #: to wait for locks.
    whose_turn: Mapping[tuple[bool, bool, bool], Select[Any]]
    #: What has waited longest, of a user whose row is locked and who may have one more run.
    longest_waiting: Select[Any]


@cache
def statements(full: tuple[str, ...] = ()) -> Statements:
    """Make them for a process in which these profiles have no free seat."""
    is_served = conversations.c.profile.not_in(full) if full else true()
    sources = _Sources(is_served)
    return Statements(
        person_first=_person_first(is_served),
        whose_turn={
            (much_due, much_more, waits): sources.whose_turn(
                much_due=much_due, much_more=much_more, waits=waits
            )
            for much_due, much_more, waits in product((False, True), repeat=3)
        },
        longest_waiting=sources.longest_waiting(),
    )


def _person_first(is_served: ColumnElement[bool]) -> Select[Any]:
    return (
        select(conversations)
        .join(inbox, _same_conversation)
        .where(unserved, inbox.c.from_person, is_open, is_served)
        .order_by(inbox.c.arrived_at, inbox.c.id)
        .limit(_ONE)
        .with_for_update(of=conversations, skip_locked=True, key_share=True)
    )


def _due(is_served: ColumnElement[bool]) -> Select[Any]:
    """Give the conversations whose time has come."""
    return select(
        conversations.c.user_id,
        conversations.c.id,
        conversations.c.next_run_at.label("since"),
    ).where(
        is_due_some_time,
        conversations.c.next_run_at <= bindparam("now"),
        is_served,
        _no_person_waits(),
        _none_is_queued(RunKind.BACKGROUND),
    )


def _items(is_served: ColumnElement[bool]) -> Select[Any]:
    """Give those in whose inbox something waits for a run."""
    is_for_reply = and_(inbox.c.run_kind == text("'reply'"), _none_is_queued(RunKind.REPLY))
    is_for_work = and_(
        inbox.c.run_kind == text("'background'"),
        or_(
            conversations.c.status == text("'background'"),
            and_(conversations.c.status == text("'active'"), inbox.c.at_once),
        ),
        _none_is_queued(RunKind.BACKGROUND),
    )
    return (
        select(
            inbox.c.user_id,
            inbox.c.conversation_id.label("id"),
            inbox.c.arrived_at.label("since"),
        )
        .join(conversations, _same_conversation)
        .where(unserved, not_(inbox.c.from_person), is_open, is_served, _no_person_waits())
        .where(or_(is_for_reply, is_for_work))
    )


def _queued(is_served: ColumnElement[bool]) -> Select[Any]:
    """Give those with a run that was handed back and may go on."""
    may_go_on = or_(
        runs.c.kind == text("'reply'"), conversations.c.status != text("'waiting_input'")
    )
    return (
        select(
            runs.c.user_id,
            runs.c.conversation_id.label("id"),
            runs.c.wait_until.label("since"),
        )
        .join(conversations, _run_of_conversation)
        .where(is_queued, runs.c.wait_until <= bindparam("now"), is_open, is_served)
        .where(_no_person_waits(), may_go_on)
    )


_remembers = (
    select(memories.c.key)
    .where(memories.c.user_id == users.c.id)
    .limit(_ONE)
    .correlate(users)
    .scalar_subquery()
    .is_not(None)
    .label("remembers")
)


class _Sources:
    """Where work comes from: schedules, inboxes, and runs that were handed back."""

    def __init__(self, is_served: ColumnElement[bool]) -> None:
        self._due = _due(is_served)
        self._items = _items(is_served)
        self._queued = _queued(is_served)

    def whose_turn(self, *, much_due: bool, much_more: bool, waits: bool) -> Select[Any]:
        more = [self._items, self._queued]
        asked = [*([self._due] if much_due else []), *(more if much_more else [])]
        gathered = [*([] if much_due else [self._due]), *([] if much_more else more)]
        conditions = [_has_one(source) for source in asked]
        if gathered:
            owners = [source.with_only_columns(_owner_of(source)) for source in gathered]
            conditions.append(users.c.id.in_(union_all(*owners)))
        # For a few: the same order, in words that no index has, or PostgreSQL may go through all.
        in_disguise = case((users.c.paused, users.c.created_at), else_=users.c.served_at)
        return (
            select(users.c.id, users.c.zone, _remembers)
            .where(not_(users.c.paused), users.c.id.not_in(_have_all_they_may), or_(*conditions))
            .order_by(users.c.served_at if asked else in_disguise, users.c.id)
            .limit(_ONE)
            # Whoever adds something of theirs does not have to wait.
            .with_for_update(of=users, key_share=True, skip_locked=not waits)
        )

    def longest_waiting(self) -> Select[Any]:
        oldest = [
            select(
                source.where(_owner_of(source) == _owner)
                .order_by(source.selected_columns.since)
                .limit(_SOME)
                .subquery()
            )
            for source in (self._due, self._items, self._queued)
        ]
        waiting = union_all(*oldest).subquery("waiting")
        return (
            select(conversations)
            .join(waiting, waiting.c.id == conversations.c.id)
            .where(conversations.c.user_id == _owner, is_open, _under_way < bindparam("cap"))
            .order_by(waiting.c.since)
            .limit(_ONE)
            .with_for_update(of=conversations, skip_locked=True, key_share=True)
        )


def _owner_of(source: Select[Any]) -> ColumnElement[str]:
    owner: ColumnElement[str] = source.selected_columns.user_id
    return owner


def _has_one(source: Select[Any]) -> ColumnElement[bool]:
    """Ask a user; not with EXISTS, for which PostgreSQL may gather everybody's first."""
    owner = _owner_of(source)
    asked = source.with_only_columns(owner).where(owner == users.c.id).limit(_ONE)
    return asked.scalar_subquery().is_not(None)
