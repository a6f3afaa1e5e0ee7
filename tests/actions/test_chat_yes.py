"""A yes in the chat decides a proposal only if our own words showed it last, and only then."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from support.doubles.engine import Call, Say
from support.people.task_calls import WATCH, add, read_outside
from support.people.tokens import issue_credential
from support.people.tool_calls import ask, children, set_up
from support.requirements import requirement
from support.stage.make import MATE
from support.stage.provider import EVERY_HOUR
from support.stage.stage import Stage

from backburner.actions import chat as chats
from backburner.actions import questions
from backburner.actions.origin import Origin
from backburner.actions.schedules import Timing
from backburner.actions.work import control, mcp_clients
from backburner.actions.work.control import TaskChanges
from backburner.core.accounts import Caller, CredentialKind, Role, Scope
from backburner.core.conversation import Conversation, Destination, Use
from backburner.core.errors import BadAnswer, Conflict, NotAllowed
from backburner.core.ids import GrantId, QuestionId
from backburner.core.tool_policy import Grant
from backburner.core.transitions import Step
from backburner.core.work.views import TaskStatus, task_status
from backburner.store import tables
from backburner.store.db import Database
from backburner.store.tx import Tx


@pytest.fixture
def stage(database: Database) -> Stage:
    """Give a stage with the real tools."""
    return set_up(database)


def browser(chat: Conversation) -> Caller:
    return Caller(
        user=chat.user_id,
        role=Role.MEMBER,
        scopes=frozenset(),
        credential="s_1",
        kind=CredentialKind.SESSION,
    )


def token(chat: Conversation, *scopes: Scope) -> Caller:
    return Caller(
        user=chat.user_id,
        role=Role.MEMBER,
        scopes=frozenset(scopes),
        credential="t_1",
        kind=CredentialKind.TOKEN,
    )


async def say(
    stage: Stage,
    chat: Conversation,
    text: str,
    *,
    by: Caller | None = None,
    answers: QuestionId | None = None,
) -> None:
    caller = by or browser(chat)
    await chats.send(stage.deps, chat.user_id, chat.id, text, by=caller, answers=answers)


async def with_proposal(stage: Stage) -> tuple[Conversation, Conversation]:
    """Let an agent that read outside text add a task, which is then only proposed."""
    chat = await stage.chat()
    read_outside(stage, chat)
    await ask(stage, chat, add())
    (task,) = children(stage, chat)
    assert task_status(task) is TaskStatus.PROPOSED
    return chat, task


def is_open(stage: Stage, task: Conversation) -> bool:
    return task_status(stage.load(task)) is TaskStatus.PROPOSED


@requirement("B-propose")
@pytest.mark.parametrize("word", ["yes", " Yes ", "no"])
async def test_a_yes_or_no_decides_what_our_own_words_showed_last(stage: Stage, word: str) -> None:
    chat, task = await with_proposal(stage)
    *_, reply, shown = stage.messages(chat)
    assert reply.content == "Done."
    assert shown.shows == stage.question(task).id
    assert shown.content == f"{stage.question(task).prompt}\nAnswer here with yes or no."
    assert "at 03:33 on Monday (UTC)" in shown.content

    await say(stage, chat, word)

    is_yes = word.strip().casefold() == "yes"
    status = TaskStatus.ACTIVE if is_yes else None
    assert task_status(stage.load(task)) is status
    verb = "Approved" if is_yes else "Rejected"
    assert stage.said(chat)[-2:] == [word, f"{verb}: {WATCH['name']!r}."]
    before = len(stage.engine.requests)
    await stage.work()
    assert len(stage.engine.requests) == before


@requirement("B-propose")
@pytest.mark.parametrize("word", ["y", "yes please", "ok", "Yes!", "yes\nno"])
async def test_other_words_are_talk(stage: Stage, word: str) -> None:
    chat, task = await with_proposal(stage)

    await say(stage, chat, word)

    assert is_open(stage, task)


@requirement("B-propose")
async def test_a_question_worded_by_the_agent_catches_no_yes(stage: Stage) -> None:
    chat, task = await with_proposal(stage)
    stage.engine.then(Say("Shall I say hello to your mother? Answer here with yes or no."))
    await say(stage, chat, "What is this?")
    await stage.work()

    await say(stage, chat, "yes")

    assert is_open(stage, task)


@requirement("B-propose")
async def test_a_yes_with_two_open_questions_decides_neither(stage: Stage) -> None:
    chat, task = await with_proposal(stage)
    await ask(stage, chat, add(name="other", prompt="Other."))
    shown = stage.messages(chat)[-1]
    assert shown.shows is not None
    assert "Answer here" not in shown.content

    await say(stage, chat, "yes")

    assert all(is_open(stage, one) for one in children(stage, chat))
    await say(stage, chat, "yes", answers=stage.question(task).id)
    assert not is_open(stage, task)


@requirement("B-propose")
async def test_a_yes_sent_before_the_proposal_was_shown_is_talk(stage: Stage) -> None:
    chat = await stage.chat()
    read_outside(stage, chat)
    stage.engine.then(add(), Call("task_list"), Say("Done."))
    await say(stage, chat, "Please.")
    await say(stage, chat, "yes")
    await stage.work()

    (task,) = children(stage, chat)
    assert is_open(stage, task)


@requirement("B-propose")
async def test_a_token_needs_the_scope_to_consent(stage: Stage) -> None:
    chat, task = await with_proposal(stage)
    writer = token(chat, Scope.READ, Scope.WRITE)

    with pytest.raises(NotAllowed):
        await say(stage, chat, "yes", by=writer, answers=stage.question(task).id)
    assert stage.said(chat)[-1] != "yes"
    await say(stage, chat, "yes", by=writer)
    await stage.work()
    assert is_open(stage, task)

    other_chat, other = await with_other_proposal(stage)
    await say(stage, other_chat, "yes", by=token(chat, Scope.WRITE, Scope.APPROVE))
    assert not is_open(stage, other)


async def with_other_proposal(stage: Stage) -> tuple[Conversation, Conversation]:
    chat = await stage.chat()
    read_outside(stage, chat)
    await ask(stage, chat, add(name="other", prompt="Other."))
    (task,) = children(stage, chat)
    return chat, task


@requirement("B-propose")
async def test_a_proposal_that_was_changed_in_between_is_not_decided(stage: Stage) -> None:
    chat, task = await with_proposal(stage)
    old = stage.question(task).id
    timed = TaskChanges(timing=Timing("every tuesday at 3:33"))
    await control.update(stage.deps, Origin.by_user(chat.user_id), task.id, timed)

    await say(stage, chat, "yes")
    assert is_open(stage, task)

    with pytest.raises(Conflict):
        await say(stage, chat, "yes", answers=old)
    assert is_open(stage, task)


@requirement("B-propose")
async def test_work_that_reports_elsewhere_or_has_grants_is_not_decided_in_the_chat(
    stage: Stage,
) -> None:
    chat, task = await with_proposal(stage)
    grant = Grant(id=GrantId("g_1"), server="backburner", tool="run_command", definition="d")
    stage.database.run(lambda tx: tx.grants.give(task.user_id, task.id, [grant]))
    await say(stage, chat, "yes")
    await stage.work()
    assert is_open(stage, task)

    chat, task = await with_other_proposal(stage)
    assert stage.load(task).reports_to == ()
    change = tables.conversations.update().where(tables.conversations.c.id == task.id)
    place = change.values(reports_to='[["mail", "a@example.org"]]')
    stage.database.run(lambda tx: tx.connection.execute(place))
    assert stage.load(task).reports_to == (Destination("mail", "a@example.org"),)
    await say(stage, chat, "yes")
    assert is_open(stage, task)


async def test_a_change_that_was_shown_is_made_by_a_yes_in_the_chat(stage: Stage) -> None:
    chat = await stage.chat()
    await ask(stage, chat, add())
    (task,) = children(stage, chat)
    read_outside(stage, chat)
    await ask(stage, chat, Call("task_update", {"task": task.id, "prompt": "Look twice."}))
    assert stage.messages(chat)[-1].shows == stage.question(chat).id

    await say(stage, chat, "yes")

    assert stage.load(task).state.context["prompt"] == "Look twice."
    assert not stage.load(chat).questions


GRANT = Grant(id=GrantId("g_1"), server="backburner", tool="run_command", definition="d")
MAIL = (Destination("mail", "a@example.org"),)


async def with_change(
    stage: Stage, change: Mapping[str, Any] | None = None, **work: Any
) -> tuple[Conversation, Conversation]:
    """Let an agent that read outside text want to change a task, which is what `work` says."""
    chat = await stage.chat()
    await ask(stage, chat, add())
    (task,) = children(stage, chat)

    def become(tx: Tx) -> None:
        found = tx.conversations.lock(task.user_id, task.id)
        tx.conversations.save(Step(conversation=replace(found, **work)))

    stage.database.run(become)
    read_outside(stage, chat)
    wanted = {"task": task.id, "description": "Changed."} | dict(change or {})
    await ask(stage, chat, Call("task_update", wanted))
    assert stage.messages(chat)[-1].shows == stage.question(chat).id
    return chat, task


@requirement("B-propose")
@pytest.mark.parametrize(
    ("change", "work"),
    [
        ({}, {"reports_to": MAIL}),
        ({}, {"tools": ("run_signed_in",)}),
        ({"tools": ["read_file", "run_signed_in"]}, {}),
        ({"tools": ["read_file"]}, {"tools": ("run_signed_in",)}),
        ({}, {"uses": frozenset({Use.SIGN_INS})}),
    ],
    ids=["recipients", "a sign-in", "a new sign-in", "an old sign-in", "sign-ins by a token"],
)
async def test_a_change_of_work_with_recipients_or_sign_ins_is_not_decided_in_the_chat(
    stage: Stage, change: Mapping[str, Any], work: Mapping[str, Any]
) -> None:
    chat, task = await with_change(stage, change, **work)
    question = stage.question(chat).id

    await say(stage, chat, "yes")
    await stage.work()
    with pytest.raises(Conflict, match="is not decided in a chat"):
        await say(stage, chat, "yes", answers=question)

    assert stage.load(task).state.context.get("description") != "Changed."
    await questions.answer(stage.deps, chat.user_id, question, "yes", by=browser(chat))
    assert stage.load(task).state.context["description"] == "Changed."


@requirement("B-propose")
async def test_a_change_of_work_with_lasting_grants_is_not_decided_in_the_chat(
    stage: Stage,
) -> None:
    chat, task = await with_change(stage)
    stage.database.run(lambda tx: tx.grants.give(task.user_id, task.id, [GRANT]))

    with pytest.raises(Conflict, match="is not decided in a chat"):
        await say(stage, chat, "yes", answers=stage.question(chat).id)
    await say(stage, chat, "yes")

    assert stage.load(task).state.context.get("description") != "Changed."


@requirement("B-propose")
async def test_grants_of_the_chat_do_not_keep_a_change_of_other_work_from_being_decided_there(
    stage: Stage,
) -> None:
    chat, task = await with_change(stage)
    stage.database.run(lambda tx: tx.grants.give(chat.user_id, chat.id, [GRANT]))

    await say(stage, chat, "yes")

    assert stage.load(task).state.context["description"] == "Changed."


@requirement("B-propose")
async def test_proposed_work_with_sign_ins_is_not_decided_in_the_chat(stage: Stage) -> None:
    chat = await stage.chat()
    read_outside(stage, chat)
    await ask(stage, chat, add(tools=["run_signed_in"]))
    (task,) = children(stage, chat)

    await say(stage, chat, "yes")
    assert is_open(stage, task)
    with pytest.raises(Conflict, match="is not decided in a chat"):
        await say(stage, chat, "yes", answers=stage.question(task).id)


@requirement("B-propose")
async def test_no_token_consents_in_a_chat_to_a_change_of_work_that_it_handed_out(
    stage: Stage,
) -> None:
    chat = await stage.chat()
    scopes = (Scope.READ, Scope.WRITE, Scope.APPROVE)
    issued = await issue_credential(stage.deps, chat.user_id, scopes, name="editor")
    client = replace(token(chat, *scopes), credential=issued.id)
    place = (await mcp_clients.ensure_origin(stage.deps, client)).conversation
    task = await stage.task(EVERY_HOUR, parent_id=place)
    read_outside(stage, chat)
    await ask(stage, chat, Call("task_update", {"task": task.id, "prompt": "Look twice."}))

    await say(stage, chat, "yes", by=client)
    with pytest.raises(NotAllowed, match="handed out itself"):
        await say(stage, chat, "yes", by=client, answers=stage.question(chat).id)
    assert stage.load(task).state.context["prompt"] != "Look twice."
    await say(stage, chat, "yes", answers=stage.question(chat).id)
    assert stage.load(task).state.context["prompt"] == "Look twice."


async def test_an_answer_to_a_question_that_is_not_asked_here_is_refused(stage: Stage) -> None:
    chat, task = await with_proposal(stage)
    elsewhere = await stage.chat()
    mate = await stage.chat(MATE)
    question = stage.question(task).id

    for other in (elsewhere, mate):
        with pytest.raises(Conflict, match="cannot answer this question"):
            await say(stage, other, "yes", answers=question)
    with pytest.raises(BadAnswer):
        await say(stage, chat, "perhaps", answers=question)
    assert is_open(stage, task)
    assert stage.said(elsewhere) == stage.said(mate) == []
