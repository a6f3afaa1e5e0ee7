"""A token that a test puts into a database itself, before anything is there to ask for one."""

from sqlalchemy import Connection, insert

from backburner.app.clock import Clock
from backburner.core.accounts import LOCAL_CLIENT_NAME, CredentialKind, Scope, secret_digest
from backburner.core.ids import UserId, new_credential_id
from backburner.store import tables

TOKEN = "bb_a-token-for-tests"  # noqa: S105 (it opens nothing)


def put_token(connection: Connection, user: UserId, token: str = TOKEN) -> None:
    """Let a user in who shows the token, for everything."""
    values = {
        "digest": secret_digest(token),
        "id": new_credential_id(),
        "user_id": user,
        "kind": CredentialKind.TOKEN.value,
        "name": LOCAL_CLIENT_NAME,
        "scopes": " ".join(Scope),
        "created_at": Clock().now(),
    }
    connection.execute(insert(tables.credentials).values(values))
