"""Signing in to the servers of connections."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Self

from pydantic import BaseModel, Field, SecretStr

from backburner.actions.connections.sign_in import MAX_FINAL_CHARS, BegunSignIn
from backburner.api.schemas.base import RequestBody, example
from backburner.api.schemas.work.connection import ConnectionCheckOut
from backburner.core.connections.oauth_client import OAuthClient
from backburner.core.errors import BadRequest

MAX_WAIT_SECONDS = 25
_SECRET = "0" * 43
_FINAL = "https://backburner.example.com/oauth/callback?code=0&state=0"

CommandSecret = Annotated[SecretStr, Field(max_length=100)]


class SignInStartBody(RequestBody):
    model_config = example(scopes=[])

    client_id: str = Field(
        default="",
        max_length=2000,
        description="Of a client that you have registered with the server by hand.",
    )
    client_secret: SecretStr = Field(
        default=SecretStr(""), max_length=2000, description="Of that client, if it has one."
    )
    issuer: str = Field(
        default="",
        max_length=2000,
        description="The authorization server that you expect and trust; another one is refused."
        " Needed with a client, and where the sign-in is spread over hosts that may not belong"
        " together.",
    )
    scopes: list[Annotated[str, Field(min_length=1, max_length=200)]] = Field(
        default=[], max_length=100, description="Besides those of the last sign-in."
    )

    def client(self) -> OAuthClient | None:
        secret = self.client_secret.get_secret_value()
        for text in (self.client_id, secret):
            if not (text.isascii() and text.isprintable()):
                # Not quoted: it may be the secret.
                raise BadRequest("The id and secret of a client are plain characters.")
        if not self.client_id:
            if secret:
                raise BadRequest("A secret belongs to the id of a client.", hint="Give both.")
            return None
        return OAuthClient(client_id=self.client_id, secret=secret, is_given=True)


class SignInAddressOut(BaseModel):
    """Where to go. Show all but `secret` before you open `url`."""

    model_config = example(
        url="https://login.example.com/authorize?client_id=0&state=0",
        host="login.example.com",
        issuer="https://login.example.com",
        token_host="login.example.com",  # noqa: S106 (no password)
        scopes=["read"],
        expires_at="2026-11-16T12:10:00Z",
        secret=_SECRET,
    )

    url: str
    host: str = Field(description="Where the user signs in.")
    issuer: str = Field(description="The authorization server, by its own name.")
    token_host: str = Field(description="The host that gets the sign-in, and gives out tokens.")
    scopes: Sequence[str]
    expires_at: datetime
    secret: str = Field(
        description="Finishes the sign-in. Empty in a browser, whose session does so instead."
    )

    @classmethod
    def of(cls, begun: BegunSignIn) -> Self:
        return cls(
            url=begun.url,
            host=begun.host,
            issuer=begun.issuer,
            token_host=begun.token_host,
            scopes=begun.scopes,
            expires_at=begun.expires_at,
            secret=begun.secret,
        )


class SignInFinishBody(RequestBody):
    model_config = example(address=_FINAL, secret=_SECRET)

    address: SecretStr = Field(
        max_length=MAX_FINAL_CHARS, description="The address that the browser shows at the end."
    )
    secret: CommandSecret = Field(
        default=SecretStr(""), description="Of the start; left out in a browser."
    )


class SignInWaitBody(RequestBody):
    model_config = example(secret=_SECRET, seconds=20)

    secret: CommandSecret = Field(description="Of the start.")
    seconds: int = Field(default=20, ge=0, le=MAX_WAIT_SECONDS)


class SignInEndOut(BaseModel):
    """`check` is null until the sign-in is finished: by the terminal that has started it."""

    model_config = example(connection_name="example", check=None)

    connection_name: str
    check: ConnectionCheckOut | None = Field(description="What came of connecting since.")
