"""Runs: begin, go on, queue, end, skip; and the proof that one committed."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BindParameter,
    bindparam,
    delete,
    exists,
    insert,
    or_,
    select,
    tuple_,
    update,
)

from backburner.core.errors import NotFound
from backburner.core.ids import ConversationId, RunId, UserId, new_run_id
from backburner.core.run import Run, RunEnding, RunKind, RunStatus, SkippedSlots, Turn
from backburner.ports import Hint, HintKind
from backburner.store.context import Group
from backburner.store.mapping import to_run
from backburner.store.tables import (
    KEPT,
    is_queued,
    is_running,
    outcomes,
    runs,
    session_entries,
    tool_calls,
)

_insert = insert(runs)
_prove = insert(outcomes)
_proof = select(outcomes.c.run_id).where(
    outcomes.c.user_id == bindparam("owner"),
    outcomes.c.run_id == bindparam("run"),
    outcomes.c.epoch == bindparam("epoch"),
)
_of_conversation = (runs.c.user_id == bindparam("owner")) & (
    runs.c.conversation_id == bindparam("conversation")
)
_queued_of = select(runs).where(_of_conversation, is_queued)
_load = select(runs).where(runs.c.user_id == bindparam("owner"), runs.c.id == bindparam("run"))
_history = (
    select(runs)
    .where(_of_conversation)
    .order_by(runs.c.started_at.desc(), runs.c.epoch.desc(), runs.c.id)
    .limit(bindparam("limit"))
)
_by_id = (runs.c.user_id == bindparam("owner")) & (runs.c.id == bindparam("run"))
_go_on = (
    update(runs)
    .where(_by_id, is_queued)
    .values(
        status=RunStatus.RUNNING.value,
        epoch=bindparam("new_epoch"),
        unattended=bindparam("is_unattended"),
        worker=bindparam("by"),
        wait_until=None,
    )
)
_queue = (
    update(runs)
    .where(_by_id, is_running)
    .values(status=RunStatus.QUEUED.value, wait_until=bindparam("until"), draft=None)
)
_end = (
    update(runs)
    .where(_by_id, is_running)
    .values(
        status=bindparam("ended_as"),
        ended_at=bindparam("at"),
        failure_kind=bindparam("failed"),
        failure_message=bindparam("why"),
        result=bindparam("found"),
        tokens=bindparam("used"),
        profile=bindparam("by"),
        escalated_from=bindparam("instead_of"),
        draft=None,
    )
)
_cancelled: dict[str, Any] = {"status": RunStatus.CANCELLED.value, "ended_at": bindparam("at")}
_drop_queued = update(runs).where(_of_conversation, is_queued).values(_cancelled)
_drop_queued_kind = _drop_queued.where(runs.c.kind == bindparam("which_kind"))
_ask_to_stop = (
    update(runs)
    .where(_of_conversation, is_running, runs.c.cancel_requested_at.is_(None))
    .values(cancel_requested_at=bindparam("at"))
)
_ask_kind_to_stop = _ask_to_stop.where(runs.c.kind == bindparam("which_kind"))


_draft = (
    update(runs)
    .where(_by_id, is_running, runs.c.epoch == bindparam("held"))
    .values(draft=bindparam("said"), drafted_at=bindparam("at"))
)
_let_go_on = (
    update(runs)
    .where(_of_conversation, is_queued, runs.c.wait_until.is_(None))
    .values(wait_until=bindparam("at"))
)
_newer = runs.alias("newer")
_old = (
    select(runs.c.user_id, runs.c.id, runs.c.conversation_id)
    .where(
        runs.c.ended_at < bindparam("before"),
        or_(
            runs.c.kind == RunKind.REPLY.value,
            exists().where(
                _newer.c.user_id == runs.c.user_id,
                _newer.c.conversation_id == runs.c.conversation_id,
                _newer.c.kind == runs.c.kind,
                _newer.c.started_at > runs.c.started_at,
            ),
        ),
    )
    .order_by(runs.c.ended_at)
    .limit(bindparam("limit"))
)
_these: BindParameter[Any] = bindparam("which", expanding=True)
#: With the conversation: the entries of a run have no index of their own.
_entries = tuple_(
    session_entries.c.user_id, session_entries.c.conversation_id, session_entries.c.run_id
).in_(bindparam("where", expanding=True))
_keep_memories = (
    update(session_entries)
    .where(
        _entries,
        exists().where(
            outcomes.c.user_id == session_entries.c.user_id,
            outcomes.c.run_id == session_entries.c.run_id,
            outcomes.c.epoch == session_entries.c.epoch,
        ),
    )
    .values(epoch=KEPT)
)
_forget_memories = delete(session_entries).where(_entries, session_entries.c.epoch != KEPT)
_forget_calls = delete(tool_calls).where(
    tuple_(tool_calls.c.user_id, tool_calls.c.run_id).in_(_these)
)
_delete = delete(runs).where(tuple_(runs.c.user_id, runs.c.id).in_(_these))


class Runs(Group):
    def begin(self, row: dict[str, Any]) -> None:
        self.connection.execute(_insert, row)

    def resume(
        self, user: UserId, run_id: RunId, *, epoch: int, unattended: bool, worker: str
    ) -> None:
        values = {"owner": user, "run": run_id, "new_epoch": epoch, "by": worker}
        self.connection.execute(_go_on, {**values, "is_unattended": unattended})

    def queue(self, user: UserId, run_id: RunId, *, until: datetime | None) -> None:
        self.connection.execute(_queue, {"owner": user, "run": run_id, "until": until})

    def end(self, user: UserId, run_id: RunId, ending: RunEnding) -> None:
        failure = ending.failure
        values = {
            "owner": user,
            "run": run_id,
            "ended_as": ending.status.value,
            "at": self.tx.now,
            "failed": failure and failure.kind.value,
            "why": failure and failure.message,
            "found": ending.result,
            "used": ending.tokens,
            "by": ending.profile,
            "instead_of": ending.escalated_from,
        }
        self.connection.execute(_end, values)

    def prove(self, user: UserId, run_id: RunId, epoch: int) -> None:
        """Write the proof that a run committed under an epoch, in the same transaction."""
        row = {"user_id": user, "run_id": run_id, "epoch": epoch, "committed_at": self.tx.now}
        self.connection.execute(_prove, row)

    def is_proven(self, user: UserId, run_id: RunId, epoch: int) -> bool:
        values = {"owner": user, "run": run_id, "epoch": epoch}
        return self.connection.execute(_proof, values).first() is not None

    def load(self, user: UserId, run_id: RunId) -> Run:
        row = self.connection.execute(_load, {"owner": user, "run": run_id}).one_or_none()
        if row is None:
            raise NotFound
        return to_run(row)

    def queued(
        self, user: UserId, conversation_id: ConversationId
    ) -> dict[RunKind, tuple[Run, datetime | None]]:
        """Find the runs that were handed back, with the time from which each may go on."""
        found = self.connection.execute(
            _queued_of, {"owner": user, "conversation": conversation_id}
        )
        return {RunKind(row.kind): (to_run(row), row.wait_until) for row in found}

    def history(
        self, user: UserId, conversation_id: ConversationId, *, limit: int
    ) -> tuple[Run, ...]:
        values = {"owner": user, "conversation": conversation_id, "limit": limit}
        return tuple(to_run(row) for row in self.connection.execute(_history, values))

    def skip(
        self,
        user: UserId,
        conversation_id: ConversationId,
        skipped: Iterable[SkippedSlots],
        *,
        revision: int,
    ) -> None:
        rows = [
            {
                "id": new_run_id(),
                "user_id": user,
                "conversation_id": conversation_id,
                "kind": RunKind.BACKGROUND.value,
                "status": RunStatus.SKIPPED.value,
                "unattended": True,
                "epoch": 0,
                "schedule_revision": revision,
                "started_at": self.tx.now,
                "ended_at": self.tx.now,
                "tokens": 0,
                "skip_reason": row.reason.value,
                "gap_count": row.gap.count,
                "gap_first_at": row.gap.first_at,
                "gap_last_at": row.gap.last_at,
                "gap_or_more": row.gap.or_more,
            }
            for row in skipped
        ]
        if rows:
            self.connection.execute(_insert, rows)

    def drop_queued(
        self, user: UserId, conversation_id: ConversationId, *, kind: RunKind | None
    ) -> None:
        """Cancel what was handed back; None: runs of either kind."""
        values = {"owner": user, "conversation": conversation_id, "at": self.tx.now}
        if kind is None:
            self.connection.execute(_drop_queued, values)
        else:
            self.connection.execute(_drop_queued_kind, {**values, "which_kind": kind.value})

    def save_draft(self, turn: Turn, text: str) -> None:
        """Show what has been said so far, as long as the turn is still this holder's."""
        values = {"owner": turn.user_id, "run": turn.run_id, "held": turn.epoch, "said": text}
        values["at"] = self.tx.now
        self.connection.execute(_draft, values)
        self.tx.hint(Hint(HintKind.CHANGED, turn.user_id, turn.conversation_id))

    def resume_waiting(
        self, user: UserId, conversation_id: ConversationId, *, at: datetime
    ) -> None:
        """Let runs go on from then that were handed back until something happens."""
        values = {"owner": user, "conversation": conversation_id, "at": at}
        self.connection.execute(_let_go_on, values)
        self.tx.hint(Hint(HintKind.WORK, user))

    def prune(self, *, before: datetime, limit: int) -> int:
        """Delete the records of runs that ended long ago; the last background run of each stays.

        What the agent learned in them stays too, without the run it is from.
        """
        old = self.connection.execute(_old, {"before": before, "limit": limit}).all()
        if old:
            entries = [(row.user_id, row.conversation_id, row.id) for row in old]
            these = [(row.user_id, row.id) for row in old]
            for statement in (_keep_memories, _forget_memories):
                self.connection.execute(statement, {"where": entries})
            for statement in (_forget_calls, _delete):
                self.connection.execute(statement, {"which": these})
        return len(old)

    def stop_reply(self, user: UserId, conversation_id: ConversationId) -> bool:
        self.tx.hint(Hint(HintKind.CANCEL, user, conversation_id))
        return self.request_stop(user, conversation_id, kind=RunKind.REPLY)

    def request_stop(
        self, user: UserId, conversation_id: ConversationId, *, kind: RunKind | None
    ) -> bool:
        """Let whoever holds a running run know that it is to stop; None: one of either kind."""
        values = {"owner": user, "conversation": conversation_id, "at": self.tx.now}
        if kind is None:
            return self.connection.execute(_ask_to_stop, values).rowcount > 0
        values["which_kind"] = kind.value
        return self.connection.execute(_ask_kind_to_stop, values).rowcount > 0
