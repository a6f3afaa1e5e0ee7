"""Work that waits for its owner to sign in to a connection: one question, then all of it goes on.

Whoever locks a user does so before they lock conversations, so that one question is asked.
"""

from collections.abc import Collection

from backburner.core import transitions
from backburner.core.connections import access, sign_in
from backburner.core.connections.connection import Connection, ConnectionState
from backburner.core.conversation import Conversation
from backburner.core.errors import Conflict, NotFound
from backburner.core.ids import ConnectionId, ConversationId, UserId
from backburner.core.question import RECONNECT, Purpose, Question
from backburner.core.run import Run, RunKind, Turn
from backburner.core.transitions import Step
from backburner.core.transitions.step import system_message
from backburner.ports import Tx


def wait(
    tx: Tx, conversation: Conversation, turn: Turn, connection_id: ConnectionId
) -> Step | None:
    """Make a run wait for a sign-in; None: it can go on at once, because things have changed.

    The first that waits asks; the others are paused until the owner has answered that one.
    """
    tx.users.lock(turn.user_id)
    try:
        connection = tx.connections.load(turn.user_id, connection_id)
    except NotFound:
        return None
    if connection.state is ConnectionState.READY:
        return None
    asked_in = _find_asked(tx, connection)
    if not asked_in:
        question = sign_in.reconnect_question(
            connection, run_id=turn.run_id, kind=turn.kind, now=tx.now
        )
        return transitions.ask_owner(conversation, question)
    if conversation.id in asked_in:
        text = sign_in.describe_wait(connection, asked_here=True)
        return Step(conversation=conversation, messages=(system_message(text),))
    return transitions.wait_for_sign_in(conversation, sign_in.describe_wait(connection))


def check_not_waiting(tx: Tx, conversation: Conversation) -> None:
    """Refuse to start work that waits for a sign-in: it would only wait again."""
    user = conversation.user_id
    for connection_id, run in tx.runs.waiting_for_sign_in(user):
        if run.conversation_id == conversation.id and run.kind is RunKind.BACKGROUND:
            connection = tx.connections.load(user, connection_id)
            raise Conflict(
                f"This waits until you reconnect {connection.title}.", hint=_how_to(connection)
            )


def reconnected(tx: Tx, user: UserId, connection_id: ConnectionId) -> None:
    """Resume all work that waits for a connection, after its owner has signed in.

    Called in the transaction that stores the sign-in, before the connection is locked.
    """
    tx.users.lock(user)
    connection = tx.connections.load(user, connection_id)
    for conversation_id, question in _find_asked(tx, connection).items():
        conversation = tx.conversations.lock(user, conversation_id)
        step = transitions.answer(conversation, question.id, RECONNECT, now=tx.now)
        tx.conversations.save(step)
    _resume(tx, user, connection_id)


def forget(tx: Tx, connection: Connection) -> None:
    """Resume what waits for a connection, because its owner removes it.

    Work whose brief names it is paused: it would be done without what it is about.
    """
    user = connection.user_id
    tx.users.lock(user)
    for conversation_id, question in _find_asked(tx, connection).items():
        conversation = tx.conversations.lock(user, conversation_id)
        tx.conversations.save(transitions.withdraw(conversation, question.id, now=tx.now))
    _resume(tx, user, connection.id)
    for conversation_id in tx.connections.named_in(user, connection.name):
        conversation = tx.conversations.lock(user, conversation_id)
        if connection.name in access.named(conversation):
            tx.conversations.save(transitions.lose_connection(conversation, connection.title))


def apply_answer(tx: Tx, before: Conversation, question: Question, answer: str) -> None:
    """Resume the work once its owner has signed in; after a stop, ask the next that waits."""
    user, connection_id = before.user_id, ConnectionId(question.binds_to[sign_in.CONNECTION])
    if answer != RECONNECT:
        ask_anew(tx, user)
        return
    try:
        connection = tx.connections.load(user, connection_id)
    except NotFound:
        connection = None
    if connection is not None and connection.state is not ConnectionState.READY:
        raise Conflict(f"{connection.title} is still signed out.", hint=_how_to(connection))
    _resume(tx, user, connection_id)


def _how_to(connection: Connection) -> str:
    return (
        f"Sign in with `backburner connect {connection.name}`; the work then continues by itself."
    )


def ask_anew(tx: Tx, user: UserId) -> None:
    """Ask about connections that runs wait for and that no open question is about any more."""
    waiting = tx.runs.waiting_for_sign_in(user)
    for connection_id in dict.fromkeys(waiting_for for waiting_for, _ in waiting):
        try:
            connection = tx.connections.load(user, connection_id)
        except NotFound:
            connection = None
        if connection is None or connection.state is ConnectionState.READY:
            _resume(tx, user, connection_id)
        elif not _find_asked(tx, connection):
            _ask_first(tx, connection, [run for other, run in waiting if other == connection_id])


def _ask_first(tx: Tx, connection: Connection, runs: Collection[Run]) -> None:
    run = next(iter(runs))
    conversation = tx.conversations.lock(connection.user_id, run.conversation_id)
    question = sign_in.reconnect_question(connection, run_id=run.id, kind=run.kind, now=tx.now)
    tx.conversations.save(transitions.ask_owner(conversation, question))


def _find_asked(tx: Tx, connection: Connection) -> dict[ConversationId, Question]:
    opened = tx.questions.open_with(connection.user_id, Purpose.RECONNECT)
    return {which: asked for which, asked in opened if sign_in.is_about(asked, connection)}


def _resume(tx: Tx, user: UserId, connection_id: ConnectionId) -> None:
    for waits_for, run in tx.runs.waiting_for_sign_in(user):
        if waits_for == connection_id:
            conversation = tx.conversations.lock(user, run.conversation_id)
            tx.conversations.save(transitions.resume_after_sign_in(conversation, now=tx.now))
            tx.runs.resume_waiting(user, run.conversation_id, at=tx.now)
