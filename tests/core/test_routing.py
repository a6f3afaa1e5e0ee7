"""The profile of a new conversation, and the fallback after a failure."""

from dataclasses import replace

import pytest
from support.requirements import requirement
from support.stage import make

from backburner.core.conversation import Conversation, Kind
from backburner.core.errors import BadRequest
from backburner.core.ids import ItemId
from backburner.core.routing import NO_ROUTES, Routes, assign, choose, escalate, requested_by
from backburner.core.run import Item, ItemKind, RunKind

ROUTES = Routes(names=("claude", "local", "demo"), chat="claude", background="local")
BACKGROUND = (Kind.TASK, Kind.JOB, Kind.DISCOVERY)


def born(kind: Kind, routes: Routes = ROUTES, *, wished: str | None = None) -> Conversation:
    return assign(make.conversation(kind=kind, requested_profile=wished), routes)


@requirement("B-routing")
@pytest.mark.parametrize("kind", BACKGROUND)
def test_background_work_goes_to_the_background_profile_and_a_chat_does_not(kind: Kind) -> None:
    assert born(kind).profile == "local"
    assert born(Kind.CHAT).profile == "claude"


@pytest.mark.parametrize("kind", Kind)
def test_without_a_background_profile_everything_uses_the_same(kind: Kind) -> None:
    assert choose(replace(ROUTES, background=None), kind) == "claude"


@pytest.mark.parametrize("kind", Kind)
def test_a_profile_that_was_asked_for_is_what_it_gets(kind: Kind) -> None:
    assert born(kind, wished="demo").profile == "demo"


def test_a_profile_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(BadRequest, match=r"no profile 'clod'. Available: claude, local, demo\."):
        choose(ROUTES, Kind.CHAT, "clod")
    with pytest.raises(BadRequest, match=r"Available: none\."):
        choose(NO_ROUTES, Kind.CHAT, "clod")


def test_without_routes_a_conversation_gets_the_default_where_it_runs() -> None:
    assert choose(NO_ROUTES, Kind.TASK) == ""


@requirement("B-routing")
@pytest.mark.parametrize("kind", BACKGROUND)
def test_a_run_that_failed_in_the_background_is_tried_under_the_chats_profile_once(
    kind: Kind,
) -> None:
    assert escalate(ROUTES, born(kind), escalated=False) == "claude"
    assert escalate(ROUTES, born(kind), escalated=True) is None


@requirement("B-routing")
def test_a_chat_keeps_its_profile_whatever_happens() -> None:
    assert escalate(ROUTES, born(Kind.CHAT), escalated=False) is None
    assert escalate(ROUTES, born(Kind.CHAT, wished="local"), escalated=False) is None


def test_a_profile_requested_by_name_has_no_fallback() -> None:
    assert escalate(ROUTES, born(Kind.TASK, wished="local"), escalated=False) is None


def test_equal_profiles_for_chat_and_background_have_no_fallback() -> None:
    same = replace(ROUTES, background="claude")
    none = replace(ROUTES, background=None)

    assert escalate(same, born(Kind.TASK, same), escalated=False) is None
    assert escalate(none, born(Kind.TASK, none), escalated=False) is None
    assert escalate(ROUTES, born(Kind.TASK, none), escalated=False) is None


def message_item(number: int, **content: str) -> Item:
    return Item(
        id=ItemId(f"i_{number}"),
        kind=ItemKind.MESSAGE,
        run_kind=RunKind.REPLY,
        content={"text": "Hello.", **content},
        arrived_at=make.NOON,
    )


@requirement("Z-model-change")
def test_of_several_messages_the_last_that_asks_for_a_profile_counts() -> None:
    plain, local, demo = (
        message_item(1),
        message_item(2, profile="local"),
        message_item(3, profile="demo"),
    )

    assert requested_by([]) == ""
    assert requested_by([plain]) == ""
    assert requested_by([local, plain]) == "local"
    assert requested_by([local, demo]) == "demo"
