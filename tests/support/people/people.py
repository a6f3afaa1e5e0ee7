"""People with accounts, for tests of the API."""

from typing import Any

import httpx2

from backburner.actions.accounts import sign_in as entry
from backburner.actions.accounts import users
from backburner.actions.accounts.passwords import hash_password
from backburner.core.accounts import LOCAL_CLIENT_NAME, Role, Scope, User
from backburner.core.ids import UserId
from support.people.tokens import issue_token
from support.stage.make import OPERATOR
from support.stage.stage import Stage

PASSWORD = "three words or more"  # noqa: S105 (of nobody)


async def add(stage: Stage, login: str = "ada", role: Role = Role.MEMBER) -> UserId:
    """Add somebody with a password."""
    user, _ = await users.add(stage.deps, actor=OPERATOR, login=login, name="", role=role)
    hashed = await hash_password(PASSWORD, stage.deps.password_cost)
    stage.database.run(lambda tx: entry.set_password(tx, user.id, login, hashed))
    return user.id


async def owner(stage: Stage) -> User:
    found = await users.ensure_owner(stage.deps)
    assert found
    return found


async def token(stage: Stage, user: UserId, *scopes: Scope) -> dict[str, str]:
    """Give the header of somebody's program; without scopes, of the server's command line."""
    name = "Test" if scopes else LOCAL_CLIENT_NAME
    secret = await issue_token(stage.deps, user, scopes or tuple(Scope), name=name)
    return {"authorization": f"Bearer {secret}"}


async def sign_in(
    browser: httpx2.AsyncClient, login: str = "ada", password: str = PASSWORD, **more: Any
) -> httpx2.Response:
    return await browser.post("/api/sign-in", json={"login": login, "password": password}, **more)
