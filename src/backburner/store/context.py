"""A transaction in progress: its connection, its time, its hints and events."""

from datetime import datetime
from functools import cached_property

from sqlalchemy import Connection

from backburner.core.conversation import Kind
from backburner.core.ids import ConversationId, UserId
from backburner.core.run import Turn
from backburner.core.transitions import Step, Stops
from backburner.ports import EventKind, Hint, HintKind
from backburner.store.dialect import Clock, read_clock
from backburner.store.events import Events


class Context:
    """Takes the time when it is first asked for: not every transaction needs it."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self.connection = connection
        self.clock = clock
        self.hints: dict[Hint, None] = {}
        #: Of less weight: they go out after the commit, if nothing happens in between.
        self.mentions: dict[Hint, None] = {}
        self.events = Events(connection)

    @cached_property
    def _times(self) -> tuple[datetime, int]:
        return read_clock(self.connection, self.clock)

    @property
    def now(self) -> datetime:
        return self._times[0]

    @property
    def tick(self) -> int:
        """The clock of leases, in microseconds."""
        return self._times[1]

    def set_time(self, now: datetime, tick: int) -> None:
        """Keep the time that something else has just read."""
        self._times = (now, tick)

    def hint(self, *hints: Hint) -> None:
        self.hints |= dict.fromkeys(hints)

    def changed(self, user: UserId, conversation: ConversationId | None, *kinds: EventKind) -> None:
        self.events.note(user, conversation, *kinds)
        self.hint(Hint(HintKind.CHANGED, user, conversation))

    def write_events(self) -> None:
        """Write down what changed: the last thing that is done in a transaction."""
        if self.events.noted:
            self.events.write(now=self.now)

    def announce(self, step: Step) -> None:
        """Tell where to look for what follows from a step."""
        conversation = step.conversation
        user, which = conversation.user_id, conversation.id
        self.events.note_step(step)
        self.hint(Hint(HintKind.CHANGED, user, which))
        if any(item.is_from_user for item in step.inbox):
            self.hint(Hint(HintKind.USER_WAITING, user, which))
        if step.inbox or step.notices or step.asked or conversation.next_run_at is not None:
            self.hint(Hint(HintKind.WORK, user))
        if conversation.kind is Kind.JOB:
            # Whoever waits for it may go on.
            self.hint(Hint(HintKind.WORK, user))
        if step.stops is not Stops.NOTHING:
            self.hint(Hint(HintKind.CANCEL, user, which))

    def announce_end(self, turn: Turn) -> None:
        """Somebody may go on now: with the same conversation, or under the user's cap."""
        self.events.note(turn.user_id, turn.conversation_id, EventKind.RUN)
        self.hint(Hint(HintKind.WORK, turn.user_id))


class Group:
    """Methods for one kind of rows, in the transaction `tx`."""

    def __init__(self, tx: Context) -> None:
        self.tx = tx
        self.connection = tx.connection
