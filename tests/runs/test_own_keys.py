"""Keys of single users for a model: used for their work only, and refused at their expense only."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from support.doubles.clock import SetClock
from support.doubles.engine import End, Fail, ScriptedEngine, Spend
from support.requirements import requirement
from support.stage.make import MATE, USER
from support.stage.provider import DENIED, DOWN, EVERY_HOUR, MINUTE, note_trouble, outages
from support.stage.stage import Stage
from support.stage.vaults import TWO, given

from backburner.actions.models import own_keys
from backburner.core.conversation import PauseReason
from backburner.core.errors import EngineFailed, ModelAccessDenied, NotFound
from backburner.core.routing import Routes
from backburner.core.run import FailureKind, RunStatus
from backburner.ports import TurnRequest

OWN, PROFILE = "sk-own-canary-8f1c", "scripted"


class Provider:
    """Notes whose key each request has, and fails those of one key."""

    def __init__(self) -> None:
        self.keys: list[tuple[str, str | None]] = []
        self.trouble: dict[str | None, Fail] = {}

    def __call__(self, request: TurnRequest) -> list[Fail | Spend | End]:
        self.keys.append((request.conversation.user_id, request.own_key))
        if (trouble := self.trouble.get(request.own_key)) is not None:
            return [trouble]
        return [Spend(10), End({"complete": True, "message": "Done."})]


@pytest.fixture
def provider() -> Provider:
    return Provider()


@pytest.fixture
def stage(set_up: Callable[..., Stage], provider: Provider) -> Stage:
    stage = set_up(
        otherwise=provider, own_model_keys=True, routes=Routes(names=(PROFILE,), chat=PROFILE)
    )
    for user in (USER, MATE):
        stage.user(user)
    return stage


@requirement("A-mcp-isolation")
async def test_a_key_is_used_for_the_work_of_its_user_only(
    stage: Stage, provider: Provider
) -> None:
    await own_keys.set_key(stage.deps, USER, PROFILE, f" {OWN}\n")
    for user in (USER, MATE):
        chat = await stage.chat(user)
        await stage.say(chat, "Hello!")
        await stage.task(user=user)

    await stage.work()

    assert set(provider.keys) == {(USER, OWN), (MATE, None)}
    assert len(provider.keys) == 4
    await own_keys.remove_key(stage.deps, USER, PROFILE)
    await stage.say(chat, "And now?")
    await stage.work()
    assert provider.keys[-1][1] is None


async def test_a_refused_key_pauses_the_work_of_its_user_and_is_no_outage(
    stage: Stage, provider: Provider
) -> None:
    await own_keys.set_key(stage.deps, USER, PROFILE, OWN)
    provider.trouble[OWN] = DENIED
    own, mates = await stage.task(EVERY_HOUR), await stage.task(EVERY_HOUR, user=MATE)

    await stage.work()

    assert outages(stage) == []
    assert stage.load(own).pause_reason is PauseReason.FAILURES
    assert stage.load(mates).pause_reason is None
    (run,) = stage.history(own)
    assert run.failure is not None
    assert run.failure.kind is FailureKind.MODEL
    assert "Your own key for scripted was refused: The key was refused." in run.failure.message
    assert "backburner models key scripted" in run.failure.message
    assert [run.status for run in stage.history(mates)] == [RunStatus.SUCCESS]


async def test_trouble_under_an_own_key_is_retried_and_holds_up_nobody_else(
    stage: Stage, provider: Provider, clock: SetClock
) -> None:
    await own_keys.set_key(stage.deps, USER, PROFILE, OWN)
    provider.trouble[OWN] = DOWN
    own, mates = await stage.task(EVERY_HOUR), await stage.task(EVERY_HOUR, user=MATE)

    for _ in range(10):
        await stage.work()
        clock.advance(MINUTE)

    assert outages(stage) == []
    assert [run.status for run in stage.history(mates)] == [RunStatus.SUCCESS]
    (run,) = stage.history(own)
    assert run.status is RunStatus.QUEUED
    tries = [user for user, _ in provider.keys].count(USER)
    # With growing delays.
    assert 3 <= tries <= 8
    provider.trouble.clear()
    clock.advance(timedelta(hours=1))
    await stage.work()
    assert stage.history(own)[-1].status is RunStatus.SUCCESS


async def test_success_under_an_own_key_does_not_end_an_outage_of_the_others(
    stage: Stage, provider: Provider, clock: SetClock
) -> None:
    await own_keys.set_key(stage.deps, USER, PROFILE, OWN)
    provider.trouble[None] = DENIED
    note_trouble(stage)
    before = outages(stage)
    await stage.say(await stage.chat(), "Hello!")

    await stage.work()
    clock.advance(timedelta(hours=1))
    await stage.task()
    await stage.work()

    assert [key for _, key in provider.keys] == [OWN, OWN]
    assert [outage.profile for outage in outages(stage)] == [one.profile for one in before]
    assert outages(stage)[0].answered_at is None
    assert outages(stage)[0].since == before[0].since


async def test_nobody_else_pays_if_the_own_key_fails(
    set_up: Callable[..., Stage], provider: Provider
) -> None:
    other = ScriptedEngine(otherwise=provider)
    stage = set_up(own_model_keys=True, routes=Routes(names=(PROFILE, "other"), chat="other"))
    stage.deps.engines = {PROFILE: ScriptedEngine(otherwise=provider), "other": other}
    stage.deps.routes = Routes(names=(PROFILE, "other"), chat="other", background=PROFILE)
    stage.user(USER)
    await own_keys.set_key(stage.deps, USER, PROFILE, OWN)
    provider.trouble[OWN] = DENIED

    await stage.task()
    await stage.work()

    assert provider.keys == [(USER, OWN)]


async def test_a_key_that_cannot_be_opened_is_not_replaced_by_that_of_others(
    stage: Stage, provider: Provider
) -> None:
    await own_keys.set_key(stage.deps, USER, PROFILE, OWN)
    stage.deps.vault = given(TWO)
    chat = await stage.chat()
    await stage.say(chat, "Hello!")

    await stage.work()

    assert provider.keys == []
    (run,) = stage.history(chat)
    assert run.failure is not None
    assert "Your own key for scripted cannot be opened" in run.failure.message
    assert "master key one" in run.failure.message


@pytest.mark.parametrize("after", ["openai http://elsewhere/v1", "claude-key http://here/v1"])
async def test_a_key_is_sent_only_to_the_address_that_it_was_stored_for(
    stage: Stage, provider: Provider, after: str
) -> None:
    stage.deps.model_servers = {PROFILE: "openai http://here/v1"}
    await own_keys.set_key(stage.deps, USER, PROFILE, OWN)
    stage.deps.model_servers = {PROFILE: after}
    stage.deps.routes = Routes(names=(PROFILE, "other"), chat=PROFILE, background="other")
    stage.deps.engines = {**stage.deps.engines, "other": ScriptedEngine(otherwise=provider)}
    chat = await stage.chat()
    await stage.say(chat, "Hello!")

    await stage.work()

    assert provider.keys == []
    assert outages(stage) == []
    (run,) = stage.history(chat)
    assert run.failure is not None
    assert "it had another address" in run.failure.message
    assert "`backburner models key scripted`" in run.failure.message
    assert await own_keys.list_profiles(stage.deps, USER) == set()


async def test_a_key_is_given_again_for_a_new_address_or_removed_for_all(
    stage: Stage, provider: Provider
) -> None:
    # As if it was stored before addresses were kept.
    stage.database.run(
        lambda tx: stage.deps.vault.put(tx.secrets, USER, f"model-key/{PROFILE}/", OWN.encode())
    )
    stage.deps.model_servers = {PROFILE: "openai http://elsewhere/v1"}
    with pytest.raises(EngineFailed, match="Enter it again"):
        await own_keys.find_key(stage.deps, USER, PROFILE)

    await own_keys.set_key(stage.deps, USER, PROFILE, "sk-another")
    await stage.say(await stage.chat(), "Hello!")
    await stage.work()
    assert provider.keys == [(USER, "sk-another")]
    assert await own_keys.list_profiles(stage.deps, USER) == {PROFILE}

    await own_keys.remove_key(stage.deps, USER, PROFILE)
    assert await own_keys.find_key(stage.deps, USER, PROFILE) is None
    with pytest.raises(NotFound):
        await own_keys.remove_key(stage.deps, USER, PROFILE)


async def test_without_the_setting_no_key_is_taken_or_used(
    stage: Stage, provider: Provider
) -> None:
    await own_keys.set_key(stage.deps, USER, PROFILE, OWN)
    stage.deps.own_model_keys = False
    await stage.say(await stage.chat(), "Hello!")

    await stage.work()

    assert provider.keys == [(USER, None)]


async def test_the_key_is_in_nothing_that_the_user_is_told(
    stage: Stage, provider: Provider
) -> None:
    await own_keys.set_key(stage.deps, USER, PROFILE, OWN)
    quoted = ModelAccessDenied(f"Bad key: {OWN}.", permanent=True)
    provider.trouble[OWN] = Fail(quoted)
    chat = await stage.chat()
    await stage.say(chat, "Hello!")

    await stage.work()

    (run,) = stage.history(chat)
    assert run.failure is not None
    assert OWN not in run.failure.message
    assert not any(OWN in message.content for message in stage.messages(chat))
