"""Runs: begin, resume, queue, end, skip; and the proof that one committed."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BindParameter,
    and_,
    bindparam,
    delete,
    exists,
    insert,
    or_,
    select,
    tuple_,
    union_all,
    update,
)

from backburner.core.ids import ConnectionId, ConversationId, RunId, UserId, new_run_id
from backburner.core.run import (
    NO_WAIT,
    ModelWait,
    Progress,
    Run,
    RunEnding,
    RunKind,
    RunStatus,
    SkippedSlots,
    Turn,
)
from backburner.ports import EventKind, Hint, HintKind
from backburner.store.context import Group
from backburner.store.mapping import to_run
from backburner.store.records.files import Files
from backburner.store.tables import (
    COMMITTED_EPOCH,
    is_queued,
    is_running,
    outcomes,
    runs,
    session_entries,
    tool_calls,
)

_insert = insert(runs)
_insert_proof = insert(outcomes)
_select_proof = select(outcomes.c.run_id).where(
    outcomes.c.user_id == bindparam("owner"),
    outcomes.c.run_id == bindparam("run_id"),
    outcomes.c.epoch == bindparam("epoch"),
)
_of_conversation = and_(
    runs.c.user_id == bindparam("owner"), runs.c.conversation_id == bindparam("conversation")
)
_by_id = and_(runs.c.user_id == bindparam("owner"), runs.c.id == bindparam("run_id"))
_select_queued = select(runs).where(_of_conversation, is_queued)
_load = select(runs).where(_by_id)
_select_recent = (
    select(runs)
    .where(_of_conversation)
    .order_by(runs.c.started_at.desc(), runs.c.epoch.desc(), runs.c.id)
    .limit(bindparam("limit"))
)
_select_replies_since = select(runs.c.id).where(
    _of_conversation,
    runs.c.id.in_(bindparam("run_ids", expanding=True)),
    runs.c.kind == RunKind.REPLY.value,
    runs.c.started_at >= bindparam("since"),
)
_resume = (
    update(runs)
    .where(_by_id, is_queued)
    .values(
        status=RunStatus.RUNNING.value,
        epoch=bindparam("new_epoch"),
        unattended=bindparam("is_unattended"),
        worker=bindparam("new_worker"),
        wait_until=None,
        resumed_at=bindparam("at"),
    )
)
_queue = (
    update(runs)
    .where(_by_id, is_running)
    .values(
        status=RunStatus.QUEUED.value,
        wait_until=bindparam("until"),
        failure_kind=bindparam("new_failure_kind"),
        failure_message=bindparam("new_failure_message"),
        own_trouble_since=bindparam("new_trouble_since"),
        waits_since=bindparam("new_waits_since"),
        connection_id=bindparam("for_connection"),
        draft=None,
    )
)
_end = (
    update(runs)
    .where(_by_id, is_running)
    .values(
        status=bindparam("new_status"),
        ended_at=bindparam("at"),
        failure_kind=bindparam("new_failure_kind"),
        failure_message=bindparam("new_failure_message"),
        result=bindparam("new_result"),
        data=bindparam("new_data"),
        tokens=bindparam("new_tokens"),
        profile=bindparam("new_profile"),
        escalated_from=bindparam("new_escalated_from"),
        outside=bindparam("is_outside"),
        draft=None,
    )
)
_drop_queued = (
    update(runs)
    .where(_of_conversation, is_queued)
    .values(status=RunStatus.CANCELLED.value, ended_at=bindparam("at"))
)
_drop_queued_of_kind = _drop_queued.where(runs.c.kind == bindparam("of_kind"))
_request_stop = (
    update(runs)
    .where(_of_conversation, is_running, runs.c.cancel_requested_at.is_(None))
    .values(cancel_requested_at=bindparam("at"))
)
_request_stop_of_kind = _request_stop.where(runs.c.kind == bindparam("of_kind"))
_save_draft = (
    update(runs)
    .where(_by_id, is_running, runs.c.epoch == bindparam("held_epoch"))
    .values(draft=bindparam("text"), drafted_at=bindparam("at"))
)
_save_progress = (
    update(runs)
    .where(_by_id, is_running, runs.c.epoch == bindparam("held_epoch"))
    .values(progress=bindparam("text"), progress_at=bindparam("at"))
)
#: Two statements, each of which has an index of its own.
_select_progress = union_all(
    *(
        select(runs.c.conversation_id, runs.c.progress, runs.c.progress_at).where(
            runs.c.user_id == bindparam("owner"),
            runs.c.conversation_id.in_(bindparam("conversation_ids", expanding=True)),
            is_in_progress,
            runs.c.progress.is_not(None),
        )
        for is_in_progress in (is_running, is_queued)
    )
)
_resume_waiting = (
    update(runs)
    .where(_of_conversation, is_queued, runs.c.wait_until.is_(None))
    .values(wait_until=bindparam("at"))
)
_waiting_for_sign_in = (
    select(runs)
    .where(
        runs.c.user_id == bindparam("owner"),
        is_queued,
        runs.c.wait_until.is_(None),
        runs.c.connection_id.is_not(None),
    )
    .order_by(runs.c.started_at, runs.c.id)
)
_newer = runs.alias("newer")
_select_old = (
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
_run_keys: BindParameter[Any] = bindparam("run_keys", expanding=True)
#: With the conversation: entries have no index on the run alone.
_is_entry_of_runs = tuple_(
    session_entries.c.user_id, session_entries.c.conversation_id, session_entries.c.run_id
).in_(bindparam("entry_keys", expanding=True))
_keep_entries = (
    update(session_entries)
    .where(
        _is_entry_of_runs,
        exists().where(
            outcomes.c.user_id == session_entries.c.user_id,
            outcomes.c.run_id == session_entries.c.run_id,
            outcomes.c.epoch == session_entries.c.epoch,
        ),
    )
    .values(epoch=COMMITTED_EPOCH)
)
_delete_entries = delete(session_entries).where(
    _is_entry_of_runs, session_entries.c.epoch != COMMITTED_EPOCH
)
_delete_calls = delete(tool_calls).where(
    tuple_(tool_calls.c.user_id, tool_calls.c.run_id).in_(_run_keys)
)
_delete = delete(runs).where(tuple_(runs.c.user_id, runs.c.id).in_(_run_keys))


class Runs(Group):
    def begin(self, row: dict[str, Any]) -> None:
        self._write(_insert, row)

    def resume(
        self, user: UserId, run_id: RunId, *, epoch: int, unattended: bool, worker: str
    ) -> None:
        values = {"owner": user, "run_id": run_id, "new_epoch": epoch, "new_worker": worker}
        self._execute(_resume, {**values, "is_unattended": unattended, "at": self.tx.now})

    def queue(
        self,
        user: UserId,
        run_id: RunId,
        *,
        until: datetime | None,
        wait: ModelWait = NO_WAIT,
    ) -> None:
        failure = wait.failure
        values = {
            "owner": user,
            "run_id": run_id,
            "until": until,
            "new_failure_kind": failure and failure.kind.value,
            "new_failure_message": failure and failure.message,
            "new_trouble_since": wait.own_trouble_since,
            "new_waits_since": wait.since,
            "for_connection": wait.connection,
        }
        self._execute(_queue, values)

    def end(self, user: UserId, run_id: RunId, ending: RunEnding) -> None:
        failure = ending.failure
        values = {
            "owner": user,
            "run_id": run_id,
            "at": self.tx.now,
            "new_status": ending.status.value,
            "new_failure_kind": failure and failure.kind.value,
            "new_failure_message": failure and failure.message,
            "new_result": ending.result,
            "new_data": ending.data,
            "new_tokens": ending.tokens,
            "new_profile": ending.profile,
            "new_escalated_from": ending.escalated_from,
            "is_outside": ending.outside,
        }
        self._write(_end, values)

    def prove(self, turn: Turn, *, prompt: str | None = None) -> None:
        """Store the proof that a run committed under an epoch, in the same transaction."""
        row = {
            "user_id": turn.user_id,
            "run_id": turn.run_id,
            "epoch": turn.epoch,
            "committed_at": self.tx.now,
            "began_at": turn.began_at,
            "prompt": prompt,
        }
        self._write(_insert_proof, row)

    def is_proven(self, user: UserId, run_id: RunId, epoch: int) -> bool:
        return self._exists(_select_proof, {"owner": user, "run_id": run_id, "epoch": epoch})

    def load(self, user: UserId, run_id: RunId) -> Run:
        return to_run(self._read_one(_load, {"owner": user, "run_id": run_id}))

    def queued(
        self, user: UserId, conversation_id: ConversationId
    ) -> dict[RunKind, tuple[Run, datetime | None]]:
        """Read the runs that were handed back, with the time from which each may resume."""
        rows = self._execute(_select_queued, {"owner": user, "conversation": conversation_id})
        return {RunKind(row.kind): (to_run(row), row.wait_until) for row in rows}

    def history(
        self, user: UserId, conversation_id: ConversationId, *, limit: int
    ) -> tuple[Run, ...]:
        values = {"owner": user, "conversation": conversation_id, "limit": limit}
        return tuple(to_run(row) for row in self._execute(_select_recent, values))

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
        self._write(_insert, *rows)

    def drop_queued(
        self, user: UserId, conversation_id: ConversationId, *, kind: RunKind | None
    ) -> None:
        """Cancel the queued runs of a kind; None: of either kind."""
        values = {"owner": user, "conversation": conversation_id, "at": self.tx.now}
        if kind is None:
            self._write(_drop_queued, values, apart="queued runs")
        else:
            values["of_kind"] = kind.value
            self._write(_drop_queued_of_kind, values, apart="queued runs")

    def save_draft(self, turn: Turn, text: str) -> None:
        """Store the draft of a reply, if the run still holds its turn."""
        values = {"owner": turn.user_id, "run_id": turn.run_id, "held_epoch": turn.epoch}
        self._execute(_save_draft, {**values, "text": text, "at": self.tx.now})
        self.tx.hint(Hint(HintKind.CHANGED, turn.user_id, turn.conversation_id))

    def save_progress(self, turn: Turn, text: str) -> None:
        """Store what a run is doing, if it still holds its turn."""
        values = {"owner": turn.user_id, "run_id": turn.run_id, "held_epoch": turn.epoch}
        saved = self._execute(_save_progress, {**values, "text": text, "at": self.tx.now})
        if saved.rowcount:
            self.tx.events.note(turn.user_id, turn.conversation_id, EventKind.RUN)
            self.tx.hint(Hint(HintKind.CHANGED, turn.user_id, turn.conversation_id))

    def progress_of(
        self, user: UserId, conversation_ids: Collection[ConversationId]
    ) -> Mapping[ConversationId, Progress]:
        """Read what the runs in progress of these conversations have said."""
        if not conversation_ids:
            return {}
        values = {"owner": user, "conversation_ids": list(conversation_ids)}
        rows = sorted(self._execute(_select_progress, values), key=lambda row: row.progress_at)
        return {
            ConversationId(row.conversation_id): Progress(row.progress, row.progress_at)
            for row in rows
        }

    def resume_waiting(
        self, user: UserId, conversation_id: ConversationId, *, at: datetime
    ) -> None:
        """Resume at a time the runs that were handed back without one."""
        values = {"owner": user, "conversation": conversation_id, "at": at}
        self._execute(_resume_waiting, values)
        self.tx.hint(Hint(HintKind.WORK, user))

    def waiting_for_sign_in(self, user: UserId) -> Sequence[tuple[ConnectionId, Run]]:
        rows = self._execute(_waiting_for_sign_in, {"owner": user})
        return [(ConnectionId(row.connection_id), to_run(row)) for row in rows]

    def prune(self, *, before: datetime, limit: int) -> int:
        """Delete runs that ended before a time, except the last background run of a conversation.

        Their committed session entries are kept.
        """
        old = self._execute(_select_old, {"before": before, "limit": limit}).all()
        if old:
            entry_keys = [(row.user_id, row.conversation_id, row.id) for row in old]
            run_keys = [(row.user_id, row.id) for row in old]
            Files(self.tx).forget_runs(run_keys)
            for statement in (_keep_entries, _delete_entries):
                self._execute(statement, {"entry_keys": entry_keys})
            for statement in (_delete_calls, _delete):
                self._execute(statement, {"run_keys": run_keys})
        return len(old)

    def replies_since(
        self,
        user: UserId,
        conversation_id: ConversationId,
        run_ids: Collection[RunId],
        since: datetime,
    ) -> Collection[RunId]:
        """Return those of some runs that are replies here and began since a time."""
        if not run_ids:
            return ()
        values = {"owner": user, "conversation": conversation_id, "run_ids": list(run_ids)}
        found = self._execute(_select_replies_since, {**values, "since": since}).scalars()
        return set(map(RunId, found))

    def stop_reply(self, user: UserId, conversation_id: ConversationId) -> bool:
        self.tx.hint(Hint(HintKind.CANCEL, user, conversation_id))
        return self.request_stop(user, conversation_id, kind=RunKind.REPLY)

    def stop_work(self, user: UserId, conversation_id: ConversationId) -> bool:
        self.tx.hint(Hint(HintKind.CANCEL, user, conversation_id))
        return self.request_stop(user, conversation_id, kind=RunKind.BACKGROUND)

    def request_stop(
        self, user: UserId, conversation_id: ConversationId, *, kind: RunKind | None
    ) -> bool:
        """Ask the holder of a running run of a kind to stop; None: of either kind."""
        values = {"owner": user, "conversation": conversation_id, "at": self.tx.now}
        if kind is None:
            return self._execute(_request_stop, values).rowcount > 0
        values["of_kind"] = kind.value
        return self._execute(_request_stop_of_kind, values).rowcount > 0
