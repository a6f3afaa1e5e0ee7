"""An agent that calls the tools of its conversation, and what became of it."""

from typing import Any

from backburner.bus.local import LocalBus
from backburner.core.conversation import Conversation
from backburner.core.run import RunKind, Turn
from backburner.core.transitions import start_chat
from backburner.ports import ToolResult
from backburner.store.db import Database
from backburner.tools.toolbox import Toolbox
from support.doubles.engine import Call, Say, ScriptedEngine
from support.stage.stage import Stage

WATCH = {"what": "Look at the build and say when it breaks.", "when": "every weekday at 9"}
STRETCH = {"what": "Remind the user to stretch.", "when": "in 20 seconds", "title": "Stretch"}


def set_up(database: Database, **more: Any) -> Stage:
    return Stage(database, LocalBus(), ScriptedEngine(), toolbox=Toolbox, **more)


async def ask(stage: Stage, chat: Conversation, *calls: Call) -> list[str]:
    """Let the agent make calls in a reply, and hear what they gave."""
    before = len(stage.engine.results)
    stage.engine.then(*calls, Say("Done."))
    await stage.say(chat, "Please.")
    await stage.work()
    return [result.text for result in stage.engine.results[before:]]


def schedule(**arguments: Any) -> Call:
    return Call("schedule_work", arguments)


def children(stage: Stage, chat: Conversation) -> list[Conversation]:
    user, which = chat.user_id, chat.id
    return stage.database.run(
        lambda tx: [
            tx.conversations.load(user, child) for child in tx.conversations.children(user, which)
        ]
    )


async def reply_turn(stage: Stage, chat: Conversation) -> Turn:
    """Take the turn for a reply and keep it."""
    await stage.say(chat, "Please.")
    claimer = stage.claiming.claimer
    (claim,) = stage.database.run(lambda tx: tx.queue.claim(claimer, None))
    assert claim.turn.kind is RunKind.REPLY
    return claim.turn


async def call(stage: Stage, turn: Turn, name: str, /, **arguments: Any) -> ToolResult:
    # Not loaded: the next transaction is that of the tool, and may be one that is to fail.
    chat = start_chat(
        turn.conversation_id, turn.user_id, now=stage.database.clock()[0]
    ).conversation
    offers = await Toolbox(stage.deps).offers(turn, chat)
    (offer,) = (one for one in offers if one.tool.name == name)
    return await offer.run(arguments)
