"""Callers of actions: the server's own command line, browsers and tokens."""

from backburner.core.accounts import LOCAL_CLIENT_NAME, Caller, CredentialKind, Role, Scope
from backburner.core.ids import UserId
from support.stage.make import USER


def local_caller(user: UserId = USER) -> Caller:
    """The command line of the server's machine, which may do everything of its user's."""
    return Caller(
        user=user,
        role=Role.OPERATOR,
        scopes=frozenset(Scope),
        credential="k_local",
        kind=CredentialKind.TOKEN,
        name=LOCAL_CLIENT_NAME,
    )


def token_caller(
    *scopes: Scope,
    user: UserId = USER,
    credential: str = "k_token",
    connections: tuple[str, ...] = (),
) -> Caller:
    return Caller(
        user=user,
        role=Role.MEMBER,
        scopes=frozenset(scopes),
        credential=credential,
        kind=CredentialKind.TOKEN,
        name="editor",
        connections=frozenset(connections),
    )
