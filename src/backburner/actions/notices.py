"""Notices: mark them as seen."""

from collections.abc import Sequence

from backburner.actions.deps import Deps
from backburner.core.ids import NoticeId, UserId


async def mark_seen(deps: Deps, user: UserId, notice_ids: Sequence[NoticeId]) -> int:
    return await deps.store.transact(lambda tx: tx.notices.mark_seen(user, notice_ids))


async def mark_seen_until(deps: Deps, user: UserId, last_id: NoticeId) -> int:
    return await deps.store.transact(lambda tx: tx.notices.mark_seen_until(user, last_id))
