"""Imported programs, and the catalogue of well-known servers."""

from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import BaseModel, Field

from backburner.actions.connections.own_programs import NewProgram
from backburner.api.schemas.base import RequestBody, example
from backburner.core.connections.catalogue_entry import CatalogueEntry
from backburner.core.connections.connection import AuthKind
from backburner.core.connections.imports.shown_program import (
    MAX_VARIABLES,
    MAX_WORDS,
)
from backburner.core.connections.naming import MAX_NAME_CHARS, MAX_TITLE_CHARS
from backburner.core.connections.own_program import MAX_PLACES
from backburner.core.connections.program import StdioProgram
from backburner.core.work.folders import MAX_PATH_CHARS

FilePath = Annotated[str, Field(min_length=1, max_length=MAX_PATH_CHARS, pattern="^/")]
Words = Annotated[list[str], Field(min_length=1, max_length=MAX_WORDS)]


class ProgramSourceBody(RequestBody):
    model_config = example(path="/srv/settings/mcp.json")

    path: FilePath = Field(description="The file that programs are to be imported from.")


class NewProgramBody(RequestBody):
    """A program on the server's machine that is an MCP server, as its user agreed to it."""

    model_config = example(
        name="time",
        command=["/usr/bin/uvx", "--from", "mcp-server-time==2026.1.1", "mcp-server-time"],
        environment={"LOCAL_TIMEZONE": "Europe/London"},
        network=True,
        source="/srv/settings/mcp.json",
    )

    name: str = Field(min_length=1, max_length=MAX_NAME_CHARS)
    title: str = Field(default="", max_length=MAX_TITLE_CHARS)
    command: Words = Field(description="Its first word is a path.")
    environment: Annotated[dict[str, str], Field(max_length=MAX_VARIABLES)] = Field(
        default_factory=dict, repr=False, description="Variables. Their values are sealed."
    )
    network: bool = False
    readable: Annotated[list[FilePath], Field(max_length=MAX_PLACES)] = Field(
        default_factory=list, description="Folders and files that it may read."
    )
    writable: Annotated[list[FilePath], Field(max_length=MAX_PLACES)] = Field(
        default_factory=list, description="Folders and files that it may change."
    )
    source: FilePath = Field(description="The file that it was read from.")

    def program(self) -> NewProgram:
        return NewProgram(
            name=self.name,
            title=self.title,
            program=StdioProgram(
                command=tuple(self.command),
                environment=self.environment,
                network=self.network,
                readable=tuple(self.readable),
                writable=tuple(self.writable),
            ),
            source=self.source,
        )


class ProgramCheckOut(BaseModel):
    model_config = example(known=False)

    known: bool = Field(description="There is a connection to exactly this program already.")


class ImportedProgramOut(BaseModel):
    """A program that was imported, without the values of its variables."""

    model_config = example(
        command=["/usr/bin/uvx", "--from", "mcp-server-time==2026.1.1", "mcp-server-time"],
        variables=["LOCAL_TIMEZONE"],
        network=True,
        readable=[],
        writable=[],
    )

    command: Sequence[str]
    variables: Sequence[str] = Field(description="The names of its variables.")
    network: bool
    readable: Sequence[str] = Field(description="Folders and files that it may read.")
    writable: Sequence[str] = Field(description="Folders and files that it may change.")

    @classmethod
    def of(cls, program: StdioProgram) -> Self:
        return cls(
            command=program.command,
            variables=sorted(program.environment),
            network=program.network,
            readable=program.readable,
            writable=program.writable,
        )


class CatalogueEntryOut(BaseModel):
    """A well-known server, to be connected by its name."""

    model_config = example(
        name="linear",
        title="Linear",
        url="https://mcp.linear.app/mcp",
        purpose="Issues, projects and documents in Linear.",
        docs="https://linear.app/docs/mcp",
        auth="oauth",
        header="",
        header_prefix="",
        own_client=False,
        before="",
        read_only=["list_issues"],
        discloses=[],
    )

    name: str
    title: str
    url: str
    purpose: str
    docs: str = Field(description="The page that documents it.")
    auth: AuthKind
    header: str = Field(description="The header of a key; empty: it takes none.")
    header_prefix: str = Field(description="What stands before the key in the header.")
    own_client: bool = Field(description="It needs an OAuth client of your own.")
    before: str = Field(description="What to do or to know before the first sign-in.")
    read_only: Sequence[str] = Field(description="Tools that need no approval.")
    discloses: Sequence[str] = Field(
        description="Of these, those whose arguments become known to others."
    )

    @classmethod
    def of(cls, entry: CatalogueEntry) -> Self:
        return cls(
            name=entry.name,
            title=entry.title,
            url=entry.url,
            purpose=entry.purpose,
            docs=entry.docs,
            auth=entry.auth,
            header=entry.header,
            header_prefix=entry.header_prefix,
            own_client=entry.own_client,
            before=entry.before,
            read_only=sorted(entry.reads),
            discloses=sorted(entry.discloses),
        )
