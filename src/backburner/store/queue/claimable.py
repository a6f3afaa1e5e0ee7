"""Statements that select what can be claimed: replies that users wait for, and background work.

They never select a conversation whose turn is held, even if the lease has expired, or whose user is
disabled; nor work in a conversation whose user waits for a reply, or with a queued run of the same
kind.

To find whose work is next, a source with many rows is probed user by user. A source with fewer rows
is read as a whole, so that users without work cost nothing. A source that was just seen empty is
left out, and so are conditions that nothing can break: PostgreSQL plans the statement anew each
time, and that takes longer than what it then reads.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Integer,
    Row,
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

from backburner.core.routing import NO_PROFILES, ProfileFilter
from backburner.core.run import RunKind
from backburner.core.work.folders import check_machine_id
from backburner.core.work.timeouts import LONG_TIMEOUT
from backburner.ports import Claimer
from backburner.store.queue import next_profiles
from backburner.store.tables import (
    PAUSED,
    connections,
    conversations,
    inbox,
    install,
    is_queued,
    is_running,
    is_scheduled,
    is_unserved,
    memories,
    outages,
    runs,
    users,
)
from backburner.store.types import MICROSECOND

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
    queued = runs.alias(f"queued_{kind.value}")
    return not_(
        exists().where(
            queued.c.user_id == conversations.c.user_id,
            queued.c.conversation_id == conversations.c.id,
            queued.c.status == text("'queued'"),
            queued.c.kind == text(f"'{kind.value}'"),
        )
    )


_run_of_conversation = and_(
    runs.c.user_id == conversations.c.user_id, runs.c.conversation_id == conversations.c.id
)
#: Without a timeout of its own, a run has the default one.
_is_short = or_(
    conversations.c.run_timeout.is_(None),
    conversations.c.run_timeout <= text(str(LONG_TIMEOUT // MICROSECOND)),
)
_owner, _which = bindparam("owner", type_=Text()), bindparam("which", type_=Text())
_ONE = literal_column("1", Integer)
#: Candidates of each source: another transaction may have locked the first ones.
_MAX_CANDIDATES = literal_column("5", Integer)
#: A source with this many rows is probed user by user: probes take as long as there are users with
#: nothing to do, and reading a source takes as long as it has rows.
A_LOT = 5000
#: How long a claim waits for locks, and for the row of a user whom others may be serving.
CLAIM_LOCK_TIMEOUT, USER_LOCK_TIMEOUT = "1s", "100ms"


def _count(*conditions: ColumnElement[bool]) -> ScalarSelect[int]:
    rows = select(_ONE.label("one")).where(*conditions).limit(literal_column(str(A_LOT), Integer))
    return select(func.count()).select_from(rows.subquery()).scalar_subquery()


def _how_much(now: ColumnElement[Any]) -> Any:
    return select(
        _count(is_unserved, inbox.c.from_person).label("people"),
        _count(is_scheduled, conversations.c.next_run_at <= now).label("due"),
        (
            _count(is_unserved, not_(inbox.c.from_person))
            + _count(is_queued, runs.c.wait_until <= now)
        ).label("more"),
        exists().where(is_queued).label("queued"),
        exists()
        .where(
            is_scheduled, conversations.c.folder.is_not(None), conversations.c.next_run_at <= now
        )
        .label("in_folders"),
        exists().where(install.c.key == text(f"'{PAUSED}'")).label("all_paused"),
        select(_ONE).select_from(outages).limit(_ONE).scalar_subquery().label("outage"),
    )


#: How much there may be to claim, counted up to `A_LOT`.
how_much = _how_much(bindparam("now", type_=conversations.c.next_run_at.type))
#: The same by the clock of PostgreSQL, and its time. The claim that follows waits for no lock
#: longer than a second, because others wait for it.
how_much_now = _how_much(func.statement_timestamp()).add_columns(
    func.statement_timestamp().label("clock"),
    func.set_config(text("'lock_timeout'"), text(f"'{CLAIM_LOCK_TIMEOUT}'"), true()).label("lock"),
    func.set_config(text("'plan_cache_mode'"), text("'force_generic_plan'"), true()).label("plan"),
)
#: Evaluated once, before the first row is locked.
_waits_briefly = (
    select(func.set_config(text("'lock_timeout'"), text(f"'{USER_LOCK_TIMEOUT}'"), true()))
    .scalar_subquery()
    .is_not(None)
)
_is_not_passed_over = users.c.id.not_in(bindparam("passed_over", expanding=True))
#: The end of a short wait for a user.
wait_longer = text(f"SET LOCAL lock_timeout = '{CLAIM_LOCK_TIMEOUT}'")
_at_cap = (
    select(runs.c.user_id)
    .where(is_running, runs.c.unattended)
    .group_by(runs.c.user_id)
    .having(func.count() >= bindparam("cap"))
)


def _count_running(owner: ColumnElement[str]) -> ScalarSelect[int]:
    is_counted = and_(runs.c.user_id == owner, is_running, runs.c.unattended)
    return select(func.count()).select_from(runs).where(is_counted).scalar_subquery()


def _has_item(*conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    is_waiting = and_(inbox.c.user_id == _owner, inbox.c.conversation_id == _which, is_unserved)
    return exists().where(is_waiting, *conditions)


_for_work = inbox.c.run_kind == text("'background'")


def _first_item(run_kind: ColumnElement[bool]) -> ScalarSelect[str]:
    """Return the kind of the item that has waited longest; none: no item waits."""
    is_waiting = and_(inbox.c.user_id == _owner, inbox.c.conversation_id == _which, is_unserved)
    return (
        select(inbox.c.kind)
        .where(is_waiting, run_kind)
        .order_by(inbox.c.arrived_at)
        .limit(_ONE)
        .scalar_subquery()
    )


#: Why a conversation may be claimed, apart from its schedule.
reasons = select(
    _has_item(inbox.c.from_person).label("person"),
    _first_item(inbox.c.run_kind == text("'reply'")).label("reply"),
    _first_item(_for_work).label("work"),
    _has_item(_for_work, inbox.c.at_once).label("work_at_once"),
    exists()
    .where(runs.c.user_id == _owner, runs.c.conversation_id == _which, is_queued)
    .label("queued"),
)


@dataclass(frozen=True, slots=True)
class Look:
    """The result of a look at the sources of work."""

    has_due: bool
    has_more: bool
    #: There is too much of it to read it as a whole.
    much_due: bool
    much_more: bool
    #: A user waits for a reply, or a run is queued: work that is due may have to wait for it.
    may_wait: bool
    #: Some of what is due is in folders.
    in_folders: bool = False

    @classmethod
    def of(cls, seen: Row[Any], *, a_lot: int = A_LOT) -> "Look":
        return cls(
            has_due=bool(seen.due),
            has_more=bool(seen.more),
            much_due=seen.due >= a_lot,
            much_more=seen.more >= a_lot,
            may_wait=bool(seen.people or seen.queued),
            in_folders=bool(seen.in_folders),
        )


@dataclass(frozen=True, slots=True)
class Statements:
    #: The conversation whose user has waited longest for a reply.
    person_first: Select[Any]
    #: The user whose work is next, after a look; `waits` for locks, which only PostgreSQL has, and
    #: `passes_over` some users.
    whose_turn: Callable[..., Select[Any]]
    #: The longest waiting work of a user whose row is locked and who is below the cap, after a
    #: look. This one decides: whatever has happened since the look, it selects only what may start.
    longest_waiting: Callable[[Look], Select[Any]]
    #: The same for each of several `owners`, on PostgreSQL.
    longest_waiting_of_each: Callable[[Look], Select[Any]]


def statements_for(claimer: Claimer) -> Statements:
    """Return the statements for the seats that are free in a worker."""
    match = claimer.after_demo.match
    return statements(
        match(claimer.full_profiles),
        match(claimer.short_profiles),
        short_only=claimer.short_only,
        machine=claimer.machine,
        shares_folders=claimer.shares_folders,
    )


@cache
def statements(
    full: ProfileFilter = NO_PROFILES,
    short: ProfileFilter = NO_PROFILES,
    *,
    short_only: bool = False,
    machine: str = "",
    shares_folders: bool = False,
) -> Statements:
    """Build the statements for a worker on this machine, without free seats for some profiles.

    The seats of profiles in `short`, or of all, are free for runs with a short timeout only.
    """
    seats = _Seats(full, short, short_only=short_only)
    can_use_folder = _can_use_folder(machine, is_shared=shares_folders)
    sources = _Sources(seats, can_use_folder)
    return Statements(
        person_first=_person_first(and_(seats.has(next_profiles.for_reply), can_use_folder)),
        whose_turn=cache(sources.whose_turn),
        longest_waiting=cache(sources.longest_waiting),
        longest_waiting_of_each=cache(sources.longest_waiting_of_each),
    )


@dataclass(frozen=True, slots=True)
class _Seats:
    """The profiles without a free seat, and those with seats for short runs only."""

    full: ProfileFilter
    short: ProfileFilter
    short_only: bool

    def has(self, requested: ColumnElement[str], *, resumes: bool = False) -> ColumnElement[bool]:
        """Whether there is a seat for a run; see `next_profiles` for what may be requested."""
        conditions: list[ColumnElement[bool]] = []
        if self.full.profiles:
            conditions.append(not_(next_profiles.uses(self.full, requested, resumes=resumes)))
        if self.short_only:
            conditions.append(_is_short)
        elif self.short.profiles:
            is_for_short = next_profiles.uses(self.short, requested, resumes=resumes)
            conditions.append(or_(_is_short, not_(is_for_short)))
        return and_(true(), *conditions)


def _can_use_folder(machine: str, *, is_shared: bool) -> ColumnElement[bool]:
    """Whether its folder, if it has one, is on this machine, and no other run writes in it."""
    holder = conversations.alias("holder")
    # Written out: claims are prepared once, and this never changes.
    here = conversations.c.folder_machine == text(f"'{check_machine_id(machine)}'")
    is_here = true() if is_shared else or_(conversations.c.folder_machine == text("''"), here)
    # Where one machine calls it shared, it is the same on each, also if others do not say so.
    is_same = or_(
        holder.c.folder_machine == conversations.c.folder_machine,
        holder.c.folder_machine == text("''"),
        conversations.c.folder_machine == text("''"),
    )
    is_in_use = exists().where(
        holder.c.user_id == conversations.c.user_id,
        holder.c.folder == conversations.c.folder,
        true() if is_shared else is_same,
        holder.c.turn_run.is_not(None),
        ~holder.c.folder_read_only,
    )
    return or_(
        conversations.c.folder.is_(None),
        and_(is_here, or_(conversations.c.folder_read_only, not_(is_in_use))),
    )


_child = conversations.alias("child")
_has_children = (
    select(_child.c.id)
    .where(_child.c.user_id == conversations.c.user_id, _child.c.parent_id == conversations.c.id)
    .limit(_ONE)
    .correlate(conversations)
    .scalar_subquery()
    .is_not(None)
    .label("has_children")
)


_has_connections = (
    select(connections.c.id)
    .where(connections.c.user_id == conversations.c.user_id)
    .limit(_ONE)
    .correlate(conversations)
    .scalar_subquery()
    .is_not(None)
    .label("has_connections")
)


def _person_first(is_served: ColumnElement[bool]) -> Select[Any]:
    return (
        select(conversations, _has_children, _has_connections, inbox.c.kind.label("item"))
        .join(inbox, _same_conversation)
        .join(users, users.c.id == inbox.c.user_id)
        .where(is_unserved, inbox.c.from_person, is_open, is_served, users.c.disabled_at.is_(None))
        .order_by(inbox.c.arrived_at, inbox.c.id)
        .limit(_ONE)
        .with_for_update(of=conversations, skip_locked=True, key_share=True)
        # The rows of the run refer to the user, and would wait for that lock.
        .suffix_with("FOR KEY SHARE OF users SKIP LOCKED", dialect="postgresql")
    )


#: Whatever keeps it from being claimed.
any_person_first = _person_first(true())


def due(is_served: ColumnElement[bool], *, may_wait: bool = True) -> Select[Any]:
    """Select the conversations that are due; `may_wait`: some of them may have to wait."""
    waits_for_none = [_no_person_waits(), _none_is_queued(RunKind.BACKGROUND)] if may_wait else []
    return select(
        conversations.c.user_id, conversations.c.id, conversations.c.next_run_at.label("since")
    ).where(
        is_scheduled, conversations.c.next_run_at <= bindparam("now"), is_served, *waits_for_none
    )


def items(is_served: ColumnElement[bool]) -> Select[Any]:
    """Select the conversations whose inbox has an item for a run."""
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
            inbox.c.user_id, inbox.c.conversation_id.label("id"), inbox.c.arrived_at.label("since")
        )
        .join(conversations, _same_conversation)
        .where(is_unserved, not_(inbox.c.from_person), is_open, is_served, _no_person_waits())
        .where(or_(is_for_reply, is_for_work))
    )


def queued(is_served: ColumnElement[bool]) -> Select[Any]:
    """Select the conversations with a queued run that may resume."""
    may_resume = or_(
        runs.c.kind == text("'reply'"), conversations.c.status != text("'waiting_input'")
    )
    return (
        select(runs.c.user_id, runs.c.conversation_id.label("id"), runs.c.wait_until.label("since"))
        .join(conversations, _run_of_conversation)
        .where(is_queued, runs.c.wait_until <= bindparam("now"), is_open, is_served)
        .where(_no_person_waits(), may_resume)
    )


#: Not with the user: PostgreSQL would look for memories of all users who may be next.
_remembers = (
    select(memories.c.key)
    .where(memories.c.user_id == conversations.c.user_id)
    .limit(_ONE)
    .correlate(conversations)
    .scalar_subquery()
    .is_not(None)
    .label("remembers")
)


class _Sources:
    """The sources of work: schedules, inboxes, and queued runs."""

    def __init__(self, seats: _Seats, can_use_folder: ColumnElement[bool]) -> None:
        self._has_seat = seats.has(next_profiles.for_work)
        self._can_use_folder = can_use_folder
        of_item = seats.has(next_profiles.for_item)
        of_queued = seats.has(next_profiles.for_queued, resumes=True)
        self._more = [items(and_(of_item, can_use_folder)), queued(and_(of_queued, can_use_folder))]

    def _due(self, look: Look, *, may_wait: bool = True) -> Select[Any]:
        """Select what is due; the index alone tells, unless some of it is in folders."""
        in_folders = [self._can_use_folder] if look.in_folders else []
        return due(and_(self._has_seat, *in_folders), may_wait=may_wait)

    def whose_turn(
        self, look: Look, *, waits: bool, passes_over: bool = False, several: bool = False
    ) -> Select[Any]:
        work_due = [self._due(look, may_wait=look.may_wait)] if look.has_due else []
        more = self._more if look.has_more else []
        probed = [*(work_due if look.much_due else []), *(more if look.much_more else [])]
        conditions = [has_row(source) for source in probed]
        read_whole = [source for source in (*work_due, *more) if source not in probed]
        if read_whole:
            owners = [source.with_only_columns(owner_of(source)) for source in read_whole]
            conditions.append(users.c.id.in_(union_all(*owners)))
        conditions = [or_(*conditions), *([_is_not_passed_over] if passes_over else [])]
        waiting = [_waits_briefly] if waits else []
        # For few users: the same order as an expression, or PostgreSQL may scan the whole index.
        without_index = case((users.c.paused, users.c.created_at), else_=users.c.served_at)
        return (
            select(users.c.id, users.c.zone)
            .where(not_(users.c.paused), users.c.disabled_at.is_(None))
            .where(users.c.id.not_in(_at_cap), *conditions, *waiting)
            .order_by(users.c.served_at if probed else without_index, users.c.id)
            .limit(bindparam("users", type_=Integer()) if several else _ONE)
            # FOR NO KEY UPDATE, so that inserts of their rows do not wait.
            .with_for_update(of=users, key_share=True, skip_locked=not waits)
        )

    def longest_waiting_of_each(self, look: Look) -> Select[Any]:
        owners = select(users.c.id).where(users.c.id.in_(bindparam("owners", expanding=True)))
        first = self._longest_waiting(look, literal_column("owners.id", Text())).lateral("work")
        return select(first).select_from(owners.subquery("owners").join(first, true()))

    def longest_waiting(self, look: Look) -> Select[Any]:
        return self._longest_waiting(look, _owner)

    def _longest_waiting(self, look: Look, owner: ColumnElement[str]) -> Select[Any]:
        sources = [self._due(look), *(self._more if look.has_more else [])]
        oldest = [
            select(
                source.where(owner_of(source) == owner)
                .order_by(source.selected_columns.since)
                .limit(_MAX_CANDIDATES)
                .subquery()
            )
            for source in sources
        ]
        waiting = union_all(*oldest).subquery("waiting")
        return (
            select(conversations, _remembers)
            .join(waiting, waiting.c.id == conversations.c.id)
            .where(conversations.c.user_id == owner, is_open, self._can_use_folder)
            .where(_count_running(owner) < bindparam("cap"))
            .order_by(waiting.c.since)
            .limit(_ONE)
            .with_for_update(of=conversations, skip_locked=True, key_share=True)
        )


def owner_of(source: Select[Any]) -> ColumnElement[str]:
    owner: ColumnElement[str] = source.selected_columns.user_id
    return owner


def has_row(source: Select[Any]) -> ColumnElement[bool]:
    """Probe a source for a user; with EXISTS PostgreSQL might read the rows of all users."""
    owner = owner_of(source)
    first = source.with_only_columns(owner).where(owner == users.c.id).limit(_ONE)
    return first.scalar_subquery().is_not(None)
