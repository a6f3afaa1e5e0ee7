"""Notices, and the outbox that carries them to channels: one row a part."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Text, bindparam, insert, or_, select, update

from backburner.core.conversation import Conversation
from backburner.core.errors import NotFound
from backburner.core.ids import ConversationId, NoticeId, RunId, UserId, new_notice_id
from backburner.core.notice import Notice
from backburner.ports import Delivery, EventKind, Hint, HintKind
from backburner.store.context import Group
from backburner.store.dialect import number_rows
from backburner.store.tables import deliveries, notices, to_send, unseen
from backburner.store.types import MICROSECOND

_insert_notices = insert(notices)
_insert_deliveries = insert(deliveries)
_next = (
    select(deliveries)
    .where(
        to_send,
        deliveries.c.not_before <= bindparam("at"),
        or_(deliveries.c.leased_until.is_(None), deliveries.c.leased_until < bindparam("tick")),
    )
    .order_by(deliveries.c.not_before, deliveries.c.user_id, deliveries.c.number)
    .limit(1)
    .with_for_update(skip_locked=True)
)
_this = (deliveries.c.user_id == bindparam("owner")) & (deliveries.c.number == bindparam("which"))
_take = (
    update(deliveries)
    .where(_this)
    .values(
        state="sending",
        leased_until=bindparam("until"),
        # When to look whether its sender went silent.
        not_before=bindparam("look_at"),
        lease=deliveries.c.lease + 1,
        attempts=deliveries.c.attempts + 1,
    )
)
_settle = (
    update(deliveries)
    .where(_this, deliveries.c.lease == bindparam("held"), deliveries.c.state == "sending")
    .values(
        state=bindparam("becomes"),
        leased_until=None,
        not_before=bindparam("again_at"),
        provider_id=bindparam("receipt"),
        error=bindparam("why"),
    )
)
_see = (
    update(notices)
    .where(notices.c.user_id == bindparam("owner"), unseen)
    .values(seen_at=bindparam("at"))
)
_see_these = _see.where(notices.c.id.in_(bindparam("which", expanding=True, type_=Text())))
_see_until = _see.where(notices.c.number <= bindparam("last"))
_number = select(notices.c.number).where(
    notices.c.user_id == bindparam("owner"), notices.c.id == bindparam("which")
)


class Notices(Group):
    def put(
        self,
        conversation: Conversation,
        told: Iterable[Notice],
        *,
        cause: str | None,
        run_id: RunId | None,
    ) -> None:
        """Store notices and what has to go out for them.

        `cause` names the event they come from, for one that must never be told of twice.
        """
        rows = list[dict[str, Any]]()
        parcels = list[dict[str, Any]]()
        for ordinal, notice in enumerate(told):
            owner = {"user_id": conversation.user_id, "conversation_id": conversation.id}
            notice_id = new_notice_id()
            key = notice_id if cause is None else f"{cause}:{ordinal}"
            rows.append(
                {
                    **owner,
                    "id": notice_id,
                    "run_id": run_id,
                    "kind": notice.kind.value,
                    "text": notice.text,
                    "question_id": notice.question_id,
                    "created_at": self.tx.now,
                }
            )
            parcels += [
                {
                    **owner,
                    "key": f"{key}:{place.channel}:{place.target}:0",
                    "notice_id": notice_id,
                    "channel": place.channel,
                    "target": place.target,
                    "part": 0,
                    "text": notice.text,
                    "state": "waiting",
                    "attempts": 0,
                    "not_before": self.tx.now,
                    "lease": 0,
                }
                for place in conversation.reports_to
            ]
        if rows:
            number_rows(self.connection, notices, rows)
            self.connection.execute(_insert_notices, rows)
        if parcels:
            number_rows(self.connection, deliveries, parcels)
            self.connection.execute(_insert_deliveries, parcels)

    def mark_seen(self, user: UserId, notice_ids: Iterable[NoticeId]) -> int:
        """Mark notices as seen; returns how many were not before."""
        self.tx.hint(Hint(HintKind.CHANGED, user))
        values = {"owner": user, "which": list(notice_ids), "at": self.tx.now}
        return self.connection.execute(_see_these, values).rowcount

    def mark_seen_until(self, user: UserId, last: NoticeId) -> int:
        """Mark this notice and all before it as seen."""
        self.tx.hint(Hint(HintKind.CHANGED, user))
        number = self.connection.execute(_number, {"owner": user, "which": last}).scalar()
        if number is None:
            raise NotFound
        return self.connection.execute(
            _see_until, {"owner": user, "last": number, "at": self.tx.now}
        ).rowcount


class Deliveries(Group):
    def lease(self, *, lease: timedelta) -> Delivery | None:
        """Lease the next part to be sent, also one whose sender went silent."""
        row = self.connection.execute(
            _next, {"at": self.tx.now, "tick": self.tx.tick}
        ).one_or_none()
        if row is None:
            return None
        until = {"until": self.tx.tick + lease // MICROSECOND, "look_at": self.tx.now + lease}
        self.connection.execute(_take, {"owner": row.user_id, "which": row.number, **until})
        return Delivery(
            number=row.number,
            user_id=UserId(row.user_id),
            conversation_id=ConversationId(row.conversation_id),
            key=row.key,
            channel=row.channel,
            target=row.target,
            text=row.text,
            attempts=row.attempts + 1,
            lease=row.lease + 1,
        )

    def mark_sent(self, delivery: Delivery, *, provider_id: str | None = None) -> bool:
        self.tx.changed(delivery.user_id, delivery.conversation_id, EventKind.NOTICE)
        return self._settle(delivery, "sent", again_at=self.tx.now, provider_id=provider_id)

    def mark_failed(self, delivery: Delivery, why: str, *, again_at: datetime | None) -> bool:
        """Put a part back to be tried again, or give it up and keep the reason."""
        self.tx.changed(delivery.user_id, delivery.conversation_id, EventKind.NOTICE)
        becomes = "failed" if again_at is None else "waiting"
        return self._settle(delivery, becomes, again_at=again_at or self.tx.now, why=why)

    def _settle(
        self,
        delivery: Delivery,
        becomes: str,
        *,
        again_at: datetime,
        provider_id: str | None = None,
        why: str | None = None,
    ) -> bool:
        values = {
            "owner": delivery.user_id,
            "which": delivery.number,
            "held": delivery.lease,
            "becomes": becomes,
            "again_at": again_at,
            "receipt": provider_id,
            "why": why,
        }
        return self.connection.execute(_settle, values).rowcount == 1
