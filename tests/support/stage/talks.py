"""Talking to an agent on a stage, and letting time pass."""

from datetime import timedelta

from backburner.core.conversation import Conversation
from support.doubles.clock import SetClock
from support.stage.stage import Stage

SECOND = timedelta(seconds=1)


async def say(stage: Stage, chat: Conversation, text: str) -> str:
    """Say something and hear the answer."""
    await stage.say(chat, text)
    await stage.work()
    return stage.said(chat)[-1]


async def wait(stage: Stage, clock: SetClock, seconds: int) -> None:
    clock.advance(seconds * SECOND)
    await stage.work()
