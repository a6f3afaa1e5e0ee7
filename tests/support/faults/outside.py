"""People and what they want, from a process that does no work itself.

It shares a database with programs that do: a PostgreSQL at any time, a SQLite file before and after
one has it.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import ExitStack, closing
from types import TracebackType
from typing import Any, Self, TypeVar
from uuid import uuid4

from sqlalchemy import text

from backburner.actions import chat, questions
from backburner.actions.deps import Deps, Limits
from backburner.actions.origin import Origin
from backburner.actions.work import control, jobs
from backburner.actions.work.jobs import JobRequest
from backburner.app.clock import Clock
from backburner.app.machines import NoTools
from backburner.bus.postgres import PostgresBus
from backburner.core.accounts import Scope
from backburner.core.conversation import Conversation, Destination
from backburner.core.ids import ConversationId, UserId, derive_grant_id
from backburner.core.question import Question
from backburner.core.schedule import Immediate
from backburner.core.tool_policy import Grant, Tool, ToolCall, call_digest
from backburner.core.transitions import Brief
from backburner.ports import Hint, HintKind
from backburner.store.db import Database
from backburner.store.dialect import is_sqlite, make_engine
from backburner.store.tx import Tx
from support.doubles.engine import Step
from support.faults import script
from support.faults.invariants import NEVER_AT_REST
from support.faults.lasting import DEFINITION, SERVER
from support.faults.postgres_proxy import in_thread
from support.faults.program import CHANNEL
from support.people.tokens import issue_token
from support.people.users import add_user
from support.stage.make import USER
from support.stage.work import start_work

T = TypeVar("T")
#: How long anything may take, in seconds; only what is broken takes as long.
BOUND = 30.0
POLL_SECONDS = 0.05


class Outside:
    def __init__(self, url: str) -> None:
        self.database = Database(make_engine(url), Clock().read)
        self._open = ExitStack()
        if not is_sqlite(self.database.engine):
            # In a thread: the loop of the actions stands still between them.
            self.database.bus = self._open.enter_context(in_thread(PostgresBus(url)))
        self._deps = Deps(
            store=self.database,
            engines={},
            default_profile="",
            toolbox=NoTools(),
            channels={},
            # Whoever looks for faults wants more at once than a person does.
            limits=Limits(max_tasks=10_000),
        )
        # One that leaves the event loop of this thread to whoever set it.
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._known = set[UserId]()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._open, closing(self._runner):
            self.database.close()

    def add(self, user: UserId) -> UserId:
        """Make a user, unless there is one."""
        if user not in self._known:
            self._known.add(user)
            self.database.run(lambda tx: add_user(tx, user))
        return user

    def task(
        self, *steps: Step, user: UserId = USER, may_send: bool = True, **brief: Any
    ) -> Conversation:
        """Give the agent something to do in the background, once and now."""
        what: dict[str, Any] = {
            "title": "Work",
            "prompt": script.write(*steps),
            "schedule": Immediate(),
            "reports_to": (Destination(CHANNEL, "somebody"),),
        }
        # At once: a worker may begin before anything else is done here.
        allowed = [_grant(Tool(server=SERVER, name="send", definition=DEFINITION))]
        return self._do(
            start_work(
                self._deps,
                self.add(user),
                Brief(**(what | brief)),
                allowed if may_send else (),
            )
        )

    def jobs(self, chat: Conversation, *prompts: str) -> list[ConversationId]:
        """Hand out jobs from a conversation."""
        wishes = [JobRequest(description=f"Job {n}", prompt=one) for n, one in enumerate(prompts)]
        origin = Origin(chat.user_id, chat.id)
        return [job.id for job in self._do(jobs.start(self._deps, origin, wishes))]

    def cancel_jobs(self, chat: Conversation) -> None:
        """Cancel all jobs of a conversation."""
        origin = Origin(chat.user_id, chat.id)
        listed = self._do(jobs.list_jobs(self._deps, origin))
        self._do(jobs.cancel(self._deps, origin, ids=[job.id for job in listed.jobs]))

    def chat(self, *, user: UserId = USER) -> Conversation:
        return self._do(chat.start(self._deps, self.add(user)))

    def say(self, conversation: Conversation, *steps: Step) -> None:
        self.tell(conversation, script.write(*steps))

    def tell(self, conversation: Conversation, words: str) -> None:
        """Say something to an agent that understands words."""
        self._do(chat.send(self._deps, conversation.user_id, conversation.id, words))

    def answer(self, conversation: Conversation, question: Question, said: str) -> None:
        self._do(questions.answer(self._deps, conversation.user_id, question.id, said))

    def cancel(self, conversation: Conversation) -> None:
        self._do(control.cancel(self._deps, Origin.by_user(conversation.user_id), conversation.id))

    def token(self, *, user: UserId = USER) -> str:
        """Give out what a client shows to be let in."""
        scopes = (Scope.READ, Scope.WRITE)
        return self._do(issue_token(self._deps, self.add(user), scopes, name="Outside"))

    def load(self, conversation: Conversation) -> Conversation:
        user, which = conversation.user_id, conversation.id
        return self.database.run(lambda tx: tx.conversations.load(user, which))

    def said(self, conversation: Conversation) -> list[str]:
        user, which = conversation.user_id, conversation.id
        found = self.database.run(lambda tx: tx.messages.recent(user, which, limit=100_000))
        return [message.content for message in found if message.role.value != "user"]

    def rows(self, query: str, **values: object) -> list[tuple[Any, ...]]:
        found = self.database.run(lambda tx: tx.connection.execute(text(query), values).all())
        return [tuple(row) for row in found]

    def delete(self, query: str) -> None:
        """Lose something."""
        self.database.run(lambda tx: tx.connection.execute(text(query)))

    def rename_table(self, name: str, to: str) -> None:
        self.database.run(
            lambda tx: tx.connection.execute(text(f"ALTER TABLE {name} RENAME TO {to}"))
        )

    def wait_for(self, what: Callable[[], T], *, within: float = BOUND) -> T:
        """Look until there is something to see."""
        until = time.monotonic() + within
        while not (found := what()):
            assert time.monotonic() < until, f"It did not come true within {within} seconds."
            time.sleep(POLL_SECONDS)
        return found

    def question(self, conversation: Conversation) -> Question:
        """Wait until something is asked."""
        (asked,) = self.wait_for(lambda: self.load(conversation).questions)
        return asked

    def holder(self, conversation: Conversation) -> str | None:
        """Find out which worker has the turn."""
        query = (
            "SELECT r.worker FROM conversations c JOIN runs r ON r.id = c.turn_run WHERE c.id = :id"
        )
        found = self.rows(query, id=conversation.id)
        return str(found[0][0]) if found else None

    def is_settled(self) -> bool:
        """See whether nobody has anything to do, unless it is to answer a question."""
        return not self.rows(_UNSETTLED)

    def wait_until_settled(self) -> None:
        self.wait_for(self.is_settled)

    def let_a_minute_pass_for_deliveries(self) -> None:
        """Let the leases of those who send run out: they are too long to wait for."""
        passed = text(
            "UPDATE deliveries SET leased_until = 0, not_before = clock_timestamp()"
            " WHERE state = 'sending'"
        )

        def work(tx: Tx) -> None:
            tx.connection.execute(passed)
            tx.hint(Hint(HintKind.WORK))

        self.database.run(work)

    def allow(self, conversation: Conversation, call: ToolCall, *, once: bool = False) -> None:
        """Permit a tool for good, or this one call."""
        grant = _grant(call.tool, call_digest(call) if once else None)
        user, which = conversation.user_id, conversation.id
        self.database.run(lambda tx: tx.grants.give(user, which, [grant]))

    def _do(self, action: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(action)


def _grant(tool: Tool, call: str | None = None) -> Grant:
    return Grant(
        id=derive_grant_id(uuid4().hex),
        server=tool.server,
        tool=tool.name,
        definition=tool.definition,
        call=call,
    )


_UNFINISHED = (
    *NEVER_AT_REST.values(),
    "SELECT 1 FROM conversations WHERE status = 'background'",
)
_UNSETTLED = "SELECT 1 WHERE " + " OR ".join(f"EXISTS ({query})" for query in _UNFINISHED)
