"""The holder of a turn renews its lease, commits its run, or hands it back.

Every write of a holder is guarded by its run and epoch. A turn whose lease has expired is not free:
only `rescue` frees it, settles its run and increases the epoch, in one transaction.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    Row,
    Text,
    and_,
    bindparam,
    exists,
    func,
    select,
    text,
    true,
    tuple_,
    update,
)

from backburner.core.conversation import Conversation
from backburner.core.errors import Fenced
from backburner.core.ids import ItemId, RunId
from backburner.core.run import NO_WAIT, ModelWait, RunEnding, RunStatus, Turn
from backburner.core.transitions import Step
from backburner.ports import TurnFlags
from backburner.store.context import Context, Group
from backburner.store.dialect import has_row_locks, version_of, with_clock_after
from backburner.store.mapping import to_row
from backburner.store.records import steps
from backburner.store.records.conversations import Conversations
from backburner.store.records.inbox import Inbox, renew_request
from backburner.store.records.runs import Runs
from backburner.store.tables import NEVER_IN_A_STEP, conversations, inbox, is_unserved, runs
from backburner.store.types import MICROSECOND, to_micros

#: How long a group of commits waits for locks, before each of them is tried by itself.
GROUP_LOCK_TIMEOUT = "100ms"

_by_id = and_(
    conversations.c.user_id == bindparam("owner", type_=Text()),
    conversations.c.id == bindparam("which"),
)
_is_held = and_(
    conversations.c.turn_run == bindparam("run"), conversations.c.epoch == bindparam("held")
)
#: The turns whose lease has not expired, of those given as `held`.
_are_held = and_(
    tuple_(
        conversations.c.user_id, conversations.c.id, conversations.c.turn_run, conversations.c.epoch
    ).in_(bindparam("held", expanding=True)),
    conversations.c.turn_until >= bindparam("tick"),
)
_unlocked = (
    select(conversations.c.user_id, conversations.c.id)
    .where(_are_held)
    .with_for_update(key_share=True, skip_locked=True)
)
_renew = (
    update(conversations)
    .where(tuple_(conversations.c.user_id, conversations.c.id).in_(_unlocked))
    .values(turn_until=bindparam("until"))
    .returning(conversations.c.turn_run)
)
_select_flags = (
    select(
        runs.c.id,
        runs.c.cancel_requested_at.is_not(None).label("cancelled"),
        exists()
        .where(
            inbox.c.user_id == conversations.c.user_id,
            inbox.c.conversation_id == conversations.c.id,
            is_unserved,
            inbox.c.from_person,
        )
        .label("user_waiting"),
    )
    .join(
        conversations,
        and_(runs.c.user_id == conversations.c.user_id, runs.c.id == conversations.c.turn_run),
    )
    .where(_are_held)
)
_select_cancel_request = select(runs.c.cancel_requested_at).where(
    runs.c.user_id == bindparam("owner"), runs.c.id == bindparam("run")
)
#: With the run: it is locked too, so that nobody can ask it to stop any more, or has just done so.
_with_run = select(conversations, runs.c.cancel_requested_at.is_not(None).label("cancelled")).join(
    runs, and_(runs.c.user_id == conversations.c.user_id, runs.c.id == bindparam("run"))
)
_hold = _with_run.where(_by_id, _is_held).with_for_update(key_share=True)
_hold_with_version = _hold.add_columns(version_of(conversations).label("version"))
_follower = conversations.alias("follower")
_is_followed = exists().where(
    _follower.c.user_id == conversations.c.user_id, _follower.c.after_id == conversations.c.id
)
#: Those of several turns that nobody else has locked. What follows is not planned anew each time.
_hold_all = with_clock_after(
    select(
        conversations,
        runs.c.cancel_requested_at.is_not(None).label("cancelled"),
        _is_followed.label("followed"),
    )
    .join(
        runs, and_(runs.c.user_id == conversations.c.user_id, runs.c.id == conversations.c.turn_run)
    )
    .where(
        tuple_(
            conversations.c.user_id,
            conversations.c.id,
            conversations.c.turn_run,
            conversations.c.epoch,
        ).in_(bindparam("held", expanding=True))
    )
    .with_for_update(key_share=True, skip_locked=True)
).add_columns(
    func.set_config(text("'plan_cache_mode'"), text("'force_generic_plan'"), true()).label("plan")
)
#: What follows in the transaction waits for no lock for long.
_hold_all_briefly = _hold_all.add_columns(
    func.set_config(text("'lock_timeout'"), text(f"'{GROUP_LOCK_TIMEOUT}'"), true()).label("lock")
)
_mark_outside = (
    update(conversations).where(_by_id, _is_held).values(outside_read=bindparam("is_marked"))
)
_mark_outside_with_version = _mark_outside.returning(version_of(conversations).label("version"))
_commit = (
    update(conversations)
    .where(_by_id, _is_held)
    .values(turn_run=None, turn_until=None)
    .values(
        {
            column.name: bindparam(column.name)
            for column in conversations.columns
            if column.name not in NEVER_IN_A_STEP
        }
    )
)


class Turns(Group):
    def __init__(self, tx: Context) -> None:
        super().__init__(tx)
        #: Whether the run whose turn is held has been asked to stop.
        self._cancelled: dict[RunId, bool] = {}
        self._versions: dict[RunId, str] = {}
        #: The rows of turns that are held for `hold`.
        self._held: dict[Turn, Row[Any]] = {}

    def renew(self, turns: Iterable[Turn], *, lease: timedelta) -> Mapping[RunId, TurnFlags]:
        """Extend leases that have not expired, and read which runs should stop or make room.

        One statement for all, which waits for no lock: a locked conversation concerns no other.
        """
        held = [(turn.user_id, turn.conversation_id, turn.run_id, turn.epoch) for turn in turns]
        values = {"held": held, "tick": self.tx.tick}
        until = self.tx.tick + lease // MICROSECOND
        renewed = set(self._execute(_renew, {**values, "until": until}).scalars())
        return {
            row.id: TurnFlags(
                cancelled=bool(row.cancelled),
                user_waiting=bool(row.user_waiting),
                renewed=row.id in renewed,
            )
            for row in self._execute(_select_flags, values)
        }

    def hold(self, turn: Turn) -> Conversation:
        """Lock and read the conversation, to apply an outcome to it; only its holder can."""
        row = self._held.pop(turn, None) or self._lock(turn)
        self._cancelled[turn.run_id] = bool(row.cancelled)
        return Conversations(self.tx).read(row)

    def version(self, turn: Turn) -> str | None:
        """Return the version of the conversation as it is held; None: rows have none."""
        return self._versions.get(turn.run_id)

    def _lock(self, turn: Turn) -> Row[Any]:
        has_versions = has_row_locks(self.connection)
        statement = _hold_with_version if has_versions else _hold
        row = self.tx.lock_with_clock(statement, turn_key(turn))
        if row is None:
            raise Fenced
        if has_versions:
            self._versions[turn.run_id] = row.version
        return row

    def hold_all(self, turns: Sequence[Turn], *, briefly: bool = True) -> Sequence[Turn]:
        """Lock what can be locked at once, of several users; returns the turns it is held for.

        `briefly`: the rest of the transaction does not wait long for locks, either.
        """
        if not has_row_locks(self.connection):
            return turns
        held = [(turn.user_id, turn.conversation_id, turn.run_id, turn.epoch) for turn in turns]
        statement = _hold_all_briefly if briefly else _hold_all
        rows = {row.turn_run: row for row in self._execute(statement, {"held": held})}
        if not rows:
            return ()
        now = max(row.clock for row in rows.values())
        self.tx.set_time(now.astimezone(UTC), to_micros(now))
        self.tx.unfollowed |= {(row.user_id, row.id) for row in rows.values() if not row.followed}
        self._held = {turn: rows[turn.run_id] for turn in turns if turn.run_id in rows}
        return tuple(self._held)

    def mark_outside_text(self, turn: Turn, *, marked: bool = True) -> None:
        """Record whether the agent's session has read outside text."""
        values = {**turn_key(turn), "is_marked": marked}
        has_versions = has_row_locks(self.connection)
        result = self._execute(
            _mark_outside_with_version if has_versions else _mark_outside, values
        )
        if result.rowcount != 1:
            raise Fenced
        if has_versions:
            self._versions[turn.run_id] = result.one().version

    def commit(
        self,
        turn: Turn,
        step: Step,
        ending: RunEnding,
        *,
        served: Iterable[ItemId] = (),
        prompt: str | None = None,
    ) -> None:
        """Store the outcome of a run and give up its turn, atomically.

        `prompt` is what it was told, to be kept.
        """

        def end() -> None:
            self._give_up(turn, step, served=served, ends=True, prompt=prompt)
            Runs(self.tx).end(turn.user_id, turn.run_id, ending)

        self._store(turn, step, first=end)
        self.tx.announce_end(turn)

    def hand_back(
        self,
        turn: Turn,
        step: Step,
        *,
        until: datetime | None,
        served: Iterable[ItemId] = (),
        wait: ModelWait = NO_WAIT,
        prompt: str | None = None,
    ) -> None:
        """Give up the turn; the run resumes at `until`, or None: when something resumes it.

        A run that was asked to stop ends instead.
        """
        is_cancelled = self.is_cancelled(turn)
        self._give_up(turn, step, served=served, ends=is_cancelled, prompt=prompt)
        if is_cancelled:
            ending = RunEnding(status=RunStatus.CANCELLED)
            Runs(self.tx).end(turn.user_id, turn.run_id, ending)
        else:
            Runs(self.tx).queue(turn.user_id, turn.run_id, until=until, wait=wait)
        self._store(turn, step)
        self.tx.announce_end(turn)

    def is_committed(self, turn: Turn) -> bool:
        """See whether a commit whose answer was lost took effect."""
        return Runs(self.tx).is_proven(turn.user_id, turn.run_id, turn.epoch)

    def is_cancelled(self, turn: Turn) -> bool:
        """See whether the run has been asked to stop."""
        if turn.run_id in self._cancelled:
            return self._cancelled[turn.run_id]
        values = {"owner": turn.user_id, "run": turn.run_id}
        return self._execute(_select_cancel_request, values).scalar() is not None

    def _give_up(
        self, turn: Turn, step: Step, *, served: Iterable[ItemId], ends: bool, prompt: str | None
    ) -> None:
        """Store the conversation without its turn and the proof, if this holder still has it."""
        served, conversation = list(served), step.conversation
        if ends:
            conversation = renew_request(self.tx, conversation, turn.kind, served=served)
        row = to_row(conversation)
        for name in ("user_id", "id", "created_at"):
            del row[name]
        row |= {**turn_key(turn), "updated_at": self.tx.now}
        self._write(_commit, row, otherwise=Fenced)
        Runs(self.tx).prove(turn, prompt=prompt)
        Inbox(self.tx).serve(turn.user_id, served, run_id=turn.run_id)

    def _store(self, turn: Turn, step: Step, *, first: Callable[[], None] = lambda: None) -> None:
        # The epoch is part of the cause: a run that was handed back may ask again when it resumes.
        cause = f"{turn.run_id}:{turn.epoch}"
        steps.write(self.tx, step, cause=cause, run_id=turn.run_id, first=first)
        self.tx.announce(step)


def turn_key(turn: Turn) -> dict[str, Any]:
    return {
        "owner": turn.user_id,
        "which": turn.conversation_id,
        "run": turn.run_id,
        "held": turn.epoch,
    }
