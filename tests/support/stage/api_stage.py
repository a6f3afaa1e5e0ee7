"""The API over a stage, and people who ask it; tests of the API import these fixtures."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, cast

import httpx2
import pytest
from fastapi import FastAPI
from sqlalchemy import update

from backburner.api.app import build_api
from backburner.core.accounts import LOCAL_CLIENT_NAME, Role, Scope
from backburner.core.ids import UserId
from backburner.store import tables
from support.people.tokens import issue_token
from support.stage.make import MATE, USER
from support.stage.scene import read_everything
from support.stage.stage import Stage

#: Like those that are made, and nobody's.
NOBODYS = "0123456789abcdefghjkmnpqrs"


@dataclass(frozen=True)
class Asker:
    """Somebody with a token: that of the server's command line, or one with some scopes."""

    client: httpx2.AsyncClient
    token: str
    api: FastAPI

    async def __call__(
        self, method: str, path: str, body: object = None, **more: Any
    ) -> httpx2.Response:
        headers = {"authorization": f"Bearer {self.token}", **more.pop("headers", {})}
        if body is not None:
            more["json"] = body
        return await self.client.request(method, path, headers=headers, **more)

    async def get(self, path: str, **params: Any) -> Any:
        """Ask for something that is there."""
        answer = await self("GET", path, params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def do(self, method: str, path: str, body: object = None) -> Any:
        """Do something that can be done."""
        answer = await self(method, path, body)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None


def read_rows(stage: Stage) -> dict[str, Any]:
    """Read all there is, apart from when credentials were last used."""
    found = stage.database.run(read_everything)
    return {name: rows for name, rows in found.items() if name != "credentials"}


AskAs = Callable[..., Awaitable[Asker]]


@pytest.fixture
async def client(stage: Stage) -> AsyncIterator[httpx2.AsyncClient]:
    api = build_api(stage.deps, hosts={"localhost"}, checks={})
    transport = httpx2.ASGITransport(app=api)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


@pytest.fixture
def ask_as(stage: Stage, client: httpx2.AsyncClient) -> AskAs:
    async def make(user: UserId = USER, *scopes: Scope, role: Role = Role.MEMBER) -> Asker:
        stage.user(user)
        change = update(tables.users).where(tables.users.c.id == user).values(role=role.value)
        stage.database.run(lambda tx: tx.connection.execute(change))
        name = "Test" if scopes else LOCAL_CLIENT_NAME
        token = await issue_token(stage.deps, user, scopes or tuple(Scope), name=name)
        transport = cast("httpx2.ASGITransport", client._transport)
        return Asker(client, token, cast("FastAPI", transport.app))

    return make


@pytest.fixture
async def ask(ask_as: AskAs) -> Asker:
    return await ask_as(USER)


@pytest.fixture
async def mate(ask_as: AskAs) -> Asker:
    return await ask_as(MATE)
