"""Much of everything: a chat of ten thousand messages, five hundred conversations, questions."""

from datetime import timedelta
from typing import Any

from sqlalchemy import insert
from support.doubles.engine import End, Say
from support.showcase.world import NOW, Showcase, before_the_end

from backburner.core import transitions
from backburner.core.conversation import MessageRole, Source
from backburner.core.ids import new_conversation_id, new_message_id
from backburner.ports import Tx
from backburner.store import tables
from backburner.store.context import Context
from backburner.store.dialect import number_rows

MESSAGES, CONVERSATIONS, QUESTIONS = 10_000, 500, 20
TEXTS = (
    "And what does it cost a month?",
    "It costs **$31**, and $28 if you pay for a year. The first month is free.",
    "Please put it into the table.",
    "Done:\n\n| Offer | Month |\n|---|--:|\n| Northwind | $31 |\n| Palisade | $28 |\n",
)


@before_the_end(days=9)
async def talk_at_length(world: Showcase) -> None:
    """The last of the messages is said an hour before the end."""
    first = NOW - timedelta(hours=1, seconds=20 * MESSAGES)
    long = await world.begin("long", "Ten thousand messages", "Hello.", Say("Hello."))
    rows: list[dict[str, Any]] = [
        {
            "user_id": world.me,
            "conversation_id": long,
            "id": new_message_id(),
            "role": (MessageRole.ASSISTANT if number % 2 else MessageRole.USER).value,
            "source": Source.CHAT.value,
            "content": f"{number}: {TEXTS[number % len(TEXTS)]}",
            "outside": False,
            "created_at": first + timedelta(seconds=20 * number),
        }
        for number in range(MESSAGES - 2)
    ]

    def add(tx: Context) -> None:
        number_rows(tx.connection, tables.messages, rows)
        tx.connection.execute(insert(tables.messages), rows)

    world.database.run(add)


@before_the_end(days=2)
async def begin_many_conversations(world: Showcase) -> None:
    def begin(tx: Tx) -> None:
        for number in range(CONVERSATIONS):
            step = transitions.start_chat(new_conversation_id(), world.me, now=tx.now)
            tx.conversations.add(transitions.rename(step.conversation, f"Conversation {number}"))

    await world.deps.store.transact(begin)


@before_the_end(minutes=30)
async def ask_many_questions(world: Showcase) -> None:
    for number in range(QUESTIONS):
        task = await world.set_task(f"task{number}", f"Task {number}", "Ask.")
        asked = {"type": "confirmation", "prompt": f"Shall I do number {number}?"}
        outcome = {"needs_input": True, "message": "It can be done.", "question": asked}
        world.plays(task, (End(outcome),))
