"""Runs that were handed back until jobs have settled, the user speaks, or a time has come.

To resume one, lock its conversation first, as a claim does.
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
from backburner.store.tables import conversations, inbox, is_queued, is_unserved, runs, waits

_insert = insert(waits)
_take = (
    delete(waits)
    .where(waits.c.user_id == bindparam("owner"), waits.c.run_id == bindparam("run_id"))
    .returning(waits.c.job_id)
)
_is_unsettled = and_(
    waits.c.user_id == bindparam("owner"),
    waits.c.job_id == bindparam("job"),
    waits.c.settled_at.is_(None),
)
_select_unsettled = select(waits.c.run_id, waits.c.conversation_id).where(_is_unsettled)
_lock_conversation = (
    select(conversations.c.id)
    .where(
        conversations.c.user_id == bindparam("owner"),
        conversations.c.id == bindparam("conversation"),
    )
    .with_for_update(key_share=True)
)
_settle = update(waits).where(_is_unsettled).values(settled_at=bindparam("at"))
_of_run = waits.alias("of_run")
_is_of_run = and_(_of_run.c.user_id == runs.c.user_id, _of_run.c.run_id == runs.c.id)
_all_have_settled = not_(exists().where(_is_of_run, _of_run.c.settled_at.is_(None)))
_person_waits = exists().where(
    inbox.c.user_id == runs.c.user_id,
    inbox.c.conversation_id == runs.c.conversation_id,
    is_unserved,
    inbox.c.from_person,
)
_waits_for_some = exists().where(_is_of_run)
_resume = (
    update(runs)
    .where(
        runs.c.user_id == bindparam("owner"),
        runs.c.conversation_id == bindparam("conversation", type_=Text()),
        is_queued,
        runs.c.wait_until > bindparam("at", type_=runs.c.wait_until.type),
        and_(_waits_for_some, or_(_all_have_settled, _person_waits)),
    )
    .values(wait_until=bindparam("at"))
)
_select_waiting_kinds = (
    select(runs.c.kind)
    .join(waits, and_(waits.c.user_id == runs.c.user_id, waits.c.run_id == runs.c.id))
    .where(
        waits.c.user_id == bindparam("owner"),
        waits.c.job_id == bindparam("job"),
        waits.c.conversation_id == bindparam("conversation"),
        runs.c.status == text("'queued'"),
    )
)


class Waits(Group):
    def begin(self, turn: Turn, conversation_ids: Mapping[ConversationId, bool]) -> None:
        """Store the jobs that a run waits for, and whether each has settled already."""
        rows = [
            {
                "user_id": turn.user_id,
                "conversation_id": turn.conversation_id,
                "run_id": turn.run_id,
                "job_id": job_id,
                "settled_at": self.tx.now if is_settled else None,
            }
            for job_id, is_settled in conversation_ids.items()
        ]
        self._execute(_insert, rows)
        self.resume(turn.user_id, turn.conversation_id)

    def take(self, user: UserId, run_id: RunId) -> tuple[ConversationId, ...]:
        """Delete and return the jobs that a run waited for, now that it resumes."""
        return tuple(sorted(self._execute(_take, {"owner": user, "run_id": run_id}).scalars()))

    def settle(self, user: UserId, job: ConversationId) -> None:
        """Resume the runs that waited for this job and for no other."""
        rows = self._execute(_select_unsettled, {"owner": user, "job": job}).all()
        for conversation_id in sorted({row.conversation_id for row in rows}):
            key = {"owner": user, "conversation": conversation_id}
            self._execute(_lock_conversation, key).all()
            self._execute(_settle, {"owner": user, "job": job, "at": self.tx.now})
            self.resume(user, conversation_id)

    def resume(self, user: UserId, conversation_id: ConversationId) -> None:
        """Resume the runs of a conversation that have nothing left to wait for."""
        values = {"owner": user, "conversation": conversation_id, "at": self.tx.now}
        self._execute(_resume, values)

    def awaited_by(
        self, user: UserId, conversation_id: ConversationId, job: ConversationId
    ) -> RunKind | None:
        values = {"owner": user, "conversation": conversation_id, "job": job}
        kinds = self._execute(_select_waiting_kinds, values).scalars()
        # A background run comes first; the reply finds the result in the messages.
        return min((RunKind(kind) for kind in kinds), default=None)
