"""The ends of tool calls: their results in the journal.

Those of calls that only read are recorded together, while the agent goes on with the results.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import structlog

from backburner.core.errors import Fenced, StoreFailed
from backburner.core.ids import CallId
from backburner.core.run import Turn
from backburner.core.tool_policy import Tool
from backburner.ports import CallEnd, Store, Tx
from backburner.runs.stopping import StopReason, StopRequests
from backburner.runs.tool_results import KeptResult

_log = structlog.get_logger(__name__)


#: How many seconds the ends of calls that only read wait for those of others, to be recorded in one
#: statement. Nobody waits for them until the run ends.
DELAY = 0.05


@dataclass(slots=True)
class CallEnds:
    """Records the ends of the calls of one run."""

    store: Store
    turn: Turn
    stop: StopRequests
    #: Calls that the journal may have without a result.
    unfinished: set[CallId] = field(default_factory=set)
    #: Calls that may change something, and whose results may not be in the agent's session yet.
    untold: set[CallId] = field(default_factory=set)
    #: Ends of calls that are recorded while the agent has their results already.
    _late: list[CallEnd] = field(default_factory=list)
    _recording: "asyncio.Task[None] | None" = None
    _is_settling: asyncio.Event = field(default_factory=asyncio.Event)

    async def record(self, tool: Tool, call_id: CallId, kept: KeptResult, *, error: str) -> None:
        """Record the result of a call, and the use of its connection with what went wrong."""
        end = _end(call_id, kept)

        def work(tx: Tx) -> None:
            tx.tool_calls.end(self.turn, end, worked=not error)
            if error and tool.connection is not None:
                tx.connections.note_use(self.turn.user_id, tool.connection, at=tx.now, error=error)

        await self.store.transact(work, single=not (kept.files or error))
        self.unfinished.discard(call_id)

    def record_later(self, call_id: CallId, kept: KeptResult) -> None:
        """Record soon what a call that only reads has returned; its agent goes on meanwhile."""
        self._late.append(_end(call_id, kept))
        if self._recording is None or self._recording.done():
            self._recording = asyncio.create_task(self._record_late())

    async def settle(self) -> None:
        """Wait until the ends of all calls are recorded; nothing is decided about a run before."""
        self._is_settling.set()
        while self._recording is not None:
            recording, self._recording = self._recording, None
            await recording

    async def _record_late(self) -> None:
        while self._late:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._is_settling.wait(), DELAY)
            ends, self._late = self._late, []
            await self._record_together(ends)

    async def _record_together(self, ends: Sequence[CallEnd]) -> None:
        try:
            await self.store.transact(lambda tx: tx.tool_calls.end(self.turn, *ends), single=True)
        except Fenced:
            self.stop.request(StopReason.FENCED)
        except StoreFailed as error:
            # Its agent has the results: the journal alone does not know whether they were made.
            calls = [end.call_id for end in ends]
            _log.warning("call.not_recorded", calls=calls, error=str(error))
        else:
            self.unfinished.difference_update(end.call_id for end in ends)


def _end(call_id: CallId, kept: KeptResult) -> CallEnd:
    return CallEnd(call_id, kept.result.text, failed=kept.result.failed, files=kept.files)
