"""The hits of a search in some conversations: in their titles, and in their newest messages.

All words have to be in the title, or in one message and the title together.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from operator import attrgetter
from typing import Any

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Integer,
    Row,
    Select,
    Text,
    and_,
    bindparam,
    exists,
    func,
    literal_column,
    or_,
    select,
)

from backburner.core.content.search import MAX_SEARCHED_CHARS, cut_out, has_any
from backburner.core.conversation import MessageRole
from backburner.core.ids import ConversationId, MessageId, UserId
from backburner.ports import Hit
from backburner.store.context import Group
from backburner.store.folding import Folded
from backburner.store.tables import conversations, messages

#: The newest messages of a conversation, which are searched.
MAX_MESSAGES = 200
#: Messages shown of a conversation that was found.
MAX_HITS = 3

_owner = bindparam("owner", type_=Text())
_conversation_ids = bindparam("conversation_ids", expanding=True, type_=Text())
_title = Folded(conversations.c.title)
_is_listed = and_(conversations.c.user_id == _owner, conversations.c.id.in_(_conversation_ids))


def _begin(of: FromClause) -> ColumnElement[str]:
    beginning: ColumnElement[str] = func.substr(of.c.content, 1, MAX_SEARCHED_CHARS)
    return beginning


_of_conversation = and_(
    messages.c.user_id == conversations.c.user_id,
    messages.c.conversation_id == conversations.c.id,
    messages.c.replaced_at.is_(None),
)
_newest = (
    select(Folded(_begin(messages)).label("folded"))
    .where(_of_conversation)
    .order_by(messages.c.number.desc())
    .limit(MAX_MESSAGES)
    .correlate(conversations)
    .subquery("newest")
)
_older = messages.alias("older")
#: None, if there are fewer.
_first_number = func.coalesce(
    select(_older.c.number)
    .where(
        _older.c.user_id == conversations.c.user_id,
        _older.c.conversation_id == conversations.c.id,
        _older.c.replaced_at.is_(None),
    )
    .order_by(_older.c.number.desc())
    .limit(literal_column("1", Integer))
    .offset(literal_column(str(MAX_MESSAGES - 1), Integer))
    .correlate(conversations)
    .scalar_subquery(),
    literal_column("0", Integer),
)


def _has(text: ColumnElement[str], place: int) -> ColumnElement[bool]:
    return text.like(bindparam(f"word{place}", type_=Text()), escape="\\")


@cache
def _select_matches(count: int) -> Select[Any]:
    """Build the statement for so many words."""
    in_title = and_(*(_has(_title, place) for place in range(count)))
    in_message = and_(
        *(or_(_has(_newest.c.folded, place), _has(_title, place)) for place in range(count))
    )
    found = or_(in_title, exists().where(in_message))
    return select(conversations).where(_is_listed, found)


@cache
def _select_hits(count: int) -> Select[Any]:
    """Build the statement for so many words: of each conversation, the last messages with them."""
    other = messages.alias("other")
    is_searched = and_(
        other.c.user_id == conversations.c.user_id,
        other.c.conversation_id == conversations.c.id,
        other.c.replaced_at.is_(None),
        other.c.number >= _first_number,
    )
    # Read until there are enough.
    last_hit = (
        select(other.c.number)
        .where(is_searched, *_found_in(_begin(other), conversations.c.title, count))
        .order_by(other.c.number.desc())
        .limit(literal_column("1", Integer))
        .offset(literal_column(str(MAX_HITS - 1), Integer))
        .correlate(conversations)
        .scalar_subquery()
    )
    since = (
        select(
            conversations.c.user_id,
            conversations.c.id,
            conversations.c.title,
            func.coalesce(last_hit, _first_number).label("number"),
        )
        .where(_is_listed)
        .cte("since")
        # Otherwise SQLite may look for it again for each message.
        .prefix_with("MATERIALIZED")
    )
    is_recent = and_(
        messages.c.user_id == since.c.user_id,
        messages.c.conversation_id == since.c.id,
        messages.c.number >= since.c.number,
        messages.c.replaced_at.is_(None),
    )
    return (
        select(
            messages.c.id,
            messages.c.number,
            messages.c.conversation_id,
            messages.c.role,
            messages.c.created_at,
            _begin(messages).label("beginning"),
        )
        .join_from(since, messages, is_recent)
        .where(*_found_in(_begin(messages), since.c.title, count))
    )


def _found_in(
    beginning: ColumnElement[str], title: ColumnElement[str], count: int
) -> Iterator[ColumnElement[bool]]:
    """All words are in a message or its title, and one of them in the message."""
    folded, folded_title = Folded(beginning), Folded(title)
    if count == 1:
        yield _has(folded, 0)
        return
    for place in range(count):
        yield or_(_has(folded, place), _has(folded_title, place))
    yield or_(*(_has(folded, place) for place in range(count)))


class SearchQueries(Group):
    def matches(
        self, user: UserId, words: Sequence[str], conversation_ids: Sequence[str]
    ) -> Sequence[Row[Any]]:
        """Find those of these conversations that have the words."""
        values = {"owner": user, "conversation_ids": conversation_ids, **_patterns(words)}
        return self._execute(_select_matches(len(words)), values).all()

    def hits(
        self, user: UserId, words: Sequence[str], titles: Mapping[str, str]
    ) -> Mapping[ConversationId, Sequence[Hit]]:
        """Say where the words were found in conversations: in titles, then the newest messages."""
        hits = defaultdict[ConversationId, list[Hit]](list)
        if not titles:
            return hits
        for conversation_id, title in titles.items():
            if has_any(title, words):
                hits[ConversationId(conversation_id)].append(Hit(cut_out(title, words)))
        values = {
            "owner": user,
            "conversation_ids": list(titles),
            **_patterns(words),
        }
        rows = self._execute(_select_hits(len(words)), values).all()
        for found in sorted(rows, key=attrgetter("number"), reverse=True):
            hits[ConversationId(found.conversation_id)].append(
                Hit(
                    cut_out(found.beginning, words),
                    message_id=MessageId(found.id),
                    role=MessageRole(found.role),
                    created_at=found.created_at,
                )
            )
        return hits


def _patterns(words: Sequence[str]) -> dict[str, str]:
    return {f"word{place}": f"%{_escape(word)}%" for place, word in enumerate(words)}


def _escape(words: str) -> str:
    return words.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
