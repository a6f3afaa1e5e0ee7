"""A connection whose owner has to sign in again: one question for all work that waits for it."""

from datetime import datetime
from urllib.parse import urlsplit

from backburner.core.connections.connection import Connection, ConnectionState
from backburner.core.connections.scopes import name_scopes
from backburner.core.ids import RunId, derive_question_id
from backburner.core.question import FIRST_REMINDER, RECONNECT, Purpose, Question, QuestionType
from backburner.core.run import RunKind
from backburner.core.transitions.answers import STOP

#: Of what the question binds to: the id of the connection.
CONNECTION = "connection"


def server_of(connection: Connection) -> str:
    """Name the server of a connection for people: its host, or the program."""
    host = urlsplit(connection.url).hostname
    return host or f"the program {connection.program}"


def reconnect_question(
    connection: Connection, *, run_id: RunId, kind: RunKind, now: datetime
) -> Question:
    """Ask the owner to sign in again; all work that waits goes on once they have."""
    return Question(
        id=derive_question_id(run_id, "reconnect", connection.id, now.isoformat()),
        purpose=Purpose.RECONNECT,
        type=QuestionType.CHOICE,
        prompt=f"Reconnect {connection.title}: {_describe_state(connection)}. Work that needs it"
        " waits, and continues by itself afterwards.",
        options=(RECONNECT, STOP),
        run_id=run_id,
        run_kind=kind,
        binds_to={
            CONNECTION: connection.id,
            "name": connection.name,
            "title": connection.title,
            "server": server_of(connection),
        },
        asked_at=now,
        remind_at=now + FIRST_REMINDER,
    )


def describe_end(connection: Connection) -> str:
    """Say what the server of a connection has against the sign-in; its name comes before."""
    if not connection.wanted_scopes:
        return "no longer accepts the sign-in"
    names = name_scopes(connection.wanted_scopes)
    return f"wants further permissions{f' ({names})' if names else ''}"


def _describe_state(connection: Connection) -> str:
    server = server_of(connection)
    if connection.state is ConnectionState.SIGNING_IN:
        return f"you have not signed in to {server} yet"
    return f"{server} {describe_end(connection)}"


def is_about(question: Question, connection: Connection) -> bool:
    """Return whether a question asks to sign in to this connection."""
    is_reconnection = question.purpose is Purpose.RECONNECT
    return is_reconnection and question.binds_to.get(CONNECTION) == connection.id


def describe_return(connection: Connection | None) -> str:
    """Tell an agent what became of the sign-in that its run waited for; None: of what is gone."""
    if connection is None:
        return "The connection that this waited for was removed. Go on without it."
    if connection.state is not ConnectionState.READY:
        return f"{connection.name} still needs a sign-in. Do without it for now."
    return f"{connection.name} is signed in again. Make the call again now if the work needs it."


def describe_wait(connection: Connection, *, asked_here: bool = False) -> str:
    """Say that work waits for a sign-in that its user was asked for before."""
    where = "" if asked_here else ", which you were asked for in another conversation"
    return (
        f"This waits until you reconnect {connection.title}{where}. It continues by itself"
        " afterwards."
    )
