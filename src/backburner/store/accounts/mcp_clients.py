"""The conversation of each token, to which the jobs started with it over MCP belong."""

from datetime import datetime
from typing import Any

from sqlalchemy import Select, and_, bindparam, or_, select, update

from backburner.core.accounts import CredentialKind
from backburner.core.conversation import Status
from backburner.core.ids import ConversationId, UserId
from backburner.store.context import Group
from backburner.store.tables import conversations, credentials

_by_id = and_(credentials.c.user_id == bindparam("owner"), credentials.c.id == bindparam("token"))
_select_open = select(conversations.c.id).join(
    credentials,
    and_(
        conversations.c.user_id == credentials.c.user_id,
        conversations.c.id == credentials.c.conversation_id,
        conversations.c.status != Status.ARCHIVED.value,
    ),
)
_select_place = _select_open.where(_by_id)
_select_former_place = (
    _select_open.where(
        credentials.c.user_id == bindparam("owner"),
        credentials.c.kind == CredentialKind.TOKEN.value,
        credentials.c.name == bindparam("name"),
        or_(credentials.c.ended_at.is_not(None), credentials.c.expires_at <= bindparam("at")),
    )
    .order_by(credentials.c.created_at.desc())
    .limit(1)
)
_select_name = select(credentials.c.name).where(_by_id)
_keep_place = (
    update(credentials).where(_by_id).values(conversation_id=bindparam("new_conversation_id"))
)


class McpClients(Group):
    def conversation_of(self, user: UserId, token: str) -> ConversationId | None:
        return self._find(_select_place, {"owner": user, "token": token})

    def former_conversation_of(
        self, user: UserId, name: str, *, now: datetime
    ) -> ConversationId | None:
        return self._find(_select_former_place, {"owner": user, "name": name, "at": now})

    def name_of(self, user: UserId, token: str) -> str:
        return str(self._read_one(_select_name, {"owner": user, "token": token}).name)

    def remember_conversation(
        self, user: UserId, token: str, conversation_id: ConversationId
    ) -> None:
        values = {"owner": user, "token": token, "new_conversation_id": conversation_id}
        self._execute(_keep_place, values)

    def _find(self, statement: Select[Any], values: dict[str, Any]) -> ConversationId | None:
        conversation_id = self._execute(statement, values).scalar_one_or_none()
        return None if conversation_id is None else ConversationId(conversation_id)
