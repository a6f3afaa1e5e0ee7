"""Signing in to the server of a connection: begin, come back, finish; each in any process.

Whoever begins is who finishes. A browser begins with its session, and only that session finishes.
A command in a terminal begins with a secret that it keeps: a browser that its user has signed in
to may hand the final address on to it, and any other browser shows the address to be pasted. So
nobody can finish with a code that somebody else was made to fetch.
"""

import asyncio
import secrets
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from urllib.parse import parse_qs, urlsplit

from backburner.actions.accounts import consent
from backburner.actions.connections import definitions, sealed
from backburner.actions.connections.sealed import FinalAddress, TokenSet
from backburner.actions.connections.token_renewal import new_serial
from backburner.actions.deps import Deps
from backburner.actions.waits import reconnection
from backburner.core.accounts import Act, Caller, CredentialKind, secret_digest
from backburner.core.connections.connection import AuthKind, Connection, ConnectionState
from backburner.core.connections.oauth_client import OAuthClient
from backburner.core.connections.scopes import name_scopes, scopes_to_ask_for, settle_scopes
from backburner.core.errors import (
    BadRequest,
    Conflict,
    ConnectionFailed,
    NotAllowed,
    NotFound,
    SecretDamaged,
)
from backburner.core.ids import ConnectionId
from backburner.ports import (
    Hint,
    HintKind,
    PendingSignIn,
    SignInRequest,
    StartedSignIn,
    TokenIssuer,
    Tokens,
    Tx,
)

SIGN_IN_LIFETIME = timedelta(minutes=10)
MAX_FINAL_CHARS = 8_000
WAIT_POLL_SECONDS = 1.0
#: Of expired sign-ins, per transaction.
_PRUNE_BATCH = 100
#: Codes of authorization servers, in words; their own texts are not repeated.
_ERRORS = {
    "access_denied": "You did not allow it, or may not.",
    "invalid_scope": "The server does not know what Backburner asked for.",
    "server_error": "The authorization server failed.",
    "temporarily_unavailable": "The authorization server is busy.",
    "unauthorized_client": "The authorization server does not accept Backburner.",
}
_ABOUT_SCOPES = frozenset({"access_denied", "invalid_scope"})


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunSignIn:
    """Where the user of a connection goes to sign in."""

    connection: Connection
    #: Shown with all of the following before anybody goes there.
    url: str = field(repr=False)
    host: str
    issuer: str
    #: The host that gets the code, and the secret of the client.
    token_host: str
    scopes: tuple[str, ...]
    expires_at: datetime
    #: What a command in a terminal finishes with; empty for a browser.
    secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInEnd:
    """The result of handing in a final address."""

    connection: Connection
    #: False: the command in the terminal finishes it.
    is_finished: bool


async def begin(
    deps: Deps,
    caller: Caller,
    connection_id: ConnectionId,
    *,
    origin: str,
    client: OAuthClient | None = None,
    issuer: str = "",
    scopes: Iterable[str] = (),
) -> BegunSignIn:
    """Start to sign in, in place of a sign-in to the same server that was started before.

    `origin` is where the browser of the user reaches us. `issuer` is the authorization server that
    the user expects, which a client that they give is for. `scopes` are wanted besides those of the
    last sign-in, and besides those that the server has refused calls for since.
    """
    consent.check_scope(caller)
    connection, earlier = await deps.store.read(
        lambda tx: _load_earlier(tx, deps, caller, connection_id)
    )
    if not connection.url:
        raise Conflict(f"{connection.title} is a program, which needs no sign-in.")
    request = await deps.oauth.begin(
        connection.url,
        origin=origin,
        client=client,
        issuer=issuer,
        earlier=earlier,
        scopes=scopes_to_ask_for(connection, tuple(scopes)),
    )
    secret = "" if caller.kind is CredentialKind.SESSION else secrets.token_urlsafe(32)
    started = await deps.store.transact(
        lambda tx: _start(tx, deps, caller, connection_id, request, secret)
    )
    asked = request.pending
    return BegunSignIn(
        connection=connection,
        url=request.url,
        host=request.host,
        issuer=asked.issuer.issuer,
        token_host=asked.issuer.token_host,
        scopes=asked.scopes,
        expires_at=started.expires_at,
        secret=secret,
    )


async def finish(deps: Deps, caller: Caller, address: str, *, secret: str = "") -> SignInEnd:
    """Finish with the final address of the browser.

    `secret` is that of the command into which the address was pasted. Without it, a browser of the
    same user hands the address of a command's sign-in on to it.
    """
    consent.check_scope(caller)
    final = read_final_address(address)

    def work(tx: Tx) -> "_Taken | Connection":
        digest = secret_digest(final.state)
        found = tx.started_sign_ins.find_by_digest(caller.user, digest)
        if found is None:
            raise _unknown()
        connection = tx.connections.lock(caller.user, found.connection_id)
        started = _check_started(tx, tx.started_sign_ins.find(caller.user, connection.id), digest)
        is_own_command = bool(secret) and started.command == secret_digest(secret)
        is_own_browser = bool(started.session) and started.session == caller.credential
        if is_own_command or is_own_browser:
            return _take(tx, deps, connection, final)
        if started.session or secret or caller.kind is not CredentialKind.SESSION:
            raise NotAllowed(
                "This sign-in was started elsewhere.",
                hint="Finish it where it was started, or start it again here.",
            )
        sealed.put_arrived(tx, deps, caller.user, connection.id, final)
        tx.started_sign_ins.mark_arrived(caller.user, connection.id)
        tx.hint(Hint(HintKind.CHANGED, caller.user))
        return connection

    taken = await deps.store.transact(work)
    if isinstance(taken, Connection):
        return SignInEnd(connection=taken, is_finished=False)
    return SignInEnd(connection=await _complete(deps, caller, taken), is_finished=True)


async def wait(
    deps: Deps, caller: Caller, connection_id: ConnectionId, secret: str, within: timedelta
) -> Connection | None:
    """Wait for the final address, and finish with it; None: it has not arrived yet.

    For the command in a terminal that has begun the sign-in, and has its secret.
    """
    consent.check_scope(caller)
    digest = secret_digest(secret)

    def look(tx: Tx) -> StartedSignIn:
        started = tx.started_sign_ins.find(caller.user, connection_id)
        if started is None or started.command != digest:
            raise _unknown()
        if started.expires_at <= tx.now:
            raise _too_late(tx.connections.load(caller.user, connection_id))
        return started

    def take(tx: Tx) -> "_Taken":
        connection = tx.connections.lock(caller.user, connection_id)
        look(tx)
        arrived = sealed.load_arrived(tx, deps, caller.user, connection_id)
        if arrived is None:
            raise _unknown()
        return _take(tx, deps, connection, arrived)

    loop = asyncio.get_running_loop()
    deadline = loop.time() + within.total_seconds()
    with ExitStack() as stack:
        bus = deps.bus
        hints = stack.enter_context(bus.listen(HintKind.CHANGED, user=caller.user)) if bus else None
        while not (await deps.store.read(look)).arrived:
            left = deadline - loop.time()
            if left <= 0:
                return None
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, WAIT_POLL_SECONDS)):
                    await (asyncio.Event().wait() if hints is None else hints.take())
    return await _complete(deps, caller, await deps.store.transact(take))


async def prune(deps: Deps) -> bool:
    """Delete expired sign-ins with what is sealed of them; return whether there may be more."""

    def work(tx: Tx) -> int:
        expired = tx.started_sign_ins.expired(before=tx.now, limit=_PRUNE_BATCH)
        for user, connection_id in expired:
            sealed.remove_pending(tx, user, connection_id)
            tx.started_sign_ins.remove(user, connection_id)
        return len(expired)

    return await deps.store.transact(work) == _PRUNE_BATCH


def read_final_address(address: str) -> FinalAddress:
    """Read the address that an authorization server has sent a browser to."""
    text = address.strip()
    try:
        parts = urlsplit(text if len(text) <= MAX_FINAL_CHARS else "")
        values = parse_qs(parts.query, keep_blank_values=True, max_num_fields=50)
    except ValueError:
        parts, values = urlsplit(""), {}
    # Twice would mean that two readers may disagree.
    single = {name: found[0] for name, found in values.items() if len(found) == 1}
    final = FinalAddress(
        state=single.get("state", ""),
        code=single.get("code", ""),
        error=single.get("error", ""),
        issuer=single.get("iss"),
        path=parts.path,
    )
    if not final.state or bool(final.code) == bool(final.error) or len(values) != len(single):
        raise BadRequest(
            "This is not the address at the end of a sign-in.",
            hint="Copy the whole address that the browser shows at the end.",
        )
    return final


@dataclass(frozen=True, slots=True)
class _Taken:
    """A sign-in that nobody else can finish any more."""

    connection: Connection
    pending: PendingSignIn
    final: FinalAddress


def _start(
    tx: Tx,
    deps: Deps,
    caller: Caller,
    connection_id: ConnectionId,
    request: SignInRequest,
    secret: str,
) -> StartedSignIn:
    """Store a sign-in, for a browser or for the command that keeps the secret."""
    tx.connections.lock(caller.user, connection_id)
    started = StartedSignIn(
        connection_id=connection_id,
        digest=secret_digest(request.state),
        session="" if secret else caller.credential,
        command=secret_digest(secret) if secret else "",
        expires_at=tx.now + SIGN_IN_LIFETIME,
    )
    sealed.remove_pending(tx, caller.user, connection_id)
    tx.started_sign_ins.put(caller.user, started)
    sealed.put_pending(tx, deps, caller.user, connection_id, request.pending)
    return started


def _load_earlier(
    tx: Tx, deps: Deps, caller: Caller, connection_id: ConnectionId
) -> tuple[Connection, TokenIssuer | None]:
    connection = tx.connections.load(caller.user, connection_id)
    if connection.auth is not AuthKind.OAUTH:
        return connection, None
    tokens = pending = None
    # A new sign-in replaces what cannot be opened.
    with suppress(SecretDamaged):
        tokens = sealed.load_tokens(tx, deps, caller.user, connection_id)
    with suppress(SecretDamaged):
        pending = sealed.load_pending(tx, deps, caller.user, connection_id)
    return connection, _earlier_issuer(tokens, pending)


def _earlier_issuer(tokens: TokenSet | None, pending: PendingSignIn | None) -> TokenIssuer | None:
    """Return where tokens came from, or would have; with our client there, if it may still do."""
    known = None if tokens is None else tokens.issuer
    is_given = known is not None and known.client.is_given
    if pending is None or pending.issuer.client.is_given or is_given:
        return known
    if known is None or pending.issuer.client != known.client:
        return pending.issuer
    # Nobody has finished with it: the server may know it no more, which only its user is told.
    return replace(known, client=replace(known.client, redirect_uri=""))


def _check_started(tx: Tx, started: StartedSignIn | None, digest: str) -> StartedSignIn:
    if started is None or started.digest != digest or started.expires_at <= tx.now:
        raise _unknown()
    return started


def _take(tx: Tx, deps: Deps, connection: Connection, final: FinalAddress) -> _Taken:
    """Remove a sign-in before its code is used: it can be tried once."""
    user = connection.user_id
    pending = sealed.load_pending(tx, deps, user, connection.id)
    tx.started_sign_ins.remove(user, connection.id)
    sealed.remove_pending(tx, user, connection.id)
    if pending is None:
        raise _unknown()
    return _Taken(connection, pending, final)


async def _complete(deps: Deps, caller: Caller, taken: _Taken) -> Connection:
    _check_issuer(taken)
    if taken.final.error:
        given_up = await deps.store.transact(lambda tx: _give_up_scopes(tx, taken))
        raise _refused(taken, given_up)
    tokens = await deps.oauth.exchange(taken.pending, taken.final.code)
    return await deps.store.transact(lambda tx: _store(tx, deps, caller, taken, tokens))


def _check_issuer(taken: _Taken) -> None:
    final, title = taken.final, taken.connection.title
    # RFC 9207: the code is sent to the server that we asked, so it has to come from that one. One
    # that does not say who it is knows no other address of ours than its own (RFC 9700, 4.4.2).
    is_missing = final.issuer is None and taken.pending.names_issuer
    is_other = final.issuer is not None and final.issuer != taken.pending.issuer.issuer
    is_elsewhere = final.path != urlsplit(taken.pending.redirect_uri).path
    if is_missing or is_other or is_elsewhere:
        raise ConnectionFailed(
            f"The sign-in to {title} was answered by another authorization server.",
            hint="Start it again. If this happens again, do not trust that server.",
            permanent=True,
        )


def _give_up_scopes(tx: Tx, taken: _Taken) -> tuple[str, ...]:
    """Ask no more for further scopes if they may be why a sign-in failed; return these."""
    connection = tx.connections.lock(taken.connection.user_id, taken.connection.id)
    if taken.final.error not in _ABOUT_SCOPES or not connection.wanted_scopes:
        return ()
    after = settle_scopes(connection, asked=taken.pending.scopes, given=connection.scopes)
    tx.connections.save(after)
    return connection.wanted_scopes


def _refused(taken: _Taken, given_up: tuple[str, ...]) -> ConnectionFailed:
    why = _ERRORS.get(taken.final.error, "The authorization server refused.")
    names = name_scopes(given_up)
    hint = f"Start again to sign in without {names}; `--scope` asks for that." if names else ""
    title = taken.connection.title
    return ConnectionFailed(f"You were not signed in to {title}. {why}", hint=hint, permanent=True)


def _store(tx: Tx, deps: Deps, caller: Caller, taken: _Taken, tokens: Tokens) -> Connection:
    # Before the connection: it locks the user and the conversations that waited.
    reconnection.reconnected(tx, caller.user, taken.connection.id)
    connection = tx.connections.lock(caller.user, taken.connection.id)
    scopes = taken.pending.scopes if tokens.scopes is None else tokens.scopes
    expires_at = None if tokens.lifetime is None else tx.now + tokens.lifetime
    found = TokenSet(
        serial=new_serial(),
        issuer=taken.pending.issuer,
        access=tokens.access,
        refresh=tokens.refresh,
        scopes=scopes,
        obtained_at=tx.now,
        expires_at=expires_at,
    )
    sealed.remove_headers(tx, caller.user, connection.id)
    sealed.put_tokens(tx, deps, caller.user, connection.id, found)
    after = replace(
        settle_scopes(connection, asked=taken.pending.scopes, given=scopes),
        auth=AuthKind.OAUTH,
        headers=(),
        state=ConnectionState.READY,
        sign_in_revision=connection.sign_in_revision + 1,
        expires_at=found.ends_at,
        last_error="",
        last_error_at=None,
    )
    tx.connections.save(after)
    definitions.record(tx, caller, Act.CONNECTION_SIGNED_IN, after)
    return after


def _too_late(connection: Connection) -> NotFound:
    return NotFound(
        "Nobody finished the sign-in within ten minutes.",
        hint=f"Start again: `backburner connect {connection.name}`.",
    )


def _unknown() -> NotFound:
    return NotFound(
        "This sign-in is not yours, or has expired or been used.",
        hint="Start it again, signed in as yourself.",
    )
