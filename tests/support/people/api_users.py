"""Users of a real server, who do everything over its API."""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx2

from backburner.core.conversation import Conversation, EndedAs
from backburner.core.ids import ConversationId, UserId
from support.faults.outside import Outside
from support.oauth_peer.peer import OAuthPeer
from support.people.a_token import put_token


@dataclass(frozen=True)
class ApiUser:
    id: UserId
    client: httpx2.Client
    _outside: Outside

    def ask(self, method: str, path: str, body: object = None) -> Any:
        answer = self.client.request(method, f"/api{path}", json=body)
        assert answer.is_success, f"{method} {path}: {answer.text}"
        return answer.json() if answer.content else None

    def status(self, method: str, path: str, body: object = None) -> int:
        return self.client.request(method, f"/api{path}", json=body).status_code

    def connect(self, name: str, **what: Any) -> str:
        """Add a connection, and return its id."""
        added = self.ask("POST", "/connections", {"name": name, **what})
        assert added["error"] == "", added
        return str(added["connection"]["id"])

    def tick(self, connection: str, *tools: str) -> None:
        """Say of tools that they change nothing."""
        for tool in tools:
            self.ask("POST", f"/connections/{connection}/ticks", {"tool": tool, "read_only": True})

    def task(self, name: str, *, connections: Sequence[str] = (), **what: Any) -> Conversation:
        """Give the agent something to do in the background, once and now."""
        task = {"name": name, "kind": "oneshot", "prompt": "Look.", "connections": connections}
        which = ConversationId(self.ask("POST", "/tasks", {**task, **what})["id"])
        return self._outside.database.run(lambda tx: tx.conversations.load(self.id, which))

    def wait_until_completed(self, task: Conversation) -> None:
        self._outside.wait_for(lambda: self._outside.load(task).ended_as)
        assert self._outside.load(task).ended_as is EndedAs.COMPLETED

    def sign_in(self, peer: OAuthPeer, connection: str, who: str) -> None:
        """Sign in as somebody whom the peer knows by that name."""
        begun = self.ask("POST", f"/connections/{connection}/sign-in", {})
        finished = {"address": peer.approve(begun["url"], who), "secret": begun["secret"]}
        end = self.ask("POST", "/connections/finish-sign-in", finished)
        assert end["check"]["error"] == "", end


@contextmanager
def api_user(outside: Outside, address: str, user: UserId) -> Iterator[ApiUser]:
    """Make a user who may do everything that is theirs."""
    token = f"bb_{secrets.token_urlsafe()}"
    outside.add(user)
    outside.database.run(lambda tx: put_token(tx.connection, user, token))
    headers = {"authorization": f"Bearer {token}"}
    with httpx2.Client(base_url=address, headers=headers, timeout=60, trust_env=False) as client:
        yield ApiUser(user, client, outside)
