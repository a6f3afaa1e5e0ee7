"""Which connections work gets: those that its brief names, among its parent's and its token's."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Select, select
from support.doubles.listed_servers import URL
from support.people.callers import local_caller, token_caller
from support.stage.make import USER
from support.stage.stage import Stage

from backburner.actions import chat, questions
from backburner.actions.accounts import consent, credentials
from backburner.actions.chat import NewChat
from backburner.actions.connections import manage
from backburner.actions.connections.manage import ConnectionChanges, NewConnection
from backburner.actions.origin import Origin
from backburner.actions.schedules import Timing
from backburner.actions.work import chosen_connections, control, mcp_clients, preview, tasks
from backburner.actions.work.control import TaskChanges
from backburner.actions.work.jobs import JobRequest
from backburner.actions.work.jobs import start as start_jobs
from backburner.actions.work.tasks import NewTask
from backburner.core.accounts import Caller, Scope
from backburner.core.conversation import Conversation, Status
from backburner.core.errors import BadRequest, Conflict, NotAllowed
from backburner.core.ids import ConversationId, GrantId
from backburner.core.tool_policy import Grant
from backburner.ports import Tx
from backburner.store import tables
from backburner.store.tx import Tx as StoreTx

ME = local_caller()
MONDAYS = Timing("every monday at 3:33")


@pytest.fixture
async def here(stage: Stage) -> Conversation:
    """A chat of somebody with three connections; chats use two of them."""
    for name in ("mail", "wiki", "bank"):
        new = NewConnection(url=URL, name=name, in_chats=name != "bank")
        await manage.add(stage.deps, ME, new)
    return await stage.chat()


def load(which: ConversationId, tx: Tx) -> Conversation:
    return tx.conversations.load(USER, which)


async def add_task(
    stage: Stage,
    origin: Origin,
    names: Sequence[str] | None = ("mail",),
    *,
    name: str = "Watch",
    **more: Any,
) -> Conversation:
    new = NewTask(name=name, prompt="Look.", timing=MONDAYS, connections=names)
    return (await tasks.add(stage.deps, origin, new, **more)).work


async def choose(
    stage: Stage, here: Conversation, *names: str, by: Caller = ME
) -> tuple[str, ...] | None:
    return await choose_all(stage, here, names, by=by)


async def choose_all(
    stage: Stage, here: Conversation, names: Sequence[str] | None, *, by: Caller = ME
) -> tuple[str, ...] | None:
    check = consent.checker(by)
    changed = await chosen_connections.change(
        stage.deps, by.user, here.id, names, check_consent=check
    )
    return changed.connections


async def test_a_task_has_the_connections_that_it_names_and_no_others(
    stage: Stage, here: Conversation
) -> None:
    assert here.connections is None
    for names, chosen in ((None, ()), ((), ()), (("wiki", "mail", "wiki"), ("wiki", "mail"))):
        task = await add_task(stage, Origin.by_user(USER), names)
        assert task.connections == chosen
        await tasks.delete(stage.deps, USER, task.id)

    with pytest.raises(BadRequest, match="You have no connection calendar"):
        await add_task(stage, Origin.by_user(USER), ("mail", "calendar"))


async def test_work_of_an_agent_is_limited_to_what_its_conversation_may_use(
    stage: Stage, here: Conversation
) -> None:
    origin = Origin(USER, here.id)
    await choose(stage, here, "mail")

    (job,) = await start_jobs(
        stage.deps, origin, [JobRequest(description="j", prompt="Look.", connections=["mail"])]
    )
    for name in ("wiki", "bank"):
        request = JobRequest(description="j", prompt="Look.", connections=[name])
        with pytest.raises(BadRequest, match=f"may not use {name}"):
            await start_jobs(stage.deps, origin, [request])
        with pytest.raises(BadRequest, match=f"may not use {name}"):
            await add_task(stage, origin, [name])

    assert job.connections == ("mail",)
    below = Origin(USER, job.id)
    (nothing,) = await start_jobs(stage.deps, below, [JobRequest(description="k", prompt="Look.")])
    assert nothing.connections == ()


async def test_a_proposal_says_what_it_would_use_and_is_not_decided_in_a_chat(
    stage: Stage, here: Conversation
) -> None:
    task = await add_task(stage, Origin(USER, here.id), ("mail", "wiki"), proposed_because="Why.")
    shown = stage.question(task)

    assert "It would use: mail, wiki." in shown.prompt
    await control.update(
        stage.deps,
        Origin.by_user(USER),
        task.id,
        TaskChanges(terms=lambda terms: replace(terms, connections=("mail",))),
        check_consent=consent.checker(ME),
    )
    changed = stage.question(task)
    assert changed.id != shown.id
    assert "It would use: mail." in changed.prompt
    await questions.answer(stage.deps, USER, changed.id, "yes")
    assert stage.load(task).connections == ("mail",)


async def test_a_yes_in_the_chat_does_not_start_work_with_connections(
    stage: Stage, here: Conversation
) -> None:
    task = await add_task(stage, Origin(USER, here.id), proposed_because="Mail comes in.")
    question = stage.question(task)

    with pytest.raises(Conflict, match="sign-ins or connections"):
        await chat.send(stage.deps, USER, here.id, "yes", answers=question.id, by=ME)

    assert stage.load(task).status is Status.WAITING_INPUT


async def test_more_connections_need_a_caller_who_may_consent_and_fewer_do_not(
    stage: Stage, here: Conversation
) -> None:
    task = await add_task(stage, Origin.by_user(USER), ("mail", "wiki"))
    writer = token_caller(Scope.READ, Scope.WRITE)

    for work in (here, task):
        assert await choose(stage, work, "mail", by=writer) == ("mail",)
        with pytest.raises(NotAllowed, match="may not consent"):
            await choose(stage, work, "mail", "wiki", by=writer)
        assert stage.load(work).connections == ("mail",)
        assert await choose(stage, work, "mail", "wiki", "bank") == ("mail", "wiki", "bank")


async def test_a_disabled_connection_is_given_by_a_caller_who_may_consent_too(
    stage: Stage, here: Conversation
) -> None:
    task = await add_task(stage, Origin.by_user(USER), ())
    for shown in await manage.list_connections(stage.deps, USER):
        disabled = ConnectionChanges(disabled=True)
        await manage.change(stage.deps, ME, shown.connection.id, disabled)
    writer = token_caller(Scope.READ, Scope.WRITE)

    for work in (here, task):
        await choose(stage, work)
        with pytest.raises(NotAllowed, match="may not consent"):
            await choose(stage, work, "mail", by=writer)
        assert await choose(stage, work, "mail") == ("mail",)


async def test_a_chat_gets_back_what_chats_use_by_a_caller_who_may_consent(
    stage: Stage, here: Conversation
) -> None:
    await choose(stage, here)
    with pytest.raises(NotAllowed):
        await choose_all(stage, here, None, by=token_caller(Scope.WRITE))

    assert await choose_all(stage, here, None) is None
    assert stage.load(here).connections is None


async def test_nobody_gives_a_job_more_than_its_parent_has(
    stage: Stage, here: Conversation
) -> None:
    await choose(stage, here, "mail")
    request = JobRequest(description="j", prompt="Look.")
    (job,) = await start_jobs(stage.deps, Origin(USER, here.id), [request])
    work = stage.database.run(lambda tx: tx.conversations.load(USER, job.id))

    with pytest.raises(BadRequest, match="may not use wiki"):
        await choose(stage, work, "wiki")
    assert await choose(stage, work, "mail") == ("mail",)


async def test_grants_of_a_task_end_when_it_gets_other_connections(
    stage: Stage, here: Conversation
) -> None:
    task = await add_task(stage, Origin.by_user(USER))
    grant = Grant(id=GrantId("g_1"), server="mail", tool="send", definition="d")
    stage.database.run(lambda tx: tx.grants.give(USER, task.id, [grant]))
    stage.database.run(
        lambda tx: tx.grants.give(USER, here.id, [replace(grant, id=GrantId("g_2"))])
    )

    for work in (here, task):
        await choose(stage, work, "mail", "wiki")

    assert stage.database.run(lambda tx: tx.grants.valid(USER, task.id)) == ()
    assert len(stage.database.run(lambda tx: tx.grants.valid(USER, here.id))) == 1


async def test_work_of_a_token_has_only_what_the_token_was_given_by_name(
    stage: Stage, here: Conversation
) -> None:
    given = token_caller(Scope.WRITE, connections=("mail",))
    plain = token_caller(Scope.WRITE)
    wants = [JobRequest(description="j", prompt="Look.", connections=["mail"])]

    with pytest.raises(BadRequest, match="may not use mail"):
        await add_task(stage, Origin.by(plain))
    # Also below a chat that may use all of them.
    with pytest.raises(BadRequest, match="may not use mail"):
        await start_jobs(stage.deps, Origin.by(plain, here.id), wants)
    (job,) = await start_jobs(stage.deps, Origin.by(given, here.id), wants)
    task = await add_task(stage, Origin.by(given))
    other = Origin.by(given)
    with pytest.raises(BadRequest, match="may not use wiki"):
        await add_task(stage, other, ("wiki",), name="Other")

    assert job.connections == task.connections == ("mail",)


@pytest.mark.parametrize(("given", "expected"), [((), ()), (("mail",), ("mail",))])
async def test_a_chat_that_a_token_starts_has_what_the_token_was_given(
    stage: Stage, here: Conversation, given: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    caller = token_caller(Scope.WRITE, connections=given)
    new = NewChat(uses=caller.work_uses, given=caller.work_connections)
    started = await chat.start(stage.deps, USER, new)

    assert here.connections is None
    assert started.connections == expected
    with pytest.raises(BadRequest):
        await chat.start(stage.deps, USER, replace(new, connections=["wiki"]))


async def test_the_conversation_of_an_mcp_client_has_what_its_token_was_given(
    stage: Stage, here: Conversation
) -> None:
    del here
    places = {}
    for given in ((), ("mail",), ("mail", "wiki")):
        issued = await credentials.create_token(
            stage.deps,
            ME,
            frozenset({Scope.WRITE}),
            frozenset(),
            frozenset(given),
            name=f"editor {len(given)}",
            lifetime=None,
        )
        found = await credentials.identify(stage.deps, issued.secret)
        assert found is not None
        origin = await mcp_clients.ensure_origin(stage.deps, found)
        place = partial(load, origin.conversation)
        places[given] = stage.database.run(place)

    assert {given: place.connections for given, place in places.items()} == {
        given: given for given in places
    }


async def test_a_token_is_given_only_connections_that_there_are(
    stage: Stage, here: Conversation
) -> None:
    del here
    with pytest.raises(BadRequest, match="You have no connection calendar"):
        await credentials.create_token(
            stage.deps,
            ME,
            frozenset({Scope.WRITE}),
            frozenset(),
            frozenset({"calendar"}),
            name="editor",
            lifetime=None,
        )


async def test_a_test_run_uses_what_its_task_may_use(stage: Stage, here: Conversation) -> None:
    del here
    task = await add_task(stage, Origin.by_user(USER))

    job = await preview.start_test_run(stage.deps, USER, task.id)

    assert job.connections == ("mail",)


def read_column(statement: Select[Any], tx: StoreTx) -> list[Any]:
    return list(tx.connection.execute(statement).scalars())


async def test_work_that_is_made_while_a_connection_is_removed_does_not_get_a_later_one(
    either_stage: Stage,
) -> None:
    stage = either_stage
    new = NewConnection(url=URL, name="mail", check=False)
    chats = [await stage.chat() for _ in range(6)]
    named = select(tables.conversations.c.connections).distinct()
    request = JobRequest(description="j", prompt="Look.", connections=["mail"])
    for _ in range(5):
        which = (await manage.add(stage.deps, ME, new)).connection_id
        await asyncio.gather(
            *(start_jobs(stage.deps, Origin(USER, one.id), [request]) for one in chats),
            *(choose(stage, one, "mail") for one in chats),
            manage.remove(stage.deps, ME, which),
            return_exceptions=True,
        )
        assert await manage.list_connections(stage.deps, USER) == []
        assert set(stage.database.run(partial(read_column, named))) <= {None, "[]"}
        for one in chats:
            await choose_all(stage, one, None)
