"""API tokens and browser sessions."""

from datetime import datetime
from typing import Annotated, Self

from pydantic import BaseModel, Field

from backburner.api.schemas.base import example, strict_example
from backburner.api.schemas.work.connection import ConnectionNames
from backburner.core import accounts
from backburner.core.accounts import Scope
from backburner.core.conversation import Use
from backburner.core.passwords import MAX_NAME_CHARS

_ID = "k_6jy475abgx9xhaq0dnv4mc4j0a"


class NewTokenBody(BaseModel):
    model_config = strict_example(name="calendar", scopes=["read"], expires="90d")

    name: Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS)]
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=len(Scope))] = [Scope.READ]
    uses: Annotated[list[Use], Field(max_length=len(Use))] = Field(
        default=[], description="What of yours may be used by work that this token hands out."
    )
    connections: ConnectionNames = Field(
        default=None,
        description="The connections that work of this token may use, by name. Null: none.",
    )
    expires: Annotated[str, Field(max_length=100)] | None = Field(
        default="90d", description="How long it is valid; null: until it is revoked."
    )


class CredentialOut(BaseModel):
    model_config = example(
        id=_ID,
        name="calendar",
        scopes=["read"],
        uses=[],
        connections=["mail"],
        created_at="2026-11-16T12:00:00Z",
        expires_at=None,
        used_at=None,
        device="",
        is_this=False,
    )

    id: str
    name: str
    scopes: list[Scope]
    uses: list[Use] | None = Field(
        description="What of yours may be used by work that this token hands out; null: everything."
    )
    connections: list[str] | None = Field(
        description="The connections that work of this token may use; null: all."
    )
    created_at: datetime
    expires_at: datetime | None
    used_at: datetime | None = Field(description="Recorded once an hour while it is used.")
    device: str = Field(
        description="Of a session, such as `Firefox on Linux`; empty: it is not known."
    )
    is_this: bool = Field(description="This request was authenticated with it.")

    @classmethod
    def of(cls, credential: accounts.Credential, caller: accounts.Caller) -> Self:
        given = credential.work_connections
        return cls(
            id=credential.id,
            name=credential.name,
            scopes=sorted(credential.scopes),
            uses=None if credential.work_uses is None else sorted(credential.work_uses),
            connections=None if given is None else sorted(given),
            created_at=credential.created_at,
            expires_at=credential.expires_at,
            used_at=credential.used_at,
            device=credential.device,
            is_this=credential.id == caller.credential,
        )


class CreatedTokenOut(BaseModel):
    """A new token. It is shown only once."""

    model_config = example(id=_ID, token="bb_...", expires_at=None)  # noqa: S106 (an example)

    id: str
    token: str
    expires_at: datetime | None
