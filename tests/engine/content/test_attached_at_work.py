"""Files that users attach, in real runs: with a database, and the real engines."""

from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from engine.content.test_images_at_work import api, claude, openai
from support.cases.images import png
from support.model_api import ModelApi, Refuse, Say
from support.requirements import requirement
from support.stage.make import USER
from support.stage.stage import Stage

from backburner.actions import chat
from backburner.actions.chat import UserMessage
from backburner.actions.work import files
from backburner.bus.local import LocalBus
from backburner.core.content.attachment import Attachment
from backburner.core.content.file import DEFAULT_LIMITS
from backburner.core.conversation import Conversation
from backburner.engine.openai.images import NOT_SEEN
from backburner.runs.attached import REFUSED
from backburner.store.db import Database

__all__ = ["api"]

IMAGE = png(30, 20)
ENCODED = b64encode(IMAGE).decode()


@pytest.fixture(params=[claude, openai], ids=["claude", "openai"])
async def stage(
    request: pytest.FixtureRequest, api: ModelApi, database: Database, tmp_path: Path
) -> AsyncIterator[Stage]:
    make: Callable[..., Any] = request.param
    engine = make(api, tmp_path)
    yield Stage(database, LocalBus(), engine)
    await engine.close()


async def send(stage: Stage, place: Conversation, text: str, **given: bytes) -> None:
    named = list[Attachment]()
    for name, data in given.items():
        file = await files.upload(stage.deps, USER, data, name=name, limits=DEFAULT_LIMITS)
        named.append(Attachment(file.digest))
    await chat.send(stage.deps, USER, place.id, UserMessage(text, named))


@requirement("Z-attach")
async def test_a_model_gets_the_image_and_the_text_of_a_message(
    stage: Stage, api: ModelApi
) -> None:
    api.then(Say("A small one."))
    api.then(Say("Yes."))
    talk = await stage.chat()
    await send(stage, talk, "What is there?", image=IMAGE, words=b"Forty-two.")
    await stage.work()
    await stage.say(talk, "Is it small?")
    await stage.work()

    assert stage.said(talk)[-1] == "Yes."
    for request in api.requests:
        assert request.holds(ENCODED)
        assert request.holds("Forty-two.")
        assert request.holds("What is there?")


async def test_a_model_that_refuses_the_image_answers_without_it(
    stage: Stage, api: ModelApi
) -> None:
    api.then(Say("Hello."))
    api.then(Refuse(400, message="Could not process image"))
    api.then(Say("I cannot see it."))
    api.then(Say("No."))
    talk = await stage.chat()
    await stage.say(talk, "Hi.")
    await stage.work()
    await send(stage, talk, "What is there?", image=IMAGE)
    await stage.work()
    await stage.say(talk, "Is it small?")
    await stage.work()

    assert stage.said(talk)[-3:] == ["I cannot see it.", "Is it small?", "No."]
    assert [request.holds(ENCODED) for request in api.requests] == [False, True, False, False]
    assert api.requests[-1].holds("Hello."), "It is still the same session."
    assert api.requests[-1].holds(REFUSED) or api.requests[-1].holds(NOT_SEEN)
