"""What can be claimed, as statements: replies that people wait for, and work that may be done.

A turn that somebody has, expired or not, is never among it. Nor is work in a conversation where a
person waits, or where the same kind of run was handed back and has yet to go on.
"""

from itertools import product

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
    union_all,
)

from backburner.core.run import RunKind
from backburner.store.tables import (
    conversations,
    inbox,
    is_due_some_time,
    is_queued,
    is_running,
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


_is_due = and_(
    is_due_some_time,
    conversations.c.next_run_at <= bindparam("now"),
    _no_person_waits(),
    _none_is_queued(RunKind.BACKGROUND),
)
_has_work_item = and_(
    unserved,
    not_(inbox.c.from_person),
    is_open,
    _no_person_waits(),
    or_(
        and_(inbox.c.run_kind == text("'reply'"), _none_is_queued(RunKind.REPLY)),
        and_(
            inbox.c.run_kind == text("'background'"),
            or_(
                conversations.c.status == text("'background'"),
                and_(conversations.c.status == text("'active'"), inbox.c.at_once),
            ),
            _none_is_queued(RunKind.BACKGROUND),
        ),
    ),
)
_may_go_on = and_(
    is_queued,
    runs.c.wait_until <= bindparam("now"),
    is_open,
    _no_person_waits(),
    or_(
        runs.c.kind == text("'reply'"),
        conversations.c.status != text("'waiting_input'"),
    ),
)
_run_of_conversation = and_(
    runs.c.user_id == conversations.c.user_id, runs.c.conversation_id == conversations.c.id
)

_ONE = literal_column("1", Integer)
person_first = (
    select(conversations)
    .join(inbox, _same_conversation)
    .where(unserved, inbox.c.from_person, is_open)
    .order_by(inbox.c.arrived_at, inbox.c.id)
    .limit(_ONE)
    .with_for_update(of=conversations, skip_locked=True, key_share=True)
)
this_person = person_first.where(
    conversations.c.user_id == bindparam("owner"), conversations.c.id == bindparam("which")
)
#: From as many rows on, each of which may be claimable, there is a lot.
A_LOT = 200


def _count(*conditions: ColumnElement[bool]) -> ScalarSelect[int]:
    found = select(_ONE.label("one")).where(*conditions).limit(literal_column(str(A_LOT), Integer))
    return select(func.count()).select_from(found.subquery()).scalar_subquery()


#: How much there may be to claim, counted up to a lot; where there is nothing it reads nothing.
how_much = select(
    _count(is_due_some_time, conversations.c.next_run_at <= bindparam("now")).label("due"),
    (
        _count(unserved, not_(inbox.c.from_person))
        + _count(is_queued, runs.c.wait_until <= bindparam("now"))
    ).label("more"),
)
_have_all_they_may = (
    select(runs.c.user_id)
    .where(is_running, runs.c.unattended)
    .group_by(runs.c.user_id)
    .having(func.count() >= bindparam("cap"))
)
_have_due = select(conversations.c.user_id).where(_is_due)
_have_items = select(inbox.c.user_id).join(conversations, _same_conversation).where(_has_work_item)
_have_queued = select(runs.c.user_id).join(conversations, _run_of_conversation).where(_may_go_on)


def _has_one(having: Select[str]) -> ColumnElement[bool]:
    """Ask a user; not with EXISTS, for which PostgreSQL may gather everybody's first."""
    (owner,) = having.selected_columns
    return having.where(owner == users.c.id).limit(_ONE).scalar_subquery().is_not(None)


def _whose_turn(*, much_due: bool, much_more: bool, waits: bool) -> Select[str]:
    """Find whose turn it is: of what there is a lot user by user, of the rest all at once."""
    more = [_have_items, _have_queued]
    asked = [*([_have_due] if much_due else []), *(more if much_more else [])]
    gathered = [*([] if much_due else [_have_due]), *([] if much_more else more)]
    conditions = [_has_one(having) for having in asked]
    if gathered:
        conditions.append(users.c.id.in_(union_all(*gathered)))
    # For a few: the same order, in words that no index has, or PostgreSQL may go through all users.
    in_disguise = case((users.c.paused, users.c.created_at), else_=users.c.served_at)
    return (
        select(users.c.id)
        .where(not_(users.c.paused), users.c.id.not_in(_have_all_they_may), or_(*conditions))
        .order_by(users.c.served_at if asked else in_disguise, users.c.id)
        .limit(_ONE)
        # Whoever adds something of theirs does not have to wait.
        .with_for_update(of=users, key_share=True, skip_locked=not waits)
    )


#: By whether a lot is due, whether there is a lot of the rest, and whether to wait for locks.
whose_turn = {
    (much_due, much_more, waits): _whose_turn(much_due=much_due, much_more=much_more, waits=waits)
    for much_due, much_more, waits in product((False, True), repeat=3)
}

_owner, _which = bindparam("owner", type_=Text()), bindparam("which", type_=Text())
#: Of each kind: somebody may have the first ones locked.
_SOME = literal_column("5", Integer)
_waiting = union_all(
    select(
        select(conversations.c.id, conversations.c.next_run_at.label("since"))
        .where(conversations.c.user_id == _owner, _is_due)
        .order_by(conversations.c.next_run_at)
        .limit(_SOME)
        .subquery()
    ),
    select(
        select(inbox.c.conversation_id.label("id"), inbox.c.arrived_at.label("since"))
        .join(conversations, _same_conversation)
        .where(inbox.c.user_id == _owner, _has_work_item)
        .order_by(inbox.c.arrived_at)
        .limit(_SOME)
        .subquery()
    ),
    select(
        select(runs.c.conversation_id.label("id"), runs.c.wait_until.label("since"))
        .join(conversations, _run_of_conversation)
        .where(runs.c.user_id == _owner, _may_go_on)
        .order_by(runs.c.wait_until)
        .limit(_SOME)
        .subquery()
    ),
).subquery("waiting")
_under_way = (
    select(func.count())
    .select_from(runs)
    .where(runs.c.user_id == _owner, is_running, runs.c.unattended)
    .scalar_subquery()
)
#: What has waited longest, of a user whose row is locked and who may have one more run.
longest_waiting = (
    select(conversations)
    .join(_waiting, _waiting.c.id == conversations.c.id)
    .where(conversations.c.user_id == _owner, is_open, _under_way < bindparam("cap"))
    .order_by(_waiting.c.since)
    .limit(_ONE)
    .with_for_update(of=conversations, skip_locked=True, key_share=True)
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
