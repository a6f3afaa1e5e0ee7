"""The journal of tool calls: each is stored before it is made, and again with its result."""

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

from sqlalchemy import Row, and_, bindparam, insert, select, update

from backburner.core import tool_policy
from backburner.core.commands import Cage
from backburner.core.errors import Fenced, NotFound
from backburner.core.ids import CallId, GrantId, RunId, UserId
from backburner.core.run import Turn
from backburner.core.tool_journal import JournalEntry, calls_in_doubt, doubt_question_id
from backburner.core.tool_policy import ToolCall
from backburner.ports import CallEnd, ReadVersions
from backburner.store.context import Group
from backburner.store.dialect import has_row_locks
from backburner.store.mapping import dump, load_references
from backburner.store.records.calls import begin_again, call_ends
from backburner.store.records.calls.connection_calls import ConnectionCalls
from backburner.store.records.files import Files
from backburner.store.records.grants import Grants
from backburner.store.records.questions import Questions
from backburner.store.tables import tool_calls

_insert = insert(tool_calls)
_by_id = and_(tool_calls.c.user_id == bindparam("owner"), tool_calls.c.id == bindparam("call_id"))
_by_holder = and_(_by_id, tool_calls.c.epoch == bindparam("held_epoch"))
_of_run = and_(tool_calls.c.user_id == bindparam("owner"), tool_calls.c.run_id == bindparam("run"))
_select_begun = select(tool_calls).where(_by_holder)
_settle = (
    update(tool_calls)
    .where(_by_id, tool_calls.c.state == "unknown")
    .values(
        state="done",
        result=bindparam("new_result"),
        failed=False,
        files=None,
        ended_at=bindparam("at"),
    )
)
_undo = (
    update(tool_calls)
    .where(
        tool_calls.c.user_id == bindparam("owner"),
        tool_calls.c.id.in_(bindparam("call_ids", expanding=True)),
    )
    .values(result=bindparam("new_result"), failed=True)
)
_mark_unknown = (
    update(tool_calls)
    .where(_of_run, tool_calls.c.state == "started")
    .values(state="unknown", ended_at=bindparam("at"))
)
_select_of_run = (
    select(tool_calls).where(_of_run).order_by(tool_calls.c.started_at, tool_calls.c.id)
)


class ToolCalls(Group):
    def begin(
        self,
        turn: Turn,
        call_id: CallId,
        call: ToolCall,
        *,
        read_only: bool,
        uses: GrantId | None = None,
    ) -> None:
        if uses is not None:
            Grants(self.tx).use(turn.user_id, turn.conversation_id, uses)
        row = _new_row(turn, call_id, call, read_only=read_only)
        self._execute(_insert, {**row, "grant_id": uses, "started_at": self.tx.now})

    def begin_again(
        self, turn: Turn, call_id: CallId, call: ToolCall, *, read_only: bool, read: ReadVersions
    ) -> bool:
        if not has_row_locks(self.connection):
            return False
        row = _new_row(turn, call_id, call, read_only=read_only)
        return begin_again.write(self.tx, row, read)

    def has_begun(self, turn: Turn, call_id: CallId) -> bool:
        """See whether this holder of the turn has stored a call."""
        values = {"owner": turn.user_id, "call_id": call_id, "held_epoch": turn.epoch}
        return self._exists(_select_begun, values)

    def end(self, turn: Turn, *ends: CallEnd, worked: bool = True) -> None:
        """Store the results of calls, if their run still holds its turn."""
        held = {"owner": turn.user_id, "held_epoch": turn.epoch}
        ended = call_ends.write(self.tx, held, ends, worked=worked)
        for end in ends:
            # An earlier attempt may have committed, and only its answer was lost.
            if end.call_id not in ended and not self._has_ended(turn, end):
                raise Fenced
            self._use_files(turn, end)

    def _has_ended(self, turn: Turn, end: CallEnd) -> bool:
        key = {"owner": turn.user_id, "call_id": end.call_id, "held_epoch": turn.epoch}
        row = self._execute(_select_begun, key).one_or_none()
        return row is not None and (row.state, row.result) == ("done", end.result)

    def _use_files(self, turn: Turn, end: CallEnd) -> None:
        for digest in {file.digest for file in end.files}:
            # One that its owner deletes at this moment is named all the same.
            with suppress(NotFound):
                Files(self.tx).use(
                    turn.user_id,
                    digest,
                    conversation_id=turn.conversation_id,
                    used_by=end.call_id,
                    run_id=turn.run_id,
                )

    def take_in_doubt(self, turn: Turn) -> Sequence[JournalEntry]:
        values = {"owner": turn.user_id, "run": turn.run_id, "at": self.tx.now}
        if self._execute(_mark_unknown, values).rowcount:
            ConnectionCalls(self.tx).record_unknown(turn.user_id, turn.run_id)
        questions = Questions(self.tx)
        return [
            entry
            for entry in calls_in_doubt(self.of_run(turn.user_id, turn.run_id))
            if not questions.exists(turn.user_id, doubt_question_id(entry))
        ]

    def settle(self, user: UserId, call_id: CallId, result: str) -> None:
        """Store the result of a call that was in doubt."""
        values = {"owner": user, "call_id": call_id, "new_result": result, "at": self.tx.now}
        self._update_one(_settle, values)

    def undo(self, user: UserId, call_ids: Collection[CallId], result: str) -> None:
        """Give calls whose effects were taken back another result: none is answered with it."""
        if call_ids:
            values = {"owner": user, "call_ids": list(call_ids), "new_result": result}
            self._execute(_undo, values)

    def of_run(self, user: UserId, run_id: RunId) -> Sequence[JournalEntry]:
        """Read the calls of a run, oldest first."""
        rows = self._execute(_select_of_run, {"owner": user, "run": run_id})
        return [_to_entry(row) for row in rows]


def _to_entry(row: Row[tuple[object, ...]]) -> JournalEntry:
    return JournalEntry(
        id=CallId(row.id),
        run_id=RunId(row.run_id),
        server=row.server,
        tool=row.tool,
        definition=row.definition,
        arguments=json.loads(row.arguments),
        digest=row.digest,
        read_only=row.read_only,
        repeatable=row.repeatable,
        done=row.state == "done",
        result=row.result,
        failed=row.failed,
        cage=row.cage and Cage(row.cage),
        files=load_references(row.files),
    )


def _new_row(
    turn: Turn, call_id: CallId, call: ToolCall, *, read_only: bool
) -> Mapping[str, object]:
    return {
        "id": call_id,
        "user_id": turn.user_id,
        "conversation_id": turn.conversation_id,
        "run_id": turn.run_id,
        "epoch": turn.epoch,
        "server": call.tool.server,
        "tool": call.tool.name,
        "definition": call.tool.definition,
        "arguments": dump(call.arguments),
        "digest": tool_policy.call_digest(call),
        "read_only": read_only,
        "cage": tool_policy.find_cage(call),
        "repeatable": call.tool.repeatable,
        "connection_id": call.tool.connection,
        "state": "started",
    }
