"""Answers of users to questions of servers: sealed until they go back to the server."""

import json
from dataclasses import asdict
from typing import Any

from backburner.actions.deps import Deps
from backburner.core.connections import input_question
from backburner.core.connections.connection import Connection
from backburner.core.connections.input_request import (
    InputAction,
    InputAnswer,
    InputAnswers,
    InputNeeded,
)
from backburner.core.ids import QuestionId, UserId
from backburner.core.question import Question
from backburner.ports import Tx


def keep_state(
    tx: Tx,
    deps: Deps,
    question_id: QuestionId,
    needed: InputNeeded,
    connection: Connection,
) -> None:
    """Seal the state that the server wants back, and which one it is. Raises `VaultLocked`."""
    kept = {"state": needed.state, "connection": connection.id}
    _put(tx, deps, connection.user_id, question_id, kept)


def keep_answer(tx: Tx, deps: Deps, user: UserId, question: Question, text: str) -> str:
    """Seal an answer for the server; return what may be kept of it elsewhere."""
    answers = input_question.read_answer(question, text)
    kept = _load(tx, deps, user, question.id)
    given = {key: asdict(answer) for key, answer in answers.answers.items()}
    _put(tx, deps, user, question.id, {**kept, "answers": given})
    return input_question.summarize_answer(answers)


def load_answers(
    tx: Tx, deps: Deps, question_id: QuestionId, connection: Connection
) -> InputAnswers | None:
    """Load the answers to the server of a connection; None: there are none for it any more.

    Another connection may have got its name.
    """
    kept = _load(tx, deps, connection.user_id, question_id)
    if "answers" not in kept or kept.get("connection") != connection.id:
        return None
    answers = {
        key: InputAnswer(action=InputAction(answer["action"]), values=answer["values"])
        for key, answer in kept["answers"].items()
    }
    return InputAnswers(answers=answers, state=kept.get("state"))


def forget(tx: Tx, user: UserId, question_id: QuestionId) -> None:
    tx.secrets.remove(user, _name(question_id))


def _name(question_id: QuestionId) -> str:
    return f"inputs/{question_id}"


def _load(tx: Tx, deps: Deps, user: UserId, question_id: QuestionId) -> dict[str, Any]:
    secret = deps.vault.load(tx.secrets, user, _name(question_id))
    loaded: dict[str, Any] = {} if secret is None else json.loads(secret)
    return loaded


def _put(tx: Tx, deps: Deps, user: UserId, question_id: QuestionId, kept: dict[str, Any]) -> None:
    deps.vault.put(tx.secrets, user, _name(question_id), json.dumps(kept).encode())
