"""Which conversation a token has, for what is handed out with it over MCP."""

from datetime import datetime
from typing import Any

from sqlalchemy import Select, and_, bindparam, or_, select, update

from backburner.core.accounts import CredentialKind
from backburner.core.conversation import Status
from backburner.core.errors import NotFound
from backburner.core.ids import ConversationId, UserId
from backburner.store.context import Group
from backburner.store.tables import conversations, credentials

_this = (credentials.c.user_id == bindparam("user"), credentials.c.id == bindparam("token"))
_open_places = select(conversations.c.id).join(
    credentials,
    and_(
        conversations.c.user_id == credentials.c.user_id,
        conversations.c.id == credentials.c.conversation_id,
        conversations.c.status != Status.ARCHIVED.value,
    ),
)
_place = _open_places.where(*_this)
_former_place = (
    _open_places.where(
        credentials.c.user_id == bindparam("user"),
        credentials.c.kind == CredentialKind.TOKEN.value,
        credentials.c.name == bindparam("named"),
        or_(credentials.c.ended_at.is_not(None), credentials.c.expires_at <= bindparam("at")),
    )
    .order_by(credentials.c.created_at.desc())
    .limit(1)
)
_name = select(credentials.c.name).where(*_this)
_keep_place = update(credentials).where(*_this).values(conversation_id=bindparam("becomes"))


class McpClients(Group):
    def place(self, user: UserId, token: str) -> ConversationId | None:
        return self._find(_place, {"user": user, "token": token})

    def former_place(self, user: UserId, name: str, *, now: datetime) -> ConversationId | None:
        return self._find(_former_place, {"user": user, "named": name, "at": now})

    def name_of(self, user: UserId, token: str) -> str:
        found = self._execute(_name, {"user": user, "token": token}).scalar_one_or_none()
        if found is None:
            raise NotFound
        return str(found)

    def keep_place(self, user: UserId, token: str, conversation_id: ConversationId) -> None:
        self._execute(_keep_place, {"user": user, "token": token, "becomes": conversation_id})

    def _find(self, statement: Select[Any], values: dict[str, Any]) -> ConversationId | None:
        found = self._execute(statement, values).scalar_one_or_none()
        return None if found is None else ConversationId(found)
