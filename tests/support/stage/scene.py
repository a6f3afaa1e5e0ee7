"""A store to try things on: people, their conversations, whoever works on them, and a set clock.

Every transaction of a scene is given its time, so this clock counts on both databases.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from typing import Any, TypeVar

from sqlalchemy import Text, cast, insert, literal, select, true
from sqlalchemy.exc import OperationalError

from backburner.core import transitions
from backburner.core.conversation import Conversation
from backburner.core.errors import StoreBusy
from backburner.core.ids import UserId, new_conversation_id, new_message_id
from backburner.core.outcome import Complete, Outcome
from backburner.core.routing import NO_EXIT, AfterDemo
from backburner.core.run import Failure, Item, Run, RunEnding, RunKind, RunStatus, Turn
from backburner.core.schedule import Immediate, Schedule
from backburner.core.transitions import Brief, Step
from backburner.ports import Claim, Claimer
from backburner.store import tables
from backburner.store.db import Database
from backburner.store.failures import explain
from backburner.store.tx import Tx
from support.doubles.clock import SetClock
from support.people.users import add_user
from support.stage.make import USER

T = TypeVar("T")
LEASE = timedelta(seconds=30)
#: More runs of a user's than there are in most tests.
CAP = 20
CLAIMER = Claimer(worker="worker", lease=LEASE, per_user_limit=CAP)
DONE = Complete(message="Done.")


class Scene:
    """Takes a database with all tables and no row."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.clock = SetClock()
        self._known: set[UserId] = set()
        self._causes = count(1)

    def run(self, work: Callable[[Tx], T], *, now: datetime | None = None) -> T:
        """Run a transaction at the time of the scene's clock, or at another one."""
        return self.database.run(self.timed(work, now=now))

    def timed(self, work: Callable[[Tx], T], *, now: datetime | None = None) -> Callable[[Tx], T]:
        """Give a transaction the time that it is now."""
        time, tick = self.clock()

        def run(tx: Tx) -> T:
            tx.set_time(now or time, tick)
            return work(tx)

        return run

    def user(self, user: UserId = USER) -> UserId:
        if user not in self._known:
            self._known.add(user)
            self.run(lambda tx: add_user(tx, user))
        return user

    def chat(self, user: UserId = USER) -> Conversation:
        self.user(user)
        which = new_conversation_id()
        return self.add(transitions.start_chat(which, user, now=self.clock.now))

    def task(
        self, schedule: Schedule | None = None, *, user: UserId = USER, **brief: Any
    ) -> Conversation:
        """Set up work: once and at once, unless something else is said."""
        self.user(user)
        what = Brief(title="Work", prompt="Do it.", schedule=schedule or Immediate(), **brief)
        born = transitions.start_task(new_conversation_id(), user, what, now=self.clock.now)
        return self.add(born)

    def discovery(self, *, every: timedelta, user: UserId = USER) -> Conversation:
        """Set up what looks for work."""
        self.user(user)
        which = new_conversation_id()
        return self.add(transitions.start_discovery(which, user, every=every, now=self.clock.now))

    def add(self, step: Step) -> Conversation:
        self.run(lambda tx: tx.conversations.add(step, cause=self._cause()))
        return step.conversation

    def crowd(self, like: Conversation, *, each: int = 1) -> None:
        """Give every other user that many conversations like this one, quickly."""
        table, person = tables.conversations, tables.users
        numbers = select(literal(1).label("n")).cte("numbers", recursive=True)
        numbers = numbers.union_all(select(numbers.c.n + 1).where(numbers.c.n < each))
        copied = [column for column in table.columns if column.name not in ("user_id", "id")]
        number = literal("c_", Text) + cast(numbers.c.n, Text)
        others = table.join(person, person.c.id != table.c.user_id).join(numbers, true())
        rows = select(person.c.id, number, *copied).select_from(others)
        rows = rows.where(table.c.id == like.id)
        names = ["user_id", "id", *(column.name for column in copied)]
        self.run(lambda tx: tx.connection.execute(insert(table).from_select(names, rows)))

    def load(self, conversation: Conversation) -> Conversation:
        return self.run(lambda tx: tx.conversations.load(conversation.user_id, conversation.id))

    def change(
        self, conversation: Conversation, transition: Callable[[Conversation], Step]
    ) -> Conversation:
        """Let something happen to a conversation."""

        def apply(tx: Tx) -> Conversation:
            step = transition(tx.conversations.lock(conversation.user_id, conversation.id))
            tx.conversations.save(step, cause=self._cause())
            return step.conversation

        return self.run(apply)

    def say(
        self, conversation: Conversation, text: str = "Hello?", *, profile: str | None = None
    ) -> Conversation:
        return self.change(
            conversation,
            lambda found: transitions.receive_message(
                found, text, message_id=new_message_id(), now=self.clock.now, profile=profile
            ),
        )

    def answer(self, conversation: Conversation, text: str) -> Conversation:
        """Answer the question that is shown."""
        return self.change(
            conversation,
            lambda found: transitions.answer(
                found, found.questions[0].id, text, now=self.clock.now
            ),
        )

    def claim_reply(
        self, *, full: tuple[str, ...] = (), after_demo: AfterDemo = NO_EXIT
    ) -> Claim | None:
        claimer = replace(CLAIMER, full_profiles=full, after_demo=after_demo)
        return self.run(lambda tx: tx.queue.claim_reply(claimer))

    def claim_work(
        self,
        *,
        cap: int = CAP,
        full: tuple[str, ...] = (),
        short: tuple[str, ...] = (),
        short_only: bool = False,
        after_demo: AfterDemo = NO_EXIT,
        discovers_after: timedelta | None = None,
    ) -> Claim | None:
        claimer = replace(
            CLAIMER,
            per_user_limit=cap,
            full_profiles=full,
            short_profiles=short,
            short_only=short_only,
            after_demo=after_demo,
            discovery_quiet_period=discovers_after,
        )
        while True:
            try:
                return self.run(lambda tx: tx.queue.claim_work(claimer))
            except OperationalError as error:
                # On a busy machine others may hold a lock for longer than one waits for it.
                if not isinstance(explain(error), StoreBusy):
                    raise

    def begin_reply(self) -> Claim:
        """Claim a reply that there has to be."""
        claim = self.claim_reply()
        assert claim is not None
        return claim

    def begin_work(self) -> Claim:
        """Claim work that there has to be."""
        claim = self.claim_work()
        assert claim is not None
        return claim

    def items(self, claim: Claim) -> tuple[Item, ...]:
        turn = claim.turn
        return self.run(lambda tx: tx.inbox.waiting(turn.user_id, turn.conversation_id, turn.kind))

    def finish(
        self,
        claim: Claim,
        how: Outcome | Failure | str = DONE,
        *,
        served: Iterable[Item] = (),
    ) -> None:
        """Commit a run: background work with its outcome, a reply with its text."""
        self.run(self.finishing(claim, how, served=served))

    def finishing(
        self,
        claim: Claim,
        how: Outcome | Failure | str = DONE,
        *,
        served: Iterable[Item] = (),
    ) -> Callable[[Tx], None]:
        """Give the transaction that commits a run."""
        turn, now = claim.turn, self.clock.now
        ids = [item.id for item in served]

        def commit(tx: Tx) -> None:
            found = tx.turns.hold(turn)
            ending = RunEnding(status=RunStatus.SUCCESS)
            if isinstance(how, str):
                step = transitions.reply(found, claim.run, how, now=now)
            elif isinstance(how, Failure):
                step = transitions.fail(found, claim.run, how, now=now)
                ending = RunEnding(status=RunStatus.FAILURE, failure=how)
            else:
                step = transitions.finish(found, claim.run, how, now=now)
            tx.turns.commit(turn, step, ending, served=ids)

        return self.timed(commit)

    def hand_back(
        self,
        claim: Claim,
        *,
        after: timedelta | None = timedelta(),
        served: Iterable[Item] = (),
    ) -> None:
        """Let a run go on later; None: only when something lets it."""
        self.run(self.handing_back(claim, after=after, served=served))

    def handing_back(
        self,
        claim: Claim,
        *,
        after: timedelta | None = timedelta(),
        served: Iterable[Item] = (),
    ) -> Callable[[Tx], None]:
        """Give the transaction that hands a run back."""
        turn, now = claim.turn, self.clock.now
        until = None if after is None else now + after
        ids = [item.id for item in served]

        def back(tx: Tx) -> None:
            step = Step(conversation=tx.turns.hold(turn))
            tx.turns.hand_back(turn, step, until=until, served=ids, prompt="Begin.")

        return self.timed(back)

    def rescue(self) -> Turn | None:
        freed = self.run(lambda tx: tx.queue.rescue())
        return None if freed is None else freed.turn

    def crash(self, claim: Claim) -> None:
        """Let the lease of whoever has this turn run out, and the turn be freed."""
        self.clock.advance(2 * LEASE)
        assert self.rescue() == claim.turn

    def history(self, conversation: Conversation) -> tuple[Run, ...]:
        """Read all runs, newest first."""
        return self.run(
            lambda tx: tx.runs.history(conversation.user_id, conversation.id, limit=1000)
        )

    def waiting(self, conversation: Conversation, kind: RunKind) -> tuple[Item, ...]:
        return self.run(lambda tx: tx.inbox.waiting(conversation.user_id, conversation.id, kind))

    def dump(self) -> dict[str, list[str]]:
        """Read every row there is, to see whether any changed."""
        return self.run(read_everything)

    def _cause(self) -> str:
        return f"cause:{next(self._causes)}"


def read_everything(tx: Tx) -> dict[str, list[str]]:
    return {
        name: sorted(str(row) for row in tx.connection.execute(select(table)))
        for name, table in tables.metadata.tables.items()
    }
