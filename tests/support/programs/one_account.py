"""`backburner up` as somebody has it on their own machine, and the commands that they type."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from backburner.core.conversation import Conversation
from backburner.core.ids import UserId
from support.faults.outside import Outside
from support.programs.programs import Ended, Start
from support.programs.real_workers import MODEL, USUAL, write_toml


class OneAccount:
    """A server with SQLite, Claude Code, and a model on this machine; its commands are real."""

    def __init__(
        self,
        start: Start,
        data: Path,
        model: str,
        *,
        env: Mapping[str, str],
        profiles: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
        **settings: Any,
    ) -> None:
        self._start = start
        self._env = {**os.environ, **env, "BACKBURNER_DATA": str(data)}
        profile = {"engine": "claude", "address": model, "model": MODEL, "key": "key"}
        data.mkdir(mode=0o700)
        (data / "backburner.toml").write_text(
            write_toml({**USUAL, **settings}, {"claude": profile, **profiles})
        )
        self.server = start("up", "--port", "0", env=self._env)
        self.address = self.server.wait_until_ready()
        #: Only to look: the server alone writes to its database.
        self.looks = Outside(f"sqlite:///{data / 'backburner.sqlite3'}")
        ((user,),) = self.looks.rows("SELECT id FROM users")
        self.user = UserId(user)

    def call(self, *arguments: str) -> Ended:
        ended = self._start(*arguments, env=self._env).end()
        assert ended.code == 0, ended
        return ended

    def ask(self, *arguments: str) -> Any:
        """Return what a command prints as JSON."""
        return json.loads("\n".join(self.call(*arguments, "--json").out))

    def find(self, title: str) -> Conversation:
        ((which,),) = self.looks.wait_for(
            lambda: self.looks.rows("SELECT id FROM conversations WHERE title = :t", t=title)
        )
        return self.looks.database.run(lambda tx: tx.conversations.load(self.user, which))
