"""A process that signs in, or uses a sign-in, on a database that others share.

It does what it reads from stdin, a line of JSON at a time, and answers each with a line of JSON.
"""

import asyncio
import json
import os
import sys
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from backburner.actions.connections import sign_in
from backburner.actions.connections.oauth_access import OAuthAccess
from backburner.app.clock import Clock
from backburner.core.errors import BackburnerError
from backburner.core.ids import ConnectionId, UserId
from backburner.gateway.oauth.flow import CheckedOAuth
from backburner.ports import TokenIssuer, Tokens
from backburner.store.db import Database
from backburner.store.dialect import make_engine
from support.programs.programs import PYTHON, Running, Start
from support.stage.connections import LOOPBACK, ORIGIN, caller, sign_in_deps


class DyingOAuth(CheckedOAuth):
    """Dies when it has new tokens, before anybody else has them."""

    async def refresh(self, issuer: TokenIssuer, refresh_token: str) -> Tokens:
        await super().refresh(issuer, refresh_token)
        os._exit(9)


class TokenUser:
    def __init__(self, url: str, keys: str, seconds: str, *options: str) -> None:
        self._database = Database(make_engine(url), Clock().read)
        oauth = (DyingOAuth if "dying" in options else CheckedOAuth)(allow=LOOPBACK)
        self._deps = sign_in_deps(self._database, Path(keys), oauth=oauth)
        self._lease = timedelta(seconds=float(seconds))

    async def connect(self) -> str:
        """Be ready, so that all start from the same line."""
        await self._deps.store.read(lambda tx: tx.now)
        return "ready"

    async def begin(self, user: str, connection: str) -> str:
        begun = await sign_in.begin(
            self._deps, caller(UserId(user)), ConnectionId(connection), origin=ORIGIN
        )
        return begun.url

    async def finish(self, user: str, address: str) -> str:
        end = await sign_in.finish(self._deps, caller(UserId(user)), address)
        return end.connection.state

    async def use(self, user: str, connection: str) -> str:
        """Return the header of a request, or why there is none."""
        found = await self._deps.store.read(
            lambda tx: tx.connections.load(UserId(user), ConnectionId(connection))
        )
        access = OAuthAccess(self._deps, found, self._lease)
        try:
            return (await access.headers())["Authorization"]
        except BackburnerError as error:
            return f"{type(error).__name__}: {error}"


@dataclass(frozen=True)
class TokenUserProcess:
    """One of these processes, as a test has it."""

    running: Running

    def send(self, what: str, *arguments: str) -> None:
        self.running.write_line(json.dumps([what, *arguments]))

    def receive(self) -> Any:
        line = self.running.read_line()
        assert line, self.running.end()
        return json.loads(line)

    def ask(self, what: str, *arguments: str) -> Any:
        self.send(what, *arguments)
        return self.receive()


def start_token_user(
    start: Start, url: str, keys: Path, *options: str, lease: float = 30
) -> TokenUserProcess:
    module = (*PYTHON, "support.programs.token_users")
    return TokenUserProcess(start(url, str(keys), str(lease), *options, command=module))


async def main() -> None:
    user = TokenUser(*sys.argv[1:])
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        what, *arguments = json.loads(line)
        print(json.dumps(await getattr(user, what)(*arguments)), flush=True)  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main())
