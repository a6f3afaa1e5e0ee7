"""The vault, as operators see it."""

from typing import Self

from pydantic import BaseModel, Field

from backburner.actions.operate.vault import Rotation
from backburner.api.schemas.base import RequestBody, example, strict_example
from backburner.ports import VaultStatus

_STATUS = {
    "source": "/etc/backburner/master_keys",
    "master_keys": ["3f9a01bc"],
    "current": "3f9a01bc",
    "users": 2,
    "locked": {},
    "problem": "",
    "hint": "",
}


class VaultOut(BaseModel):
    model_config = example(**_STATUS)

    source: str = Field(description="Where the master keys come from: a variable or a file.")
    master_keys: list[str] = Field(description="Ids of the master keys; the first is the primary.")
    current: str = Field(description="Id of the master key in use; empty before the first secret.")
    users: int = Field(description="Number of users with secrets.")
    locked: dict[str, int] = Field(
        description="Ids of master keys that are missing, or are other ones, each with the number"
        " of keys that it wraps."
    )
    problem: str = Field(description="Why the master keys cannot be read; empty if they can.")
    hint: str = Field(description="What to do about it.")

    @classmethod
    def of(cls, status: VaultStatus) -> Self:
        return cls.model_validate(status, from_attributes=True)


class RotateBody(RequestBody):
    model_config = strict_example(keep_old=False)

    keep_old: bool = Field(
        default=False, description="Keep the former master keys in the file, for backups."
    )


class RotationOut(BaseModel):
    model_config = example(
        new="3f9a01bc", waits_for_hosts=False, removed=["00c1d2e3"], status=_STATUS
    )

    new: str = Field(description="Id of the new master key.")
    waits_for_hosts: bool = Field(
        description="It is in the file of this machine, and wraps nothing yet: bring it to the"
        " other machines, and rotate again."
    )
    removed: list[str] = Field(description="Ids of master keys that were deleted from the file.")
    status: VaultOut

    @classmethod
    def of(cls, rotation: Rotation) -> Self:
        return cls.model_validate(rotation, from_attributes=True)


class ResetOut(BaseModel):
    model_config = example(forgotten=2)

    forgotten: int = Field(description="Number of keys that were deleted, with their secrets.")
