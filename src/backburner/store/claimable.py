"""What can be claimed, as statements: replies that people wait for, and work that may be done.

A turn that somebody has, expired or not, is never among it. Nor is work in a conversation where a
person waits, or where the same kind of run was handed back and has yet to go on.
"""

from sqlalchemy import (
    ColumnElement,
    Text,
    and_,
    bindparam,
    exists,
    func,
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


#: Somebody else has them locked: whoever claims goes on to the next.
_not_passed_over = conversations.c.id.not_in(bindparam("passed_over", expanding=True))
_is_due = and_(
    is_due_some_time,
    conversations.c.next_run_at <= bindparam("now"),
    _not_passed_over,
    _no_person_waits(),
    _none_is_queued(RunKind.BACKGROUND),
)
_has_work_item = and_(
    unserved,
    not_(inbox.c.from_person),
    is_open,
    _not_passed_over,
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
    _not_passed_over,
    _no_person_waits(),
    or_(
        runs.c.kind == text("'reply'"),
        conversations.c.status != text("'waiting_input'"),
    ),
)
_run_of_conversation = and_(
    runs.c.user_id == conversations.c.user_id, runs.c.conversation_id == conversations.c.id
)

person_first = (
    select(conversations)
    .join(inbox, _same_conversation)
    .where(unserved, inbox.c.from_person, is_open)
    .order_by(inbox.c.arrived_at, inbox.c.id)
    .limit(1)
    .with_for_update(of=conversations, skip_locked=True)
)
this_person = person_first.where(
    conversations.c.user_id == bindparam("owner"), conversations.c.id == bindparam("which")
)
_running_of_user = (
    select(func.count())
    .select_from(runs)
    .where(runs.c.user_id == users.c.id, is_running, runs.c.unattended)
    .scalar_subquery()
)
whose_turn = (
    select(users.c.id)
    .where(
        not_(users.c.paused),
        _running_of_user < bindparam("cap"),
        or_(
            exists().where(conversations.c.user_id == users.c.id, _is_due),
            exists().where(inbox.c.user_id == users.c.id, _same_conversation, _has_work_item),
            exists().where(runs.c.user_id == users.c.id, _run_of_conversation, _may_go_on),
        ),
    )
    .order_by(users.c.served_at, users.c.id)
    .limit(1)
    .with_for_update(of=users)
)
_owner = bindparam("owner", type_=Text())
candidates = union_all(
    select(
        select(conversations.c.id, conversations.c.next_run_at.label("since"))
        .where(conversations.c.user_id == _owner, _is_due)
        .order_by(conversations.c.next_run_at)
        .limit(1)
        .subquery()
    ),
    select(
        select(inbox.c.conversation_id.label("id"), inbox.c.arrived_at.label("since"))
        .join(conversations, _same_conversation)
        .where(inbox.c.user_id == _owner, _has_work_item)
        .order_by(inbox.c.arrived_at)
        .limit(1)
        .subquery()
    ),
    select(
        select(runs.c.conversation_id.label("id"), runs.c.wait_until.label("since"))
        .join(conversations, _run_of_conversation)
        .where(runs.c.user_id == _owner, _may_go_on)
        .order_by(runs.c.wait_until)
        .limit(1)
        .subquery()
    ),
).order_by("since")
count_running = (
    select(func.count())
    .select_from(runs)
    .where(runs.c.user_id == _owner, is_running, runs.c.unattended)
)
