"""Answers of users to questions of servers: sealed until they go back to the server.

They are deleted when they have, and else with the run that they are for, with its conversation or
with the connection. The names of the secrets say of which they are.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict
from functools import partial
from typing import Any

from backburner.actions.deps import Deps
from backburner.core.connections.connection import Connection
from backburner.core.connections.inputs import input_question
from backburner.core.connections.inputs.input_request import (
    InputAction,
    InputAnswer,
    InputAnswers,
    InputNeeded,
    InputValues,
)
from backburner.core.conversation import Conversation
from backburner.core.errors import NotFound
from backburner.core.ids import ConnectionId, ConversationId, QuestionId, UserId
from backburner.core.question import Purpose, Question
from backburner.core.run import Item, ItemKind
from backburner.ports import Tx

_ALL = "inputs/"


def keep_state(
    tx: Tx, deps: Deps, place: Conversation, question: Question, needed: InputNeeded
) -> None:
    """Seal the state that the server of a question wants back. Raises `VaultLocked`."""
    _put(tx, deps, place.user_id, _name_of(place, question), {"state": needed.state})


def keep_answer(
    tx: Tx, deps: Deps, place: Conversation, question: Question, given: str | InputValues
) -> str:
    """Seal an answer for the server; return what may be kept of it elsewhere."""
    answers = input_question.read_answer(question, given)
    name = _name_of(place, question)
    kept = _load(tx, deps, place.user_id, name)
    sealed = {key: asdict(answer) for key, answer in answers.answers.items()}
    _put(tx, deps, place.user_id, name, {**kept, "answers": sealed})
    return input_question.summarize_answer(answers)


def load_answers(
    tx: Tx, deps: Deps, place: Conversation, question_id: QuestionId, connection: Connection
) -> InputAnswers | None:
    """Load the answers to the server of a connection; None: there are none for it any more.

    Another connection may have got its name.
    """
    kept = _load(tx, deps, place.user_id, _name(place.id, question_id, connection.id))
    if "answers" not in kept:
        return None
    answers = {
        key: InputAnswer(action=InputAction(answer["action"]), values=answer["values"])
        for key, answer in kept["answers"].items()
    }
    return InputAnswers(answers=answers, state=kept.get("state"))


def find_answers(items: Iterable[Item]) -> Iterable[Item]:
    """Find the answers to questions of servers among the items of a run."""
    return (
        item
        for item in items
        if item.kind is ItemKind.ANSWER and item.content.get("purpose") == Purpose.INPUT
    )


def forget(tx: Tx, place: Conversation, question_id: QuestionId) -> None:
    tx.secrets.remove(place.user_id, _name(place.id, question_id))


def forget_conversation(tx: Tx, user: UserId, conversation_id: ConversationId) -> None:
    tx.secrets.remove(user, _name(conversation_id))


def forget_connection(tx: Tx, user: UserId, connection_id: ConnectionId) -> None:
    for _, name in tx.secrets.find(_ALL, owner=user):
        if name.endswith(f"/{connection_id}"):
            tx.secrets.remove(user, name)


def forget_unused(tx: Tx, user: UserId, conversation_id: ConversationId) -> None:
    """Delete what no run is going to send: its question was withdrawn, or its run has ended."""
    found = tx.secrets.find(_name(conversation_id), owner=user)
    if not found:
        return
    answers = find_answers(tx.inbox.pending_answers(user, conversation_id))
    used = {question.id for question in tx.questions.open_of(user, conversation_id)}
    used |= {QuestionId(item.content["question_id"]) for item in answers}
    for _, name in found:
        if QuestionId(name.split("/")[2]) not in used:
            tx.secrets.remove(user, name)


async def sweep(deps: Deps) -> None:
    """Delete what nothing has deleted in its time, such as of work that a crash has ended."""
    found = await deps.store.read(lambda tx: tx.secrets.find(_ALL))
    for user, conversation_id in sorted({(user, name.split("/")[1]) for user, name in found}):
        await deps.store.transact(partial(_sweep, user, ConversationId(conversation_id)))


def _sweep(user: UserId, conversation_id: ConversationId, tx: Tx) -> None:
    try:
        # A run may be taking or giving back answers.
        tx.conversations.lock(user, conversation_id)
    except NotFound:
        forget_conversation(tx, user, conversation_id)
    else:
        forget_unused(tx, user, conversation_id)


def _name_of(place: Conversation, question: Question) -> str:
    return _name(place.id, question.id, ConnectionId(question.binds_to["connection"]))


def _name(*ids: ConversationId | QuestionId | ConnectionId) -> str:
    """Name a secret by its conversation, question and connection, or the first of these."""
    return f"{_ALL}{'/'.join(ids)}"


def _load(tx: Tx, deps: Deps, user: UserId, name: str) -> dict[str, Any]:
    secret = deps.vault.load(tx.secrets, user, name)
    loaded: dict[str, Any] = {} if secret is None else json.loads(secret)
    return loaded


def _put(tx: Tx, deps: Deps, user: UserId, name: str, kept: dict[str, Any]) -> None:
    deps.vault.put(tx.secrets, user, name, json.dumps(kept).encode())
