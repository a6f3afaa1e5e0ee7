"""Connections to the OAuth peer, signed in to by the actions themselves."""

from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from backburner.actions.connections import sign_in
from backburner.actions.connections.sign_in import BegunSignIn
from backburner.actions.deps import Deps
from backburner.app.machines import NoTools
from backburner.core.accounts import Caller, CredentialKind, Role, Scope
from backburner.core.connections.connection import AuthKind, Connection, ConnectionState
from backburner.core.ids import ConnectionId, UserId
from backburner.gateway.oauth.flow import CheckedOAuth
from backburner.ports import Bus, Store
from backburner.store.db import Database
from backburner.vault.master_keys import MasterKeys
from backburner.vault.vault import SealingVault
from support.oauth_peer.peer import OAuthPeer
from support.stage.make import NOON, USER

LOOPBACK = (ip_network("127.0.0.1/32"),)
ORIGIN = "http://127.0.0.1:8484"
BROWSER, PHONE = "k_browser", "k_phone"


def sign_in_deps(store: Store, keys: Path, bus: Bus | None = None, **more: Any) -> Deps:
    """Make what a process needs to sign in and to use what it has signed in to."""
    usual: dict[str, Any] = {
        "vault": SealingVault(MasterKeys(keys)),
        "oauth": CheckedOAuth(allow=LOOPBACK),
    }
    return Deps(
        store=store,
        bus=bus,
        engines={},
        default_profile="",
        toolbox=NoTools(),
        **(usual | more),
    )


def caller(
    user: UserId = USER, kind: CredentialKind = CredentialKind.SESSION, credential: str = BROWSER
) -> Caller:
    return Caller(
        user=user,
        role=Role.MEMBER,
        scopes=frozenset(Scope),
        credential=credential,
        kind=kind,
    )


def terminal(user: UserId = USER) -> Caller:
    return caller(user, CredentialKind.TOKEN, "k_terminal")


def new_connection(user: UserId, url: str, name: str = "mail") -> Connection:
    return Connection(
        id=ConnectionId(f"x_{user}_{name}"),
        user_id=user,
        name=name,
        title=name.capitalize(),
        url=url,
        auth=AuthKind.OAUTH,
        state=ConnectionState.SIGNING_IN,
        created_at=NOON,
    )


def add_connection(
    database: Database, peer: OAuthPeer, user: UserId = USER, **more: Any
) -> Connection:
    connection = replace(new_connection(user, peer.server), **more)
    database.run(lambda tx: tx.connections.add(connection))
    return connection


def load(database: Database, connection: Connection) -> Connection:
    user, connection_id = connection.user_id, connection.id
    return database.run(lambda tx: tx.connections.load(user, connection_id))


async def begin(
    deps: Deps, connection: Connection, by: Caller | None = None, **more: Any
) -> BegunSignIn:
    by = by or caller(connection.user_id)
    return await sign_in.begin(deps, by, connection.id, origin=ORIGIN, **more)


async def sign_in_as(
    deps: Deps, peer: OAuthPeer, connection: Connection, who: str = "ann"
) -> Connection:
    """Sign in as somebody whom the peer knows by that name."""
    begun = await begin(deps, connection)
    final = peer.approve(begun.url, who)
    return (await sign_in.finish(deps, caller(connection.user_id), final)).connection
