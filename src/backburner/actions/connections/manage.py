"""Connections: add one, list and show them, change one, give it other headers, remove it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from urllib.parse import urlsplit

from backburner.actions import steps
from backburner.actions.accounts import consent
from backburner.actions.connections import definitions, sealed, sessions
from backburner.actions.connections.definitions import Check
from backburner.actions.connections.sealed import TokenSet
from backburner.actions.connections.token_renewal import revoke
from backburner.actions.deps import Deps
from backburner.actions.questions import SETTLED
from backburner.actions.waits import inputs, reconnection
from backburner.core import transitions
from backburner.core.accounts import Act, Caller
from backburner.core.connections import naming
from backburner.core.connections.catalogue import CATALOGUE
from backburner.core.connections.catalogue_entry import find_by_url
from backburner.core.connections.connection import (
    MAX_CALL_TIMEOUT,
    MIN_CALL_TIMEOUT,
    AuthKind,
    Connection,
    ConnectionState,
    ConnectionTool,
)
from backburner.core.connections.headers import check_headers
from backburner.core.connections.scopes import settle_scopes
from backburner.core.conversation import Conversation
from backburner.core.errors import (
    BadRequest,
    Conflict,
    ConnectionFailed,
    LimitReached,
    NotFound,
    SignedOut,
)
from backburner.core.ids import CallId, ConnectionId, UserId, new_connection_id
from backburner.core.question import NO, Purpose, Question
from backburner.core.transitions import LEAVE
from backburner.core.transitions.change import named_connections
from backburner.core.work.timeouts import check_timeout
from backburner.ports import ToolList, Tx

MAX_CONNECTIONS = 50
#: Open questions of one user that are looked through.
_ALL = 10_000
_ABOUT_CALLS = frozenset({Purpose.APPROVAL, Purpose.INPUT, Purpose.IN_DOUBT})


@dataclass(frozen=True, slots=True, kw_only=True)
class NewConnection:
    """A connection to add: to a server at an address, or to a program of the operator's."""

    url: str = ""
    program: str = ""
    name: str = ""
    title: str = ""
    #: The values are secret.
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    #: None: found out by connecting.
    auth: AuthKind | None = None
    in_chats: bool = True
    #: Connect to it first, and add nothing if that fails.
    check: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionChanges:
    title: str | None = None
    in_chats: bool | None = None
    disabled: bool | None = None
    call_timeout: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownConnection:
    connection: Connection
    tools: Sequence[ConnectionTool]


async def list_connections(deps: Deps, user: UserId) -> Sequence[ShownConnection]:
    def work(tx: Tx) -> Sequence[ShownConnection]:
        tools = tx.connections.tools_of_all(user)
        return [
            ShownConnection(connection=one, tools=tools.get(one.id, ()))
            for one in tx.connections.list(user)
        ]

    return await deps.store.read(work)


async def show(deps: Deps, user: UserId, connection_id: ConnectionId) -> ShownConnection:
    def work(tx: Tx) -> ShownConnection:
        return ShownConnection(
            connection=tx.connections.load(user, connection_id),
            tools=tx.connections.tools(user, connection_id),
        )

    return await deps.store.read(work)


async def add(deps: Deps, caller: Caller, new: NewConnection) -> Check:
    """Connect to a server, and add the connection with its tools.

    A server that wants a sign-in is added without tools; its user signs in next.
    """
    consent.check_scope(caller)
    connection = await deps.store.read(lambda tx: _prepare(tx, deps, caller.user, new))
    found: ToolList | None = None
    if new.check and connection.state is ConnectionState.READY:
        authorization = sessions.Headers(connection.title, new.headers or None)
        try:
            found = await definitions.connect(deps, connection, authorization)
        except SignedOut as error:
            if new.auth is not None or new.headers:
                raise _not_signed_in(error) from error
            connection = _with_auth(connection, AuthKind.OAUTH)

    def work(tx: Tx) -> None:
        tx.users.lock(caller.user)
        _check_free(tx, connection)
        tx.connections.add(connection)
        if new.headers:
            _store_headers(tx, deps, connection, new.headers)
        if found is not None:
            definitions.store_listing(tx, connection, found.tools)
        definitions.record(tx, caller, Act.CONNECTION_ADDED, connection)

    await deps.store.transact(work)
    return Check(connection_id=connection.id, left_out=found.left_out if found else {})


async def change(
    deps: Deps, caller: Caller, connection_id: ConnectionId, changes: ConnectionChanges
) -> None:
    consent.check_scope(caller)

    def work(tx: Tx) -> None:
        before = tx.connections.lock(caller.user, connection_id)
        title = before.title if changes.title is None else naming.check_title(changes.title)
        in_chats = before.in_chats if changes.in_chats is None else changes.in_chats
        disabled = before.disabled if changes.disabled is None else changes.disabled
        call_timeout = check_timeout(changes.call_timeout, MIN_CALL_TIMEOUT, MAX_CALL_TIMEOUT)
        after = replace(
            before,
            title=title,
            in_chats=in_chats,
            disabled=disabled,
            call_timeout=call_timeout or before.call_timeout,
        )
        if after != before:
            tx.connections.save(after)
            definitions.record(tx, caller, Act.CONNECTION_CHANGED, after)

    await deps.store.transact(work)


async def set_headers(
    deps: Deps, caller: Caller, connection_id: ConnectionId, headers: Mapping[str, str]
) -> Check:
    """Give a connection other headers, once its server accepts them.

    Tokens in whose place they come are revoked, if the server lets us.
    """
    consent.check_scope(caller)
    check_headers(headers)
    connection = await deps.store.read(lambda tx: tx.connections.load(caller.user, connection_id))
    if connection.program:
        raise Conflict(f"{connection.title} is a program, which takes no headers.")
    try:
        found = await definitions.connect(
            deps, connection, sessions.Headers(connection.title, headers)
        )
    except SignedOut as error:
        raise _not_signed_in(error) from error

    def work(tx: Tx) -> TokenSet | None:
        # Before the connection: it locks the user and the conversations that waited.
        reconnection.reconnected(tx, caller.user, connection_id)
        before = tx.connections.lock(caller.user, connection_id)
        tokens = _own_tokens(tx, deps, before)
        tx.secrets.remove(caller.user, sessions.secret_prefix(connection_id))
        _store_headers(tx, deps, before, headers)
        settled = settle_scopes(before, asked=before.wanted_scopes, given=())
        after = replace(
            _with_auth(settled, AuthKind.HEADER),
            state=ConnectionState.READY,
            headers=tuple(sorted(headers)),
            sign_in_revision=before.sign_in_revision + 1,
            expires_at=None,
            last_error="",
            last_error_at=None,
        )
        tx.connections.save(after)
        definitions.store_listing(tx, after, found.tools)
        definitions.record(tx, caller, Act.CONNECTION_SIGNED_IN, after)
        return tokens

    if (tokens := await deps.store.transact(work)) is not None:
        await revoke(deps, tokens)
    return Check(connection_id=connection_id, left_out=found.left_out)


async def remove(deps: Deps, caller: Caller, connection_id: ConnectionId) -> str:
    """Remove a connection with its tools, secrets and grants.

    Questions about calls of its tools, and about changes that name it, end: a later connection of
    its name is another one. Runs in progress find it gone at their next call. Tokens are revoked at
    the server, if it lets us; else return its host, where their owner has to end the sign-in.
    """
    consent.check_scope(caller)

    def work(tx: Tx) -> TokenSet | None:
        tx.users.lock(caller.user)
        connection = tx.connections.load(caller.user, connection_id)
        tokens = _own_tokens(tx, deps, connection)
        _end_questions(tx, connection)
        reconnection.forget(tx, connection)
        inputs.forget_connection(tx, caller.user, connection_id)
        tx.grants.end_of_server(caller.user, connection.name)
        tx.secrets.remove(caller.user, sessions.secret_prefix(connection_id))
        tx.connections.remove(caller.user, connection_id)
        definitions.record(tx, caller, Act.CONNECTION_REMOVED, connection)
        return tokens

    tokens = await deps.store.transact(work)
    if tokens is None or await revoke(deps, tokens):
        return ""
    return urlsplit(tokens.issuer.issuer).netloc


def _not_signed_in(error: SignedOut) -> ConnectionFailed:
    """Say that nothing was stored, so that nobody can sign in to it."""
    return ConnectionFailed(error.message, hint=error.hint, permanent=True)


def _own_tokens(tx: Tx, deps: Deps, connection: Connection) -> TokenSet | None:
    """Return the tokens of a connection, unless their end could be that of another's.

    Some servers end all that a user has allowed a client.
    """
    user = connection.user_id
    tokens = sealed.load_if_readable(tx, deps, user, connection.id)
    others = [one for one in tx.connections.list(user) if one.id != connection.id]
    theirs = [sealed.load_if_readable(tx, deps, user, one.id) for one in others]
    is_shared = tokens and any(one and one.is_of_same_client(tokens) for one in theirs)
    return None if is_shared else tokens


def _prepare(tx: Tx, deps: Deps, user: UserId, new: NewConnection) -> Connection:
    """Check what is to be added, and make a name for it."""
    if bool(new.url) == bool(new.program):
        raise BadRequest("A connection has an address or a program.", hint="Give one of them.")
    if new.program and new.program not in deps.mcp_programs:
        names = ", ".join(sorted(deps.mcp_programs))
        raise NotFound(
            f"The operator has defined no program {new.program[:80]!r}.",
            hint=f"Programs of the operator: {names}." if names else "",
        )
    if new.program and (new.headers or new.auth not in (None, AuthKind.NONE)):
        raise BadRequest("A program needs no sign-in.", hint="Leave the headers out.")
    check_headers(new.headers)
    if new.headers and new.auth not in (None, AuthKind.HEADER):
        raise BadRequest("Headers exclude another sign-in.", hint="Leave one of them out.")
    url = naming.check_url(new.url) if new.url else ""
    if url and not new.name:
        _check_new(tx, user, url, new.title)
    entry = find_by_url(CATALOGUE, url)
    auth = AuthKind.HEADER if new.headers else new.auth or AuthKind.NONE
    origin = new.program or (entry.name if entry is not None else naming.name_of_host(url))
    connection = replace(
        make_connection(tx, user, name=new.name, title=new.title, origin=origin),
        url=url,
        program=new.program,
        headers=tuple(sorted(new.headers)),
        catalogue=entry.name if entry is not None else "",
        in_chats=new.in_chats,
    )
    return _with_auth(connection, auth)


def make_connection(
    tx: Tx, user: UserId, *, name: str = "", title: str = "", origin: str = "", program: str = ""
) -> Connection:
    """Make a connection under a name that is free; it is made from title or origin if need be."""
    taken = {one.name for one in tx.connections.list(user)}
    name = naming.check_name(name) if name else naming.make_name(title or origin, taken)
    connection = Connection(
        id=new_connection_id(),
        user_id=user,
        name=name,
        title=naming.check_title(title or name.replace("-", " ").capitalize()),
        program=program,
        created_at=tx.now,
    )
    _check_free(tx, connection)
    return connection


def _with_auth(connection: Connection, auth: AuthKind) -> Connection:
    needs_sign_in = auth is AuthKind.OAUTH
    state = ConnectionState.SIGNING_IN if needs_sign_in else ConnectionState.READY
    return replace(connection, auth=auth, state=state)


def _check_free(tx: Tx, connection: Connection) -> None:
    known = tx.connections.list(connection.user_id)
    if len(known) >= MAX_CONNECTIONS:
        raise LimitReached(
            f"Limit reached: {MAX_CONNECTIONS} connections.", hint="Remove one first."
        )
    if any(one.name == connection.name for one in known):
        raise Conflict(
            f"There is a connection {connection.name} already.",
            hint=f"To sign in to it, run `backburner connect {connection.name}`. "
            "For another one, add --name.",
        )


def _check_new(tx: Tx, user: UserId, url: str, title: str) -> None:
    """Refuse a server that the user has already, unless they have named the second account."""
    same = [
        one for one in tx.connections.list(user) if one.url and naming.is_same_url(one.url, url)
    ]
    titles = {one.title.casefold() for one in same}
    if same and (not title or naming.check_title(title).casefold() in titles):
        raise Conflict(
            f"You have this server already as {same[0].name}.",
            hint="Sign in to it again, or give the second account a name of its own.",
        )


def _store_headers(tx: Tx, deps: Deps, connection: Connection, headers: Mapping[str, str]) -> None:
    secret = json.dumps(dict(headers)).encode()
    name = sessions.headers_secret(connection.id)
    deps.vault.put(tx.secrets, connection.user_id, name, secret)


def _end_questions(tx: Tx, connection: Connection) -> None:
    """End the questions about calls and changes that can no longer be made."""
    user = connection.user_id
    for asked in tx.browse.questions(user, None, limit=_ALL):
        if _is_about(asked.question, connection.name):
            conversation = tx.conversations.lock(user, asked.conversation_id)
            _end(tx, conversation, asked.question)


def _end(tx: Tx, conversation: Conversation, question: Question) -> None:
    user = conversation.user_id
    match question.purpose:
        case Purpose.INPUT:
            steps.save(tx, transitions.withdraw(conversation, question.id, now=tx.now))
            tx.runs.resume_waiting(user, conversation.id, at=tx.now)
        case Purpose.CHANGE:
            steps.save(tx, transitions.withdraw(conversation, question.id, now=tx.now))
        case Purpose.IN_DOUBT:
            steps.save(tx, transitions.answer(conversation, question.id, LEAVE, now=tx.now))
            tx.tool_calls.settle(user, CallId(question.binds_to["call_id"]), SETTLED[LEAVE])
        case _:
            steps.save(tx, transitions.answer(conversation, question.id, NO, now=tx.now))


def _is_about(question: Question, name: str) -> bool:
    if question.purpose is Purpose.CHANGE:
        return name in named_connections(question)
    calls = question.binds_to.get("calls", ()) if question.purpose in _ABOUT_CALLS else ()
    return any(call["server"] == name for call in calls)
