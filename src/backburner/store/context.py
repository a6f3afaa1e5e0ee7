"""The context of a transaction: its connection, time, hints and events."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import CompoundSelect, Connection, Insert, Row, Select, Update

from backburner.core.conversation import Kind
from backburner.core.errors import NotFound
from backburner.core.ids import ConversationId, UserId
from backburner.core.run import Turn
from backburner.core.transitions import Step, Stops
from backburner.ports import EventKind, Hint, HintKind
from backburner.store.compiled import call_before_each
from backburner.store.dialect import Clock, has_row_locks, read_clock, with_clock_after
from backburner.store.events import Events
from backburner.store.types import to_micros
from backburner.store.writes import Ending, Gathered, Source, Values, Write, execute


class Context:
    """Reads the time on first use: not every transaction needs it."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self.connection = connection
        self.clock = clock
        self._times: tuple[datetime, int] | None = None
        #: The time was used, and stays the same from then on.
        self._is_time_fixed = False
        self.hints: dict[Hint, None] = {}
        #: Further hints.
        self.mentions: dict[Hint, None] = {}
        #: Conversations that nothing was scheduled after before they were locked here, and those of
        #: them that this was relied on for.
        self.unfollowed: set[tuple[UserId, ConversationId]] = set()
        self.left_alone: set[tuple[UserId, ConversationId]] = set()
        self.events = Events(connection)
        self._gathered: Gathered | None = None

    @property
    def now(self) -> datetime:
        return self._read_times()[0]

    @property
    def known_time(self) -> datetime | None:
        """The time of this transaction, if it was read before."""
        return self._times[0] if self._times is not None else None

    @property
    def tick(self) -> int:
        """The lease clock, in microseconds."""
        return self._read_times()[1]

    def set_time(self, now: datetime, tick: int) -> None:
        """Use a time that another statement has just read."""
        self._times, self._is_time_fixed = (now, tick), True

    def _read_times(self) -> tuple[datetime, int]:
        self._is_time_fixed = True
        # Not a cached property: in Python 3.11 all instances share its lock, so a transaction
        # whose server is silent would hold up all others.
        if self._times is None:
            with call_before_each(self.connection, None):
                self._times = read_clock(self.connection, self.clock)
        return self._times

    def lock_with_clock(self, statement: Select[Any], values: Mapping[str, Any]) -> Row[Any] | None:
        """Lock and read a row; in the same round trip the time, once the lock is granted.

        Of several locks the last one counts, unless the time was used before.
        """
        if self._is_time_fixed or not has_row_locks(self.connection):
            return self.connection.execute(statement, values).one_or_none()
        row = self.connection.execute(with_clock_after(statement), values).one_or_none()
        if row is not None:
            self._times = row.clock.astimezone(UTC), to_micros(row.clock)
        return row

    @contextmanager
    def gathering(self) -> Iterator[None]:
        """Gather what is written meanwhile, and the events, into as few statements as possible.

        Whatever else is executed meanwhile comes after what was written before it.
        """
        if not has_row_locks(self.connection):
            yield
            self.write_events()
            return
        self._gathered = gathered = Gathered(self.connection)
        with call_before_each(self.connection, gathered.flush):
            yield
            now = self.now if self.events.noted else None
        self._gathered = None
        gathered.flush(Ending(self.events.take(), now, tuple(self.left_alone)))

    def execute_apart(self, statement: Select[Any] | CompoundSelect[Any], values: Values) -> Any:
        """Read rows that nothing changes which was written in this transaction before."""
        with call_before_each(self.connection, None):
            return self.connection.execute(statement, values)

    def write(
        self,
        statement: Insert | Update,
        *rows: Values,
        otherwise: type[Exception] | None = None,
        apart: str = "",
        source: Source | None = None,
    ) -> None:
        """Write rows now, or together with others; see `Gathered.add` for `apart`."""
        write = Write(statement, rows, otherwise, source)
        if not rows:
            return
        if self._gathered is None:
            execute(self.connection, write)
        else:
            self._gathered.add(write, apart=apart)

    def write_now(self) -> None:
        """Write what was gathered, for reads that leave it alone otherwise."""
        if self._gathered is not None:
            self._gathered.flush()

    def hint(self, *hints: Hint) -> None:
        self.hints |= dict.fromkeys(hints)

    def changed(self, user: UserId, conversation: ConversationId | None, *kinds: EventKind) -> None:
        self.events.note(user, conversation, *kinds)
        self.hint(Hint(HintKind.CHANGED, user, conversation))

    def write_events(self) -> None:
        """Store the noted events; the last statement of a transaction."""
        if self.events.noted:
            self.events.write(now=self.now)

    def announce(self, step: Step) -> None:
        """Note the events of a step, and hint at the work that follows from it."""
        conversation = step.conversation
        user, conversation_id = conversation.user_id, conversation.id
        self.events.note_step(step)
        self.hint(Hint(HintKind.CHANGED, user, conversation_id))
        if any(item.is_from_user for item in step.inbox):
            self.hint(Hint(HintKind.USER_WAITING, user, conversation_id))
        has_items = any(not item.is_from_user for item in step.inbox)
        if has_items or step.notices or step.asked or conversation.next_run_at is not None:
            self.hint(Hint(HintKind.WORK, user))
        if conversation.kind is Kind.JOB:
            # A run that waits for the job may resume.
            self.hint(Hint(HintKind.WORK, user))
        if step.stops is not Stops.NOTHING:
            self.hint(Hint(HintKind.CANCEL, user, conversation_id))

    def announce_end(self, turn: Turn) -> None:
        """Note that a run ended, and hint: its conversation and its slot under the cap are free."""
        self.events.note(turn.user_id, turn.conversation_id, EventKind.RUN)
        self.hint(Hint(HintKind.WORK, turn.user_id, turn.conversation_id))


class Group:
    """Base of the classes whose methods read and write one kind of rows."""

    def __init__(self, tx: Context) -> None:
        self.tx = tx
        self.connection = tx.connection
        self._execute = tx.connection.execute
        self._write = tx.write

    def _read_one(self, statement: Select[Any], values: Mapping[str, Any]) -> Row[Any]:
        row = self._execute(statement, values).one_or_none()
        if row is None:
            raise NotFound
        return row

    def _exists(self, statement: Select[Any], values: Mapping[str, Any]) -> bool:
        return self._execute(statement, values).first() is not None

    def _update_one(self, statement: Update, values: Mapping[str, Any]) -> None:
        if self._execute(statement, values).rowcount != 1:
            raise NotFound
