"""Notices: list them with what a page shows beside them, and mark them as seen."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from backburner.actions.accounts.page_facts import MAX_COUNTED
from backburner.actions.browse import Page, make_page
from backburner.actions.deps import Deps
from backburner.core.ids import NoticeId, QuestionId, UserId
from backburner.ports import NoticeRow, PageKey, Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeList:
    now: datetime
    zone: str
    page: Page[NoticeRow]
    #: Of all notices, up to a limit.
    unseen: int
    #: The questions that can still be answered.
    open_questions: frozenset[QuestionId]


async def load_list(
    deps: Deps,
    user: UserId,
    after: PageKey | None,
    *,
    limit: int,
    down_to: PageKey | None = None,
) -> NoticeList:
    """Read a page of notices, newest first; `down_to` is the key of an earlier page."""

    def work(tx: Tx) -> NoticeList:
        rows = tx.browse.notices(user, after, unseen=False, limit=limit + 1)
        asked = tx.browse.questions(user, None, limit=MAX_COUNTED)
        return NoticeList(
            now=tx.now,
            zone=tx.users.load(user).zone,
            page=make_page(rows, limit, lambda last: (last.id,), down_to=down_to),
            unseen=tx.browse.count_unseen_notices(user, limit=MAX_COUNTED),
            open_questions=frozenset(one.question.id for one in asked),
        )

    return await deps.store.read(work)


async def mark_seen(deps: Deps, user: UserId, notice_ids: Sequence[NoticeId]) -> int:
    return await deps.store.transact(lambda tx: tx.notices.mark_seen(user, notice_ids))


async def mark_seen_until(deps: Deps, user: UserId, last_id: NoticeId) -> int:
    return await deps.store.transact(lambda tx: tx.notices.mark_seen_until(user, last_id))
