"""The connections of one run: their tools as offers, and their sessions."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import structlog

from backburner.actions.deps import Deps
from backburner.actions.waits import inputs
from backburner.core import tool_policy
from backburner.core.connections import access
from backburner.core.connections.access import NOTHING_LACKING, Lacking
from backburner.core.connections.connection import Connection, ConnectionState, ConnectionTool
from backburner.core.connections.offer import describe_unusable, make_tool
from backburner.core.conversation import Conversation
from backburner.core.errors import StoreFailed
from backburner.core.ids import QuestionId
from backburner.core.run import Item
from backburner.core.tool_policy import ToolCall
from backburner.ports import Offer, ToolResult, Tx
from backburner.tools.connections.finding import fit
from backburner.tools.connections.sessions import RunSessions

INPUT_NEEDED = (
    "The server asks the user something first. End here; the call goes on after their answer."
)
_log = structlog.get_logger(__name__)
Found = Sequence[tuple[Connection, Sequence[ConnectionTool]]]


@dataclass(slots=True)
class RunConnections:
    deps: Deps
    conversation: Conversation
    sessions: RunSessions
    #: Questions of servers that were answered, by the digest of the call.
    answered: Mapping[str, QuestionId] = field(default_factory=dict)
    #: Offered with them: their results may be cut, those of our own tools are short.
    read_on: Sequence[Offer] = ()
    _known: Found | None = None
    note: str = ""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.sessions.close()

    async def offers(self) -> Sequence[Offer]:
        usable = [one for one in await self._load() if access.may_use(self.conversation, one[0])]
        self.note = describe_unusable(usable)
        allowed = tool_policy.allowed_tools(self.conversation)
        offers = [
            self._offer(connection, tool)
            for connection, tools in usable
            if connection.state is not ConnectionState.SIGNING_IN
            for tool in tools
            if tool.is_offered
        ]
        fitting = fit([one for one in offers if tool_policy.is_tool_allowed(one.tool, allowed)])
        return [*fitting, *self.read_on] if fitting else ()

    async def find_lacking(self, *, besides: Collection[str]) -> Lacking:
        if not access.named(self.conversation):
            return NOTHING_LACKING
        known = [connection for connection, _ in await self._load()]
        return access.find_lacking(self.conversation, known, besides=besides)

    async def _load(self) -> Found:
        if self._known is None:
            self._known = await self.deps.store.read(self._read)
        return self._known

    def _read(self, tx: Tx) -> Found:
        user = self.conversation.user_id
        known = tx.connections.list(user)
        usable = access.usable(self.conversation, known)
        shown = [one.id for one in usable]
        tools = tx.connections.tools_of_all(user, shown=shown) if usable else {}
        return [(connection, tools.get(connection.id, ())) for connection in known]

    async def _call(
        self, connection: Connection, tool: ConnectionTool, arguments: Mapping[str, Any]
    ) -> ToolResult:
        """Call a tool, with the answers to what its server asked when it was called before."""
        digest = tool_policy.call_digest(ToolCall(make_tool(connection, tool), arguments))
        asked, answers, place = self.answered.get(digest), None, self.conversation
        if asked is not None:
            answers = await self.deps.store.read(
                lambda tx: inputs.load_answers(tx, self.deps, place, asked, connection)
            )
        result = await self.sessions.find(connection).call(tool, arguments, answers)
        if asked is not None and answers is not None:
            await self._forget(asked)
        if isinstance(result, ToolResult):
            return result
        return ToolResult(INPUT_NEEDED, failed=True, stop=True, input_needed=result)

    async def _forget(self, asked: QuestionId) -> None:
        place = self.conversation
        try:
            await self.deps.store.transact(lambda tx: inputs.forget(tx, place, asked))
        except StoreFailed as error:
            # The call was made, and its result must not be lost. They end with the run.
            _log.warning("input.not_forgotten", question=asked, error=str(error))

    def _offer(self, connection: Connection, tool: ConnectionTool) -> Offer:
        async def run(arguments: Mapping[str, Any]) -> ToolResult:
            return await self._call(connection, tool, arguments)

        return Offer(
            tool=make_tool(connection, tool),
            description=tool.definition.description,
            parameters=tool.definition.parameters,
            read_only=tool.read_only,
            run=run,
        )


def find_answered(items: Iterable[Item]) -> Mapping[str, QuestionId]:
    """Find the questions of servers that the items of a run answer, by the digest of the call."""
    return {
        call["digest"]: QuestionId(item.content["question_id"])
        for item in inputs.find_answers(items)
        for call in item.content.get("binds_to", {}).get("calls", ())
    }
