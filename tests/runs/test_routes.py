"""A new conversation gets its profile when it is made."""

from collections.abc import Callable

import pytest
from support.requirements import requirement
from support.stage.stage import Stage

from backburner.actions import chat
from backburner.actions.chat import NewChat
from backburner.core.errors import BadRequest
from backburner.core.routing import Routes

SetUp = Callable[..., Stage]
ROUTES = Routes(names=("scripted", "local"), chat="scripted", background="local")


@requirement("B-routing")
async def test_a_chat_and_a_task_each_get_their_profile(set_up: SetUp) -> None:
    stage = set_up(routes=ROUTES)
    talk, task = await stage.chat(), await stage.task()

    assert stage.load(talk).profile == "scripted"
    assert stage.load(task).profile == "local"


async def test_a_profile_that_was_asked_for_is_kept_with_the_wish(
    set_up: SetUp,
) -> None:
    stage = set_up(routes=ROUTES)
    talk = await chat.start(stage.deps, stage.user(), NewChat(profile="local"))
    task = await stage.task(profile="scripted")

    assert (stage.load(talk).profile, stage.load(talk).requested_profile) == ("local", "local")
    assert (stage.load(task).profile, stage.load(task).requested_profile) == (
        "scripted",
        "scripted",
    )


async def test_a_profile_that_does_not_exist_leaves_no_conversation(
    set_up: SetUp,
) -> None:
    stage = set_up(routes=ROUTES)
    with pytest.raises(BadRequest, match="Available: scripted, local"):
        await chat.start(stage.deps, stage.user(), NewChat(profile="clod"))
    with pytest.raises(BadRequest, match="Available: scripted, local"):
        await stage.task(profile="clod")
