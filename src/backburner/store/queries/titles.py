"""Titles of conversations: of those with some ids, and of those that work in a folder."""

from collections.abc import Collection, Mapping

from sqlalchemy import BigInteger, Text, and_, bindparam, or_, select, text

from backburner.core.ids import ConversationId, UserId
from backburner.store.context import Group
from backburner.store.tables import conversations

_owner = bindparam("owner", type_=Text())
_machine = bindparam("machine", type_=Text())
_select_titles = select(conversations.c.id, conversations.c.title)
_select_by_id = _select_titles.where(
    conversations.c.user_id == _owner, conversations.c.id.in_(bindparam("ids", expanding=True))
)
_select_in_folder = (
    _select_titles.where(
        and_(
            conversations.c.user_id == _owner,
            conversations.c.folder == bindparam("path", type_=Text()),
            # Machines may share it.
            or_(conversations.c.folder_machine == _machine, _machine == text("''")),
        )
    )
    .order_by(conversations.c.id.desc())
    .limit(bindparam("limit", type_=BigInteger()))
)


class TitleQueries(Group):
    def titles(
        self, user: UserId, conversation_ids: Collection[ConversationId]
    ) -> Mapping[ConversationId, str]:
        rows = self._execute(_select_by_id, {"owner": user, "ids": list(conversation_ids)})
        return {ConversationId(row.id): row.title for row in rows}

    def titles_in_folder(
        self, user: UserId, path: str, machine: str, *, limit: int
    ) -> Mapping[ConversationId, str]:
        values = {"owner": user, "path": path, "machine": machine, "limit": limit}
        rows = self._execute(_select_in_folder, values)
        return {ConversationId(row.id): row.title for row in rows}
