"""Notices, and their deliveries: the outbox for channels."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Text, Update, and_, bindparam, exists, insert, or_, select, update

from backburner.core.channels.push import PUSH
from backburner.core.conversation import Conversation, Destination
from backburner.core.ids import (
    ConversationId,
    NoticeId,
    QuestionId,
    RunId,
    UserId,
    new_notice_id,
)
from backburner.core.notice import Notice, NoticeKind, find_address
from backburner.ports import Delivery, EventKind
from backburner.store.channels.push_subscriptions import PushSubscriptions, for_each_browser
from backburner.store.context import Group
from backburner.store.dialect import has_row_locks, number_rows
from backburner.store.tables import (
    conversations,
    deliveries,
    is_shown,
    is_unseen,
    is_unsent,
    notices,
)
from backburner.store.types import MICROSECOND

_insert_notices = insert(notices)
_insert_deliveries = insert(deliveries)
_is_of_deleted = exists().where(
    conversations.c.user_id == deliveries.c.user_id,
    conversations.c.id == deliveries.c.conversation_id,
    ~is_shown,
)
select_next = (
    select(deliveries)
    .where(
        is_unsent,
        deliveries.c.not_before <= bindparam("at"),
        deliveries.c.user_id.not_in(bindparam("besides", expanding=True)),
        ~_is_of_deleted,
        or_(deliveries.c.leased_until.is_(None), deliveries.c.leased_until < bindparam("tick")),
    )
    .order_by(deliveries.c.not_before, deliveries.c.user_id, deliveries.c.number)
    .limit(1)
    .with_for_update(skip_locked=True)
)
_by_number = and_(
    deliveries.c.user_id == bindparam("owner"), deliveries.c.number == bindparam("delivery_number")
)
_lease = (
    update(deliveries)
    .where(_by_number)
    .values(
        state="sending",
        leased_until=bindparam("lease_end"),
        # From then on another sender may take it over.
        not_before=bindparam("expires_at"),
        lease=deliveries.c.lease + 1,
        attempts=deliveries.c.attempts + 1,
    )
)
_settle = (
    update(deliveries)
    .where(_by_number, deliveries.c.lease == bindparam("held"), deliveries.c.state == "sending")
    .values(
        state=bindparam("new_state"),
        leased_until=None,
        not_before=bindparam("retry_at"),
        provider_id=bindparam("new_provider_id"),
        error=bindparam("reason"),
    )
)
_release_all = (
    update(deliveries)
    .where(deliveries.c.state == "sending")
    .values(leased_until=None, not_before=bindparam("at"))
)
_mark_seen = (
    update(notices)
    .where(notices.c.user_id == bindparam("owner"), is_unseen)
    .values(seen_at=bindparam("at"))
)
_mark_seen_by_id = _mark_seen.where(
    notices.c.id.in_(bindparam("notice_ids", expanding=True, type_=Text()))
)
_mark_seen_until = _mark_seen.where(notices.c.number <= bindparam("last_number"))
_mark_seen_in = _mark_seen.where(
    notices.c.conversation_id == bindparam("which"), notices.c.created_at <= bindparam("until")
)
_mark_question_seen = _mark_seen.where(
    notices.c.conversation_id == bindparam("which"), notices.c.question_id == bindparam("asked")
)
_select_number = select(notices.c.number).where(
    notices.c.user_id == bindparam("owner"), notices.c.id == bindparam("notice_id")
)


class Notices(Group):
    def put(
        self,
        conversation: Conversation,
        new: Iterable[Notice],
        *,
        cause: str | None,
        run_id: RunId | None,
    ) -> None:
        """Store notices, with a delivery for each destination.

        `cause` names the event they report, where it must not be reported twice.
        """
        rows = list[dict[str, Any]]()
        delivery_rows = list[dict[str, Any]]()
        push_rows = list[dict[str, Any]]()
        for ordinal, notice in enumerate(new):
            notice_id = new_notice_id()
            row = {
                "user_id": conversation.user_id,
                "conversation_id": conversation.id,
                "id": notice_id,
                "run_id": run_id,
                "kind": notice.kind.value,
                "text": notice.text,
                "message": notice.message,
                "options": json.dumps(notice.options),
                "question_id": notice.question_id,
                "created_at": self.tx.now,
            }
            key = notice_id if cause is None else f"{cause}:{ordinal}"
            rows.append(row)
            common = _delivery(row, key, conversation.title, notice.compose())
            delivery_rows += [_to_place(common, place) for place in conversation.reports_to]
            push_rows.append({**common, "channel": PUSH, "key": f"{key}:{PUSH}:"})
        number_rows(self.connection, notices, rows)
        self._write(_insert_notices, *rows)
        self._put_deliveries(delivery_rows)
        self._tell_browsers(conversation.user_id, push_rows)

    def _put_deliveries(self, rows: Sequence[dict[str, Any]]) -> None:
        number_rows(self.connection, deliveries, rows)
        self._write(_insert_deliveries, *rows)

    def _tell_browsers(self, user: UserId, rows: Sequence[Mapping[str, Any]]) -> None:
        """Store these deliveries for each browser of the user that takes push messages."""
        if rows and has_row_locks(self.connection):
            # In the statement that stores everything else, without a round trip to read them.
            self.tx.write(_insert_deliveries, *rows, source=for_each_browser)
        elif rows and (targets := PushSubscriptions(self.tx).targets(user)):
            self._put_deliveries(
                [
                    {**row, "key": f"{row['key']}{target}:0", "target": target}
                    for row in rows
                    for target in targets
                ]
            )

    def mark_seen(self, user: UserId, notice_ids: Iterable[NoticeId]) -> int:
        """Mark notices as seen, and return how many were unseen."""
        return self._mark(_mark_seen_by_id, user, None, notice_ids=list(notice_ids))

    def mark_seen_until(self, user: UserId, last: NoticeId) -> int:
        """Mark a notice and all earlier ones as seen."""
        number = self._read_one(_select_number, {"owner": user, "notice_id": last}).number
        return self._mark(_mark_seen_until, user, None, last_number=number)

    def mark_seen_in(self, user: UserId, which: ConversationId, *, until: datetime) -> int:
        """Mark the notices of a conversation as seen, up to a time."""
        return self._mark(_mark_seen_in, user, which, which=which, until=until)

    def mark_question_seen(self, user: UserId, which: ConversationId, asked: QuestionId) -> int:
        """Mark the notices of a question as seen."""
        return self._mark(_mark_question_seen, user, which, which=which, asked=asked)

    def _mark(
        self, statement: Update, user: UserId, conversation: ConversationId | None, **values: Any
    ) -> int:
        count = self._execute(statement, {"owner": user, "at": self.tx.now, **values}).rowcount
        if count:
            self.tx.changed(user, conversation, EventKind.NOTICE)
        return count


class Deliveries(Group):
    def lease(self, *, lease: timedelta, besides: Collection[UserId] = ()) -> Delivery | None:
        """Lease the next delivery, also one whose earlier lease has expired.

        `besides`: users whose deliveries are passed over.
        """
        values = {"at": self.tx.now, "tick": self.tx.tick, "besides": list(besides)}
        row = self._execute(select_next, values).one_or_none()
        if row is None:
            return None
        values = {
            "owner": row.user_id,
            "delivery_number": row.number,
            "lease_end": self.tx.tick + lease // MICROSECOND,
            "expires_at": self.tx.now + lease,
        }
        self._execute(_lease, values)
        return Delivery(
            number=row.number,
            user_id=UserId(row.user_id),
            conversation_id=ConversationId(row.conversation_id),
            key=row.key,
            channel=row.channel,
            target=row.target,
            notice_id=NoticeId(row.notice_id),
            kind=NoticeKind(row.kind),
            title=row.title,
            text=row.text,
            address=row.address,
            attempts=row.attempts + 1,
            lease=row.lease + 1,
        )

    def release_all(self) -> None:
        """End every lease."""
        self._execute(_release_all, {"at": self.tx.now})

    def mark_sent(self, delivery: Delivery, *, provider_id: str | None = None) -> bool:
        self.tx.changed(delivery.user_id, delivery.conversation_id, EventKind.NOTICE)
        return self._settle(delivery, "sent", retry_at=self.tx.now, provider_id=provider_id)

    def mark_failed(self, delivery: Delivery, why: str, *, again_at: datetime | None) -> bool:
        """Store the reason, and retry at `again_at`; None: the delivery has failed for good."""
        self.tx.changed(delivery.user_id, delivery.conversation_id, EventKind.NOTICE)
        state = "failed" if again_at is None else "waiting"
        return self._settle(delivery, state, retry_at=again_at or self.tx.now, reason=why)

    def _settle(
        self,
        delivery: Delivery,
        state: str,
        *,
        retry_at: datetime,
        provider_id: str | None = None,
        reason: str | None = None,
    ) -> bool:
        values = {
            "owner": delivery.user_id,
            "delivery_number": delivery.number,
            "held": delivery.lease,
            "new_state": state,
            "retry_at": retry_at,
            "new_provider_id": provider_id,
            "reason": reason,
        }
        return self._execute(_settle, values).rowcount == 1


def _delivery(notice: Mapping[str, Any], key: str, title: str, text: str) -> dict[str, Any]:
    """Make what the deliveries of a notice have in common; `key` is the beginning of theirs."""
    return {
        "user_id": notice["user_id"],
        "conversation_id": notice["conversation_id"],
        "key": key,
        "notice_id": notice["id"],
        "kind": notice["kind"],
        "part": 0,
        "title": title,
        "text": text,
        "address": find_address(notice["conversation_id"], notice["question_id"]),
        "state": "waiting",
        "attempts": 0,
        "not_before": notice["created_at"],
        "lease": 0,
    }


def _to_place(common: Mapping[str, Any], place: Destination) -> dict[str, Any]:
    key = f"{common['key']}:{place.channel}:{place.target}:0"
    return {**common, "channel": place.channel, "target": place.target, "key": key}
