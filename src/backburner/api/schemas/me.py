"""The caller's own settings and data."""

from collections.abc import Sequence
from datetime import datetime
from typing import Self

from pydantic import BaseModel, Field, model_validator

from backburner.actions import personal_data
from backburner.actions.accounts import profile
from backburner.actions.discovery import DiscoveryStatus, LookedAt
from backburner.api.schemas.account import DisplayName
from backburner.api.schemas.base import RequestBody, example
from backburner.api.schemas.spending import AllowanceOut
from backburner.api.schemas.work.folder import FolderName
from backburner.core.accounts import Role, ZoneSource
from backburner.core.allowance import AllowanceScope
from backburner.core.conversation import Uses
from backburner.core.errors import BadRequest


class MeChangesBody(RequestBody):
    """Fields that are left out stay unchanged."""

    model_config = example(zone="Europe/Berlin", paused=False, allowances={"day": "5 USD"})

    name: DisplayName | None = Field(default=None, description="Your name, as others see it.")
    zone: str | None = Field(
        default=None,
        max_length=100,
        description="Your time zone, for new schedules and for days of allowances. Schedules that"
        " exist keep theirs.",
    )
    found_zone: str | None = Field(
        default=None,
        max_length=100,
        description="The time zone of your browser or terminal. It is used unless you have set"
        " `zone`; one that the server does not know is ignored.",
    )
    paused: bool | None = None
    discovery: bool | None = Field(
        default=None,
        description="Whether the agent looks for work to propose while you are idle. Turning it"
        " off stops discovery; turning it on starts it anew.",
    )
    discovery_folder: FolderName = None
    discovery_repository: str | None = Field(
        default=None,
        max_length=201,
        description="With `discovery`: owner/name. Its CI and pull requests are listed with your"
        " sign-in of gh before each look.",
    )
    allowances: dict[AllowanceScope, str | None] | None = Field(
        default=None,
        description="Such as `2.50 USD, 500000 tokens` or `none`; null: the server's default.",
    )

    @model_validator(mode="after")
    def _check_project(self) -> Self:
        if (self.discovery_folder or self.discovery_repository) and not self.discovery:
            raise BadRequest(
                "A folder or repository is for discovery that is turned on.",
                hint="Send `discovery: true` with it.",
            )
        return self

    def project(self, uses: Uses) -> LookedAt | None:
        """Return the project that discovery is to look at, if one is named."""
        if not (self.discovery_folder or self.discovery_repository):
            return None
        return LookedAt(self.discovery_folder, self.discovery_repository, uses)


class ErasureBody(RequestBody):
    model_config = example(confirm=personal_data.ERASE_CONFIRMATION)

    confirm: str = Field(
        max_length=100, description=f'Exactly "{personal_data.ERASE_CONFIRMATION}".'
    )


class DiscoveryStatusOut(BaseModel):
    conversation_id: str
    next_run_at: datetime | None = Field(
        description="It looks only while you are idle, so this may be later."
    )
    last_run_at: datetime | None
    paused: bool
    folder: str | None
    repository: str = Field(description="As owner/name; empty: none.")

    @classmethod
    def of(cls, status: DiscoveryStatus) -> Self:
        return cls(
            conversation_id=status.conversation_id,
            next_run_at=status.next_run_at,
            last_run_at=status.last_run_at,
            paused=status.is_paused,
            folder=status.folder,
            repository=status.repository,
        )


class MeOut(BaseModel):
    model_config = example(
        id="u_0123456789abcdefghjkmnpqrs",
        name="Ann",
        login="ann",
        role="member",
        zone="Europe/Berlin",
        zone_source="browser",
        paused=False,
        all_paused=False,
        has_password=True,
        created_at="2026-11-16T12:00:00Z",
        discovery=False,
        may_discover=True,
        discovery_status=None,
        allowances=[{"scope": "day", "micros": 5_000_000, "tokens": None}],
    )

    id: str
    name: str
    login: str | None
    role: Role
    zone: str
    zone_source: ZoneSource = Field(description="`none`: nobody has set a zone, and UTC is used.")
    paused: bool = Field(description="All background work of this user is paused.")
    all_paused: bool = Field(description="All background work of all users is paused.")
    has_password: bool = Field(description="A new one needs it.")
    created_at: datetime | None
    discovery: bool = Field(description="The agent looks for work to propose.")
    may_discover: bool = Field(description="This server allows discovery.")
    discovery_status: DiscoveryStatusOut | None = Field(description="Null: it is off.")
    allowances: Sequence[AllowanceOut]

    @classmethod
    def of(cls, settings: profile.AccountSettings) -> Self:
        me = settings.profile
        return cls(
            id=me.id,
            name=me.name,
            login=me.login,
            role=Role(me.role),
            zone=me.zone,
            zone_source=me.zone_source,
            paused=me.paused,
            all_paused=me.all_paused,
            has_password=me.has_password,
            created_at=me.created_at,
            discovery=me.discovery,
            may_discover=settings.may_discover,
            discovery_status=DiscoveryStatusOut.of(settings.discovery)
            if settings.discovery
            else None,
            allowances=[
                AllowanceOut(
                    scope=allowance.scope, micros=allowance.micros, tokens=allowance.tokens
                )
                for allowance in settings.allowances
            ],
        )


EXPORT_EXAMPLE = {
    "format": personal_data.FORMAT,
    "version": personal_data.VERSION,
    "exported_at": "2026-11-16T12:00:00Z",
    "profile": {"id": "u_0", "name": "Ann", "zone": "Europe/Berlin"},
    "conversations": [],
    "messages": [],
}
