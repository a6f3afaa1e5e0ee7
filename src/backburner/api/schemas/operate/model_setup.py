"""Models, as operators set them up. Keys are only received, and never shown."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Self

from pydantic import BaseModel, Field, SecretStr, model_validator

from backburner.actions.models.setup import ModelSetupState, OfferedModels
from backburner.api.schemas.base import RequestBody, example, strict_example
from backburner.core.errors import BadRequest
from backburner.core.retry import Outage
from backburner.core.run import FailureKind
from backburner.ports import (
    MODEL_KINDS,
    ModelEntry,
    ModelKind,
    ModelProfile,
    ModelRole,
    ModelTest,
    Trouble,
)

MAX_TEXT_CHARS = 1000
MAX_SECRET_CHARS = 5000
_MILLISECOND = timedelta(milliseconds=1)

ProfileName = Annotated[str, Field(max_length=MAX_TEXT_CHARS)]


class ModelState(StrEnum):
    WORKS = "works"  #: There is no trouble that is known.
    OUTAGE = "outage"
    REFUSED = "refused"  #: The key was refused, or the account has no credit left.


class ModelEntryBody(RequestBody):
    """A model. Left out are the defaults of its kind, and the key that is stored."""

    model_config = strict_example(
        kind="openai", model="qwen3:8b", address="http://127.0.0.1:11434/v1", key=None
    )

    kind: ModelKind
    model: str = Field(default="", max_length=MAX_TEXT_CHARS)
    address: str = Field(
        default="", max_length=MAX_TEXT_CHARS, description="Of its API; needed for `openai`."
    )
    key: Annotated[SecretStr, Field(max_length=MAX_SECRET_CHARS)] | None = Field(
        default=None,
        description="A key, or the token of a subscription. Null: the one that is stored for the"
        " same address; empty: none.",
    )

    def to_entry(self) -> ModelEntry:
        secret = None if self.key is None else self.key.get_secret_value().strip()
        return ModelEntry(kind=self.kind, model=self.model, address=self.address, secret=secret)


class SavedModelBody(ModelEntryBody):
    model_config = strict_example(
        kind="claude-key", key="sk-0123456789", use_for=["chats"], model="claude-sonnet-5-5"
    )

    use_for: Annotated[list[ModelRole], Field(max_length=len(ModelRole))] = Field(
        default=[], description="Make it the default of these. It is in any case one to choose."
    )


class TriedModelBody(RequestBody):
    """A model that is entered, one that exists, or one that exists with changes."""

    model_config = strict_example(
        entry={"kind": "openai", "model": "qwen3:8b", "address": "http://127.0.0.1:11434/v1"},
        profile=None,
    )

    entry: ModelEntryBody | None = None
    profile: ProfileName | None = Field(
        default=None,
        description="A profile that exists. Without `entry` it is tried as it is; with `entry`, its"
        " key is used if the entry has none and the address is the same.",
    )

    @model_validator(mode="after")
    def _check_choice(self) -> Self:
        if self.entry is None and self.profile is None:
            raise BadRequest("There is no model to try.", hint="Send `entry`, `profile` or both.")
        return self

    def to_entry(self) -> ModelEntry | None:
        return None if self.entry is None else self.entry.to_entry()


class ModelRolesBody(RequestBody):
    """Fields that are left out stay unchanged."""

    model_config = strict_example(chats="claude", background=None)

    chats: ProfileName = ""
    background: ProfileName | None = Field(default="", description="Null: the model of chats.")

    def to_roles(self) -> Mapping[ModelRole, str | None]:
        given = {ModelRole.CHATS: self.chats, ModelRole.BACKGROUND: self.background}
        return {role: name for role, name in given.items() if role.value in self.model_fields_set}


class ModelTestOut(BaseModel):
    model_config = example(
        works=False,
        trouble="model",
        message="Model not found: 'qwen3'. There are: llama3.2, qwen3:8b.",
        hint="Choose a model that the server offers.",
        note="",
        latency_ms=113,
        offered=["llama3.2", "qwen3:8b"],
    )

    works: bool
    trouble: Trouble | None = Field(
        description="`refused`: the key; `unreachable`: no server answers there, or not as one of"
        " this kind does; `model`: the server has no such model; `limit`: of requests or money."
    )
    message: str
    hint: str = Field(description="What to do about it; empty if it works.")
    note: str = Field(description="What else is worth knowing; usually empty.")
    latency_ms: int
    offered: Sequence[str] = Field(
        description="The models of the server, if it does not have this one."
    )

    @classmethod
    def of(cls, test: ModelTest) -> Self:
        return cls(
            works=test.trial.works,
            trouble=test.trial.trouble,
            message=test.trial.message,
            hint=test.trial.hint,
            note=test.note,
            latency_ms=round(test.latency / _MILLISECOND),
            offered=test.offered,
        )


class OfferedModelsOut(BaseModel):
    model_config = example(models=["llama3.2", "qwen3:8b"], problem="", hint="")

    models: Sequence[str]
    problem: str = Field(description="Why the server does not list its models; empty: it does.")
    hint: str

    @classmethod
    def of(cls, offered: OfferedModels) -> Self:
        return cls(models=offered.names, problem=offered.problem, hint=offered.hint)


class SetUpModelOut(BaseModel):
    profile: str
    kind: ModelKind
    model: str
    address: str
    has_key: bool
    seats: int | None = Field(description="Maximum concurrent runs; null: no limit of its own.")
    chats: bool = Field(description="Chats use it by default.")
    background: bool = Field(description="Tasks, jobs and discovery use it by default.")
    can_change: bool = Field(
        description="It can be changed and removed here; others are in the settings."
    )
    state: ModelState
    trouble: str = Field(description="What its provider says; empty if it works.")
    since: datetime | None = Field(description="When that began.")
    next_try_at: datetime | None

    @classmethod
    def of(cls, profile: ModelProfile, state: ModelSetupState) -> Self:
        outage = state.outages.get(profile.name)
        models = state.models
        return cls(
            profile=profile.name,
            kind=profile.kind,
            model=profile.model,
            address=profile.address,
            has_key=profile.has_key,
            seats=profile.seats,
            chats=profile.name == models.chat,
            background=profile.name == (models.background or models.chat),
            can_change=profile.can_change,
            state=_state_of(outage),
            trouble="" if outage is None else outage.message,
            since=None if outage is None else outage.since,
            next_try_at=None if outage is None else outage.until,
        )


class ModelKindTextOut(BaseModel):
    kind: ModelKind
    text: str


class ModelSetupOut(BaseModel):
    model_config = example(
        items=[
            {
                "profile": "claude",
                "kind": "claude-key",
                "model": "claude-sonnet-5-5",
                "address": "https://api.anthropic.com",
                "has_key": True,
                "seats": 5,
                "chats": True,
                "background": True,
                "can_change": True,
                "state": "works",
                "trouble": "",
                "since": None,
                "next_try_at": None,
            }
        ],
        obstacle="",
        chats_obstacle="",
        background_obstacle="",
        kinds=[{"kind": "openai", "text": MODEL_KINDS[ModelKind.OPENAI]}],
    )

    items: Sequence[SetUpModelOut]
    obstacle: str = Field(description="Why no model can be stored here; empty: they can.")
    chats_obstacle: str = Field(
        description="Why the model of chats cannot be chosen here; empty: it can."
    )
    background_obstacle: str
    kinds: Sequence[ModelKindTextOut] = Field(description="Kinds that can be set up.")

    @classmethod
    def of(cls, state: ModelSetupState) -> Self:
        models = state.models
        return cls(
            items=[SetUpModelOut.of(profile, state) for profile in models.profiles],
            obstacle=models.obstacle,
            chats_obstacle=models.chat_obstacle,
            background_obstacle=models.background_obstacle,
            kinds=[
                ModelKindTextOut(kind=kind, text=text)
                for kind, text in MODEL_KINDS.items()
                if kind is not ModelKind.DEMO
            ],
        )


def _state_of(outage: Outage | None) -> ModelState:
    if outage is None:
        return ModelState.WORKS
    is_denied = outage.kind is FailureKind.ACCESS_DENIED
    return ModelState.REFUSED if is_denied else ModelState.OUTAGE
