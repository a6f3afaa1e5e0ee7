"""Servers in the file of another client. Its secrets go in and never come out."""

from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import BaseModel, Field

from backburner.actions.connections.imports import ChosenServer, OfferedServer
from backburner.api.schemas.base import RequestBody, example
from backburner.core.connections.imports.choices import (
    MAX_ASKED,
    MAX_ASKED_CHARS,
    MAX_CONTENT_CHARS,
    MAX_TYPED_CHARS,
    AskedValue,
    ImportKind,
)
from backburner.core.connections.imports.client_files import MAX_SERVERS
from backburner.core.connections.imports.references import INPUT
from backburner.core.connections.naming import MAX_URL_CHARS

_FILE = '{"mcpServers": {"notes": {"url": "https://mcp.example.com/mcp"}}}'

Content = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_CONTENT_CHARS,
        repr=False,
        description="The text of the file: `.mcp.json`, or those of Claude Desktop, Claude Code,"
        " Cursor, VS Code or Windsurf.",
    ),
]


class ImportPreviewBody(RequestBody):
    model_config = example(content=_FILE)

    content: Content


class ImportServerBody(RequestBody):
    """A server of a file, as it was agreed to."""

    model_config = example(
        content=_FILE, number=0, url="https://mcp.example.com/mcp", values={"TOKEN": "..."}
    )

    content: Content
    number: int = Field(ge=0, lt=MAX_SERVERS, description="Its `number` in the preview.")
    url: str = Field(
        min_length=1, max_length=MAX_URL_CHARS, description="Its `url` in the preview."
    )
    values: Annotated[
        dict[
            Annotated[str, Field(max_length=MAX_ASKED_CHARS + len(INPUT))],
            Annotated[str, Field(max_length=MAX_TYPED_CHARS)],
        ],
        Field(max_length=MAX_ASKED),
    ] = Field(
        default_factory=dict,
        repr=False,
        description="What the file only refers to, by the `key` of each in the preview.",
    )

    def server(self) -> ChosenServer:
        return ChosenServer(
            content=self.content, number=self.number, url=self.url, values=self.values
        )


class AskedValueOut(BaseModel):
    """A value that the file only refers to, to be typed in."""

    key: str = Field(description="As the file refers to it: `TOKEN`, or `input:token`.")
    label: str
    needed: bool = Field(description="False: the file has another value for it.")

    @classmethod
    def of(cls, asked: AskedValue) -> Self:
        return cls(key=asked.key, label=asked.label, needed=asked.is_needed)


class OfferedServerOut(BaseModel):
    """A server of a file, without its secrets."""

    model_config = example(
        number=0,
        kind="server",
        name="notes",
        project="",
        url="https://mcp.example.com/mcp",
        headers=["Authorization"],
        asks=[{"key": "TOKEN", "label": "TOKEN", "needed": True}],
        client_id="",
        connection_id=None,
        reason="",
    )

    number: int = Field(description="Its place in the file.")
    kind: ImportKind = Field(
        description="`program`: it is imported on the command line of the server's machine only."
    )
    name: str
    project: str = Field(description="The folder whose work it is for; empty: for all.")
    url: str
    headers: Sequence[str] = Field(description="Headers whose values would be stored, sealed.")
    asks: Sequence[AskedValueOut]
    client_id: str = Field(description="The OAuth client that the file names, to sign in with.")
    connection_id: str | None = Field(description="The connection to it that there is already.")
    reason: str = Field(description="Why it is left out.")

    @classmethod
    def of(cls, offered: OfferedServer) -> Self:
        choice = offered.choice
        return cls(
            number=choice.number,
            kind=choice.kind,
            name=choice.name,
            project=choice.project,
            url=choice.url,
            headers=choice.headers,
            asks=[AskedValueOut.of(one) for one in choice.asks],
            client_id=choice.client_id,
            connection_id=None if offered.known is None else offered.known.id,
            reason=choice.reason,
        )
