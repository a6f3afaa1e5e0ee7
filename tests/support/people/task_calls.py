"""An agent that calls the tools for tasks, and what became of them."""

from typing import Any

from backburner.actions.origin import Origin
from backburner.core.conversation import Conversation, MessageRole, Source
from backburner.core.run import RunKind, Turn
from backburner.core.transitions import NewMessage
from backburner.ports import Claimer, ToolResult
from backburner.runs.retrying_store import with_retries
from backburner.store import tables
from backburner.store.tx import Tx
from backburner.tools.tasks import task_offers
from support.doubles.engine import Call
from support.people.tool_calls import ask
from support.stage.stage import LEASE, Stage

#: Its next time is never while a test runs.
WATCH: dict[str, Any] = {
    "name": "watch-ci-main",
    "prompt": "Look at CI on main and say what broke.",
    "when": "every monday at 3:33",
}
WHY = "CI broke twice this week."


def add(**changes: Any) -> Call:
    return Call("task_add", WATCH | changes)


def propose(**changes: Any) -> Call:
    return Call("task_propose", {**WATCH, "why": WHY, **changes})


async def tell(stage: Stage, chat: Conversation, name: str, /, **arguments: Any) -> str:
    """Let the agent make one call in a reply, and hear what it gave."""
    (told,) = await ask(stage, chat, Call(name, arguments))
    return told


async def call(stage: Stage, origin: Origin, name: str, /, **arguments: Any) -> ToolResult:
    deps = with_retries(stage.deps) if origin.turn else stage.deps
    (offer,) = (one for one in task_offers(deps, origin) if one.tool.name == name)
    return await offer.run(arguments)


async def work_turn(stage: Stage, work: Conversation) -> Turn:
    """Take the turn for background work and keep it."""
    claimer = Claimer(worker="stage", lease=LEASE, per_user_limit=20)
    (claim,) = stage.database.run(lambda tx: tx.queue.claim(None, claimer))
    assert (claim.turn.kind, claim.turn.conversation_id) == (RunKind.BACKGROUND, work.id)
    return claim.turn


def read_outside(stage: Stage, conversation: Conversation) -> None:
    """Let words of others have been read in a conversation."""
    said = NewMessage(
        role=MessageRole.SYSTEM, content="A mail.", source=Source.WORKER, outside=True
    )
    change = tables.conversations.update().where(tables.conversations.c.id == conversation.id)

    def read(tx: Tx) -> None:
        # A session that begins later is given it.
        tx.messages.append(conversation.user_id, conversation.id, [said], run_id=None)
        tx.connection.execute(change.values(outside_read=True))

    stage.database.run(read)


def all_tasks(stage: Stage) -> list[Conversation]:
    """Read every task there is, by its title."""
    rows = stage.database.run(
        lambda tx: tx.connection.execute(
            tables.conversations.select()
            .where(tables.conversations.c.kind == "task")
            .order_by(tables.conversations.c.title)
        ).all()
    )
    return [
        stage.database.run(lambda tx, row=row: tx.conversations.load(row.user_id, row.id))  # type: ignore[misc]
        for row in rows
    ]
