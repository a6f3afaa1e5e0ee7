"""`/api/me`: one's zone, the switches for one's background work, and what may be spent."""

from collections.abc import Sequence
from typing import Self

from fastapi import APIRouter
from pydantic import BaseModel, Field

from backburner.actions.accounts import profile
from backburner.api.http.auth import Reader, TheDeps, Writer
from backburner.api.schemas.base import BODY, Body, example, refusals
from backburner.core.accounts import Role
from backburner.core.allowance import AllowanceScope


class AllowanceOut(BaseModel):
    scope: AllowanceScope
    micros: int | None = Field(description="Millionths of a US dollar; null: no limit.")
    tokens: int | None


class MeOut(BaseModel):
    model_config = example(
        id="u_0123456789abcdefghjkmnpqrs",
        name="Ann",
        login="ann",
        role="member",
        zone="Europe/Berlin",
        paused=False,
        all_paused=False,
        discovery=False,
        allowances=[{"scope": "day", "micros": 5_000_000, "tokens": None}],
    )

    id: str
    name: str
    login: str | None
    role: Role
    zone: str
    paused: bool = Field(description="All background work of this user stands still.")
    all_paused: bool = Field(description="That of everybody does.")
    discovery: bool = Field(description="The agent looks for work to propose.")
    allowances: Sequence[AllowanceOut]

    @classmethod
    def of(cls, found: profile.ProfileChanges) -> Self:
        return cls(
            id=found.me.id,
            name=found.me.name,
            login=found.me.login,
            role=Role(found.me.role),
            zone=found.me.zone,
            paused=found.me.paused,
            all_paused=found.me.all_paused,
            discovery=found.me.discovery,
            allowances=[
                AllowanceOut(scope=one.scope, micros=one.micros, tokens=one.tokens)
                for one in found.allowances
            ],
        )


class NewSettings(Body):
    """What is left out stays as it is."""

    model_config = example(zone="Europe/Berlin", paused=False, allowances={"day": "5 USD"})

    zone: str | None = Field(default=None, max_length=100)
    paused: bool | None = None
    discovery: bool | None = Field(
        default=None,
        description="Whether the agent looks for work to propose: now and then, when you have been"
        " silent for a while but not for long. Off ends it; on begins anew.",
    )
    allowances: dict[AllowanceScope, str | None] | None = Field(
        default=None,
        description="Such as `2.50 USD, 500000 tokens` or `none`; null: as for everybody.",
    )


def build_router() -> APIRouter:
    router = APIRouter(prefix="/api", tags=["me"])

    @router.get("/me", summary="Look at one's settings", responses=refusals())
    async def get_me(deps: TheDeps, caller: Reader) -> MeOut:
        return MeOut.of(await profile.look(deps, caller.user))

    @router.put("/me", summary="Change one's settings", responses=refusals(409, *BODY))
    async def change_me(body: NewSettings, deps: TheDeps, caller: Writer) -> MeOut:
        """Change one's zone, what may be spent, or what goes on in the background at all."""
        changed = await profile.change(
            deps,
            caller.user,
            zone=body.zone,
            paused=body.paused,
            discovers=body.discovery,
            limits=body.allowances,
        )
        return MeOut.of(changed)

    return router
