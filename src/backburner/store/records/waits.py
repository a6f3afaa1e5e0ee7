"""Runs that were handed back until jobs have settled, a person speaks, or their time has come.

Whoever lets one go on has locked its conversation first, as those do who claim it.
"""

from collections.abc import Mapping

from sqlalchemy import (
    Text,
    and_,
    bindparam,
    delete,
    exists,
    insert,
    not_,
    or_,
    select,
    text,
    update,
)

from backburner.core.ids import ConversationId, RunId, UserId
from backburner.core.run import RunKind, Turn
from backburner.store.context import Group
from backburner.store.tables import conversations, inbox, is_queued, runs, unserved, waits

_insert = insert(waits)
_take = delete(waits).where(
    waits.c.user_id == bindparam("owner"), waits.c.run_id == bindparam("run")
)
_unsettled = select(waits.c.run_id, waits.c.conversation_id).where(
    waits.c.user_id == bindparam("owner"),
    waits.c.job_id == bindparam("job"),
    waits.c.settled_at.is_(None),
)
_lock = (
    select(conversations.c.id)
    .where(conversations.c.user_id == bindparam("owner"), conversations.c.id == bindparam("which"))
    .with_for_update(key_share=True)
)
_settle = (
    update(waits)
    .where(
        waits.c.user_id == bindparam("owner"),
        waits.c.job_id == bindparam("which_job"),
        waits.c.settled_at.is_(None),
    )
    .values(settled_at=bindparam("at"))
)
_of_run = waits.alias("of_run")
_is_of_run = and_(_of_run.c.user_id == runs.c.user_id, _of_run.c.run_id == runs.c.id)
_all_have_settled = not_(exists().where(_is_of_run, _of_run.c.settled_at.is_(None)))
_person_waits = exists().where(
    inbox.c.user_id == runs.c.user_id,
    inbox.c.conversation_id == runs.c.conversation_id,
    unserved,
    inbox.c.from_person,
)
_waits_for_some = exists().where(_is_of_run)
_go_on = (
    update(runs)
    .where(
        runs.c.user_id == bindparam("owner"),
        runs.c.conversation_id == bindparam("which", type_=Text()),
        is_queued,
        runs.c.wait_until > bindparam("at", type_=runs.c.wait_until.type),
        and_(_waits_for_some, or_(_all_have_settled, _person_waits)),
    )
    .values(wait_until=bindparam("at"))
)
_awaited_by = (
    select(runs.c.kind)
    .join(waits, and_(waits.c.user_id == runs.c.user_id, waits.c.run_id == runs.c.id))
    .where(
        waits.c.user_id == bindparam("owner"),
        waits.c.job_id == bindparam("job"),
        waits.c.conversation_id == bindparam("which"),
        runs.c.status == text("'queued'"),
    )
)


class Waits(Group):
    def begin(self, turn: Turn, conversation_ids: Mapping[ConversationId, bool]) -> None:
        """Note what a run that was handed back waits for, and which of it has settled already."""
        rows = [
            {
                "user_id": turn.user_id,
                "conversation_id": turn.conversation_id,
                "run_id": turn.run_id,
                "job_id": job,
                "settled_at": self.tx.now if is_settled else None,
            }
            for job, is_settled in conversation_ids.items()
        ]
        self.connection.execute(_insert, rows)
        self.resume(turn.user_id, turn.conversation_id)

    def take(self, user: UserId, run_id: RunId) -> tuple[ConversationId, ...]:
        """Tell what a run waited for, now that it goes on."""
        taken = self.connection.execute(
            _take.returning(waits.c.job_id), {"owner": user, "run": run_id}
        )
        return tuple(sorted(taken.scalars()))

    def settle(self, user: UserId, job: ConversationId) -> None:
        """Let those go on that waited for this job and for no other."""
        waiting = self.connection.execute(_unsettled, {"owner": user, "job": job}).all()
        for which in sorted({row.conversation_id for row in waiting}):
            self.connection.execute(_lock, {"owner": user, "which": which}).all()
            self.connection.execute(_settle, {"owner": user, "which_job": job, "at": self.tx.now})
            self.resume(user, which)

    def resume(self, user: UserId, conversation_id: ConversationId) -> None:
        """Let runs of a conversation go on for which there is nothing left to wait for."""
        self.connection.execute(
            _go_on, {"owner": user, "which": conversation_id, "at": self.tx.now}
        )

    def awaited_by(
        self, user: UserId, conversation_id: ConversationId, job: ConversationId
    ) -> RunKind | None:
        values = {"owner": user, "which": conversation_id, "job": job}
        found = self.connection.execute(_awaited_by, values).scalars().all()
        # A background run hears of it first; the reply reads it in the messages.
        return min((RunKind(kind) for kind in found), default=None)
