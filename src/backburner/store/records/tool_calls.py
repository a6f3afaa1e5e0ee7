"""The journal of tool calls: written down before each is made, and after."""

import json
from collections.abc import Sequence

from sqlalchemy import Row, bindparam, insert, select, update

from backburner.core import tool_policy
from backburner.core.errors import Fenced, NotFound
from backburner.core.ids import CallId, GrantId, RunId, UserId
from backburner.core.run import Turn
from backburner.core.tool_journal import JournalEntry, calls_in_doubt, doubt_question_id
from backburner.core.tool_policy import ToolCall
from backburner.store.context import Group
from backburner.store.mapping import dump
from backburner.store.records.grants import Grants
from backburner.store.records.questions import Questions
from backburner.store.tables import tool_calls

_insert = insert(tool_calls)
_by_id = (tool_calls.c.user_id == bindparam("owner")) & (tool_calls.c.id == bindparam("which"))
_values = {
    "state": "done",
    "result": bindparam("found"),
    "failed": bindparam("went_wrong"),
    "ended_at": bindparam("at"),
}
_end = (
    update(tool_calls)
    .where(_by_id, tool_calls.c.epoch == bindparam("held"), tool_calls.c.state == "started")
    .values(_values)
)
_begun = select(tool_calls).where(_by_id, tool_calls.c.epoch == bindparam("held"))
_settle = update(tool_calls).where(_by_id, tool_calls.c.state == "unknown").values(_values)
_give_up = (
    update(tool_calls)
    .where(
        tool_calls.c.user_id == bindparam("owner"),
        tool_calls.c.run_id == bindparam("run"),
        tool_calls.c.state == "started",
    )
    .values(state="unknown", ended_at=bindparam("at"))
)
_of_run = (
    select(tool_calls)
    .where(tool_calls.c.user_id == bindparam("owner"), tool_calls.c.run_id == bindparam("run"))
    .order_by(tool_calls.c.started_at, tool_calls.c.id)
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
        row = {
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
            "state": "started",
            "grant_id": uses,
            "started_at": self.tx.now,
        }
        self.connection.execute(_insert, row)

    def has_begun(self, turn: Turn, call_id: CallId) -> bool:
        """See whether a call was written down by this holder."""
        values = {"owner": turn.user_id, "which": call_id, "held": turn.epoch}
        return self.connection.execute(_begun, values).first() is not None

    def end(self, turn: Turn, call_id: CallId, result: str, *, failed: bool) -> None:
        """Write down what came of a call; whoever lost the turn meanwhile cannot."""
        values = {"owner": turn.user_id, "which": call_id, "held": turn.epoch}
        values |= {"found": result, "went_wrong": failed, "at": self.tx.now}
        if self.connection.execute(_end, values).rowcount != 1:
            # Perhaps by itself: an earlier try went through, and only its answer was lost.
            written = self.connection.execute(_begun, values).one_or_none()
            if written is None or (written.state, written.result) != ("done", result):
                raise Fenced

    def take_in_doubt(self, turn: Turn) -> Sequence[JournalEntry]:
        values = {"owner": turn.user_id, "run": turn.run_id, "at": self.tx.now}
        self.connection.execute(_give_up, values)
        questions = Questions(self.tx)
        return [
            entry
            for entry in calls_in_doubt(self.of_run(turn.user_id, turn.run_id))
            if not questions.exists(turn.user_id, doubt_question_id(entry))
        ]

    def settle(self, user: UserId, call_id: CallId, result: str) -> None:
        """Write down what became of a call that nobody knew about."""
        values = {
            "owner": user,
            "which": call_id,
            "found": result,
            "went_wrong": False,
            "at": self.tx.now,
        }
        if self.connection.execute(_settle, values).rowcount != 1:
            raise NotFound

    def of_run(self, user: UserId, run_id: RunId) -> Sequence[JournalEntry]:
        """Read what a run did, in the order in which it did it."""
        return [
            _entry(row) for row in self.connection.execute(_of_run, {"owner": user, "run": run_id})
        ]


def _entry(row: Row[tuple[object, ...]]) -> JournalEntry:
    return JournalEntry(
        id=CallId(row.id),
        run_id=RunId(row.run_id),
        server=row.server,
        tool=row.tool,
        definition=row.definition,
        arguments=json.loads(row.arguments),
        digest=row.digest,
        read_only=row.read_only,
        done=row.state == "done",
        result=row.result,
        failed=row.failed,
    )
