"""Push subscriptions of browsers, which end with their sessions."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import FromClause, Row, Select, bindparam, delete, or_, select, update

from backburner.core.channels.push import PushSubscription
from backburner.core.errors import NotFound
from backburner.core.ids import PushId, UserId
from backburner.store.context import Group
from backburner.store.dialect import upsert
from backburner.store.tables import credentials, push_subscriptions, users

_subscriptions = push_subscriptions.c
_of_user = _subscriptions.user_id == bindparam("owner")
_by_id = (_of_user, _subscriptions.id == bindparam("subscription_id"))
#: Joined with what says whether the session still lasts.
_valid = push_subscriptions.join(
    credentials,
    (credentials.c.user_id == _subscriptions.user_id)
    & (credentials.c.id == _subscriptions.session),
).join(users, users.c.id == _subscriptions.user_id)


def _lasts(at: Any) -> tuple[Any, ...]:
    return (
        credentials.c.ended_at.is_(None),
        or_(credentials.c.expires_at.is_(None), credentials.c.expires_at > at),
        users.c.disabled_at.is_(None),
    )


_select = select(push_subscriptions).select_from(_valid).where(_of_user, *_lasts(bindparam("at")))
_list = _select.order_by(_subscriptions.id)
_select_ids = _list.with_only_columns(_subscriptions.id)
_load = _select.where(_subscriptions.id == bindparam("subscription_id"))
_find = select(push_subscriptions).where(_of_user, _subscriptions.digest == bindparam("digest"))
_remove = delete(push_subscriptions).where(*_by_id)
_remove_of_session = delete(push_subscriptions).where(
    _of_user, _subscriptions.session == bindparam("of_session")
)
_remove_all = delete(push_subscriptions).where(_of_user)
_mark_sent = (
    update(push_subscriptions)
    .where(*_by_id)
    .values(sent_at=bindparam("now"), failed_at=None, error=None)
)
_mark_failed = (
    update(push_subscriptions)
    .where(*_by_id)
    .values(failed_at=bindparam("now"), error=bindparam("why"))
)


def for_each_browser(rows: FromClause) -> Select[Any]:
    """Select these deliveries once for each subscription of their owner."""
    others = [column for column in rows.c if column.name not in ("key", "target")]
    return (
        select(
            *others,
            (rows.c.key + _subscriptions.id + ":0").label("key"),
            _subscriptions.id.label("target"),
        )
        .select_from(rows.join(_valid, _subscriptions.user_id == rows.c.user_id))
        .where(*_lasts(rows.c.not_before))
    )


class PushSubscriptions(Group):
    def list(self, user: UserId) -> Sequence[PushSubscription]:
        rows = self._execute(_list, {"owner": user, "at": self.tx.now})
        return [_to_subscription(row) for row in rows]

    def targets(self, user: UserId) -> Sequence[PushId]:
        rows = self._execute(_select_ids, {"owner": user, "at": self.tx.now})
        return [PushId(row.id) for row in rows]

    def load(self, user: UserId, subscription: PushId) -> PushSubscription:
        values = {"owner": user, "subscription_id": subscription, "at": self.tx.now}
        return _to_subscription(self._read_one(_load, values))

    def find(self, user: UserId, endpoint: str) -> PushSubscription | None:
        values = {"owner": user, "digest": _digest(endpoint)}
        row = self._execute(_find, values).one_or_none()
        return _to_subscription(row) if row else None

    def put(self, subscription: PushSubscription) -> None:
        upsert(self.connection, push_subscriptions, _to_row(subscription))

    def remove(self, user: UserId, subscription: PushId) -> None:
        values = {"owner": user, "subscription_id": subscription}
        if self._execute(_remove, values).rowcount != 1:
            raise NotFound

    def remove_of_session(self, user: UserId, session: str) -> None:
        self._execute(_remove_of_session, {"owner": user, "of_session": session})

    def remove_all(self, user: UserId) -> None:
        self._execute(_remove_all, {"owner": user})

    def mark_sent(self, user: UserId, subscription: PushId) -> None:
        values = {"owner": user, "subscription_id": subscription, "now": self.tx.now}
        self._execute(_mark_sent, values)

    def mark_failed(self, user: UserId, subscription: PushId, why: str) -> None:
        values = {"owner": user, "subscription_id": subscription, "now": self.tx.now, "why": why}
        self._execute(_mark_failed, values)


def _digest(endpoint: str) -> str:
    return hashlib.sha256(endpoint.encode()).hexdigest()


def _to_row(subscription: PushSubscription) -> Mapping[str, Any]:
    return {
        "user_id": subscription.user_id,
        "id": subscription.id,
        "session": subscription.session,
        "digest": _digest(subscription.endpoint),
        "endpoint": subscription.endpoint,
        "receiver_key": subscription.receiver_key,
        "auth": subscription.auth,
        "server_key": subscription.server_key,
        "label": subscription.label,
        "created_at": subscription.created_at,
        "sent_at": subscription.sent_at,
        "failed_at": subscription.failed_at,
        "error": subscription.error,
    }


def _to_subscription(row: Row[Any]) -> PushSubscription:
    return PushSubscription(
        id=PushId(row.id),
        user_id=UserId(row.user_id),
        session=row.session,
        endpoint=row.endpoint,
        receiver_key=bytes(row.receiver_key),
        auth=bytes(row.auth),
        server_key=bytes(row.server_key),
        label=row.label,
        created_at=row.created_at,
        sent_at=row.sent_at,
        failed_at=row.failed_at,
        error=row.error,
    )
