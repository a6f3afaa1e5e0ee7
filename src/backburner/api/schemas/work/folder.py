"""Folders in which conversations may work."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Self

from pydantic import BaseModel, Field

from backburner.actions.work.folders import FolderState
from backburner.api.schemas.base import RequestBody, example
from backburner.core.work.folders import MAX_PATH_CHARS, instructions_digest

_PATH = "/srv/ada/app"
FolderName = Annotated[
    str | None,
    Field(
        max_length=MAX_PATH_CHARS,
        description="A folder that was added, by its path or name. Null: that of the parent, or"
        " the private workspace.",
    ),
]
Instructions = Annotated[Mapping[str, str], Field(description="The text of each file.")]


class NewFolderBody(RequestBody):
    model_config = example(path=_PATH, read_only=False)

    path: str = Field(min_length=1, max_length=MAX_PATH_CHARS, description="An absolute path.")
    read_only: bool = Field(default=False, description="Agents may read it and not change it.")


class AcceptInstructionsBody(RequestBody):
    model_config = example(path=_PATH, digest="0" * 64)

    path: str = Field(min_length=1, max_length=MAX_PATH_CHARS)
    digest: str = Field(description="The `changed_digest` of the instructions that you have seen.")


class FolderOut(BaseModel):
    model_config = example(
        path=_PATH,
        read_only=False,
        machine="laptop",
        available=True,
        from_settings=False,
        instructions={"AGENTS.md": "Run the tests with pytest."},
        changed=None,
        changed_digest=None,
        created_at="2026-11-16T12:00:00Z",
    )

    path: str
    read_only: bool
    machine: str = Field(description="The name of its machine; empty: all machines share it.")
    available: bool = Field(description="Whether it is there, on the machine of this server.")
    from_settings: bool = Field(description="Given by the settings, and not added.")
    instructions: Instructions = Field(description="The accepted instructions, by file.")
    changed: Instructions | None = Field(
        description="The instructions as they are now, if they differ. Agents do not follow them"
        " before they are accepted."
    )
    changed_digest: str | None
    created_at: datetime

    @classmethod
    def of(cls, state: FolderState) -> Self:
        folder, changed = state.folder, state.changed
        return cls(
            path=folder.path,
            read_only=folder.read_only,
            machine=folder.machine_name,
            available=state.is_here,
            from_settings=folder.from_settings,
            instructions=folder.instructions,
            changed=changed,
            changed_digest=None if changed is None else instructions_digest(changed),
            created_at=folder.created_at,
        )
