"""A session with one server, for one run: calls, retries, and what a failed call means."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from time import monotonic
from typing import Any, NoReturn, TypeVar

import structlog
from mcp import MCPError
from mcp_types import (
    HEADER_MISMATCH,
    URL_ELICITATION_REQUIRED,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    InputRequiredResult,
    PaginatedRequestParams,
)
from pydantic import TypeAdapter

from backburner.core.connections.connection import CALL_TIMEOUT
from backburner.core.connections.inputs.input_request import InputAnswers, InputNeeded
from backburner.core.errors import (
    BadRequest,
    CallInDoubt,
    ConnectionFailed,
    MachineFailed,
    SignedOut,
)
from backburner.gateway.upstream.call_notes import CallNotes
from backburner.gateway.upstream.definitions import ToolCollection
from backburner.gateway.upstream.elicitation import read_input_needed, read_urls, write_answers
from backburner.gateway.upstream.faults import Effect, Fault, FaultError, signed_out, to_error
from backburner.gateway.upstream.hidden_auth import Refusal, find_refusal
from backburner.gateway.upstream.limits import (
    CONNECT_TIMEOUT,
    LIST_TIMEOUT,
    MAX_ROUNDS,
    MAX_TOOL_PAGES,
    ROUND_SECONDS,
)
from backburner.gateway.upstream.live_client import LiveClient
from backburner.gateway.upstream.results import to_tool_result
from backburner.ports import ToolList, ToolResult

T = TypeVar("T")
_log = structlog.get_logger(__name__)
_Result = ToolResult | InputNeeded
_Attempt = Callable[[LiveClient], Awaitable[tuple[_Result, Refusal]]]
_Outcome = TypeAdapter[CallToolResult | InputRequiredResult](CallToolResult | InputRequiredResult)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Retries with exponential backoff. Tests give a clock and chance of their own."""

    retries: int = 3
    first_delay: timedelta = timedelta(seconds=0.5)
    max_delay: timedelta = timedelta(seconds=10)
    #: A server that wants us to wait longer is left alone in this run.
    max_retry_after: timedelta = timedelta(seconds=30)
    #: After a server could not be reached, for which no further call is attempted.
    rest: timedelta = timedelta(minutes=1)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    chance: Callable[[], float] = random.random
    clock: Callable[[], float] = monotonic

    def delay(self, retry: int, retry_after: timedelta | None) -> float | None:
        """Return the seconds before a retry, the first being 0; None: there is none."""
        if retry >= self.retries or (retry_after or timedelta()) > self.max_retry_after:
            return None
        backoff = min(self.first_delay * 2**retry, self.max_delay)
        # Between half of it and all of it: those that failed together do not come back together.
        jittered: float = backoff.total_seconds() * (1 + self.chance()) / 2
        return max(jittered, (retry_after or timedelta()).total_seconds())


DEFAULT_POLICY = RetryPolicy()
SIGNED_IN_AGAIN = "[The sign-in was renewed. The call was not repeated.]"
SIGN_IN_ENDED = "[The sign-in has ended. The call was not repeated.]"


class _Answered(Exception):
    """The server has dealt with the request, if not as wished."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.why)
        self.fault = fault


class UpstreamSession:
    """Connects when it is used; `connect` makes a connection that is not started yet."""

    def __init__(
        self,
        title: str,
        connect: Callable[[], LiveClient],
        *,
        policy: RetryPolicy = DEFAULT_POLICY,
        connect_timeout: timedelta = CONNECT_TIMEOUT,
    ) -> None:
        self._title = title
        self._connect = connect
        self._policy = policy
        self._connect_timeout = connect_timeout
        self._live: LiveClient | None = None
        self._connecting = asyncio.Lock()
        self._listing = asyncio.Lock()
        #: Raised for every further call; until a time, if one is set.
        self._ended: tuple[Exception, float | None] | None = None
        self._tools_changed = False
        self._renewed_for_result = False
        self._looked_into = False
        self._closed = False

    @property
    def tools_changed(self) -> bool:
        return self._tools_changed or (self._live is not None and self._live.wire.tools_changed)

    async def list_tools(self) -> ToolList:
        async def attempt(live: LiveClient) -> ToolList:
            return await _limited(live, LIST_TIMEOUT, self._list(live))

        try:
            return await self._retrying(attempt, repeatable=True)
        except _Answered as answered:
            raise to_error(self._title, answered.fault) from None

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        repeatable: bool = False,
        within: timedelta = CALL_TIMEOUT,
        answers: InputAnswers | None = None,
    ) -> ToolResult | InputNeeded:
        params = CallToolRequestParams(
            name=name,
            arguments=dict(arguments),
            input_responses=write_answers(answers) if answers else None,
            request_state=answers.state if answers else None,
        )

        async def attempt(live: LiveClient) -> tuple[_Result, Refusal]:
            with live.noting() as notes:
                request = self._call(live, params, notes)
                result = await _limited(live, within, request, notes)
            if isinstance(result, ToolResult) and live.can_sign_in:
                return result, find_refusal(result, arguments)
            return result, Refusal.NONE

        try:
            return await self._call_signed_in(attempt, repeatable=repeatable)
        except _Answered as answered:
            # It could not even be asked: it has refused to begin a session, for example.
            return self._tell(answered.fault)

    async def _call_signed_in(self, attempt: _Attempt, *, repeatable: bool) -> _Result:
        """Make a call; if its result is a refused sign-in, renew that."""
        result, refusal = await self._retrying(attempt, repeatable=repeatable)
        if refusal is Refusal.POSSIBLE and (note := await self._look_into(repeatable=repeatable)):
            if not repeatable:
                return _with_note(result, note)
            result, refusal = await self._retrying(attempt, repeatable=repeatable)
        if refusal is Refusal.CERTAIN and not self._renewed_for_result:
            self._renewed_for_result = True
            await self._sign_in_again()
            if not repeatable:
                # The tool has run, and may have done something before it was refused.
                return _with_note(result, SIGNED_IN_AGAIN)
            result, refusal = await self._retrying(attempt, repeatable=repeatable)
        if refusal is Refusal.CERTAIN:
            self._raise(signed_out("refused our sign-in"))
        self._renewed_for_result = False
        return result

    async def close(self) -> None:
        self._closed = True
        if self._live is not None:
            # Whoever waits for it holds the lock.
            self._live.abandon()
        async with self._connecting:
            await self._drop()

    async def _retrying(
        self, attempt: Callable[[LiveClient], Awaitable[T]], *, repeatable: bool
    ) -> T:
        retry = 0
        while True:
            self._check_ended()
            try:
                return await attempt(await self._connected())
            except FaultError as error:
                fault = error.fault
            if fault.effect is Effect.ANSWERED:
                raise _Answered(fault)
            if fault.effect is Effect.UNKNOWN and not repeatable:
                raise CallInDoubt(
                    f"{self._title} {fault.why} It is not known whether the call was made."
                )
            delay = None
            if fault.effect is not Effect.ENDED and not fault.once:
                delay = self._policy.delay(retry, fault.retry_after)
            if delay is None:
                self._raise(fault)
            retry += 1
            _log.info("connection.retried", server=self._title, reason=fault.why, retry=retry)
            await self._policy.sleep(delay)

    async def _connected(self) -> LiveClient:
        async with self._connecting:
            if self._closed:
                raise ConnectionFailed(f"The session with {self._title} is closed.")
            if self._live is None or not self._live.is_open:
                await self._drop()
                self._live = self._connect()
                await self._live.start(self._connect_timeout)
            return self._live

    async def _drop(self) -> None:
        self._tools_changed = self.tools_changed
        live, self._live = self._live, None
        if live is not None:
            await live.close()

    async def _list(self, live: LiveClient) -> ToolList:
        async with self._listing:
            collection = live.wire.collection = ToolCollection()
            self._tools_changed = live.wire.tools_changed = False
            cursor = None
            for _ in range(MAX_TOOL_PAGES):
                known = len(collection.tools)
                page = await live.client.session.list_tools(
                    params=PaginatedRequestParams(cursor=cursor)
                )
                live.wire.note_accepted(page, [tool.name for tool in collection.tools[known:]])
                if not page.next_cursor or page.next_cursor == cursor or collection.is_full:
                    break
                cursor = page.next_cursor
            return collection.to_list()

    async def _call(
        self, live: LiveClient, params: CallToolRequestParams, notes: CallNotes
    ) -> ToolResult | InputNeeded:
        for _ in range(MAX_ROUNDS):
            try:
                outcome = await self._request(live, params)
            except MCPError as error:
                return self._read_error(live, error, tuple(notes.texts))
            if isinstance(outcome, CallToolResult):
                return to_tool_result(live.wire.take(outcome.meta) or {}, tuple(notes.texts))
            if outcome.input_requests:
                try:
                    return read_input_needed(outcome)
                except BadRequest as error:
                    return ToolResult(error.message, failed=True)
            # It wants nothing but to be asked again.
            params = params.model_copy(
                update={"request_state": outcome.request_state, "input_responses": None}
            )
            await self._policy.sleep(ROUND_SECONDS)
        return ToolResult(f"{self._title} wanted to be asked again too often.", failed=True)

    async def _request(
        self, live: LiveClient, params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        # Not `call_tool`: it may list tools after a call that was made, and lose the result.
        session, request = live.client.session, CallToolRequest(params=params)
        try:
            return await session.send_request(request, _Outcome)
        except MCPError as error:
            if error.code != HEADER_MISMATCH:
                raise
        # The server wants arguments in headers, which the SDK knows when it has listed the tools.
        await self._list(live)
        return await session.send_request(request, _Outcome)

    def _read_error(
        self, live: LiveClient, error: MCPError, notes: tuple[str, ...]
    ) -> ToolResult | InputNeeded:
        """Read a JSON-RPC error: one of the server is a failed result, others are faults."""
        if error.code == URL_ELICITATION_REQUIRED:
            try:
                if (needed := read_urls(error.data)) is not None:
                    return needed
            except BadRequest as refused:
                return ToolResult(refused.message, failed=True)
        fault = live.fault_of(error)
        if fault.effect is not Effect.ANSWERED:
            raise FaultError(fault)
        return self._tell(fault, notes)

    def _tell(self, fault: Fault, notes: Sequence[str] = ()) -> ToolResult:
        # The words of a server alone, so that a refused sign-in is recognised by them.
        text = fault.said or f"{self._title} {fault.why} {fault.hint}".strip()
        told = "\n".join([text, *(f"[{note}]" for note in notes)])
        return ToolResult(told, failed=True, outside=bool(fault.said or notes))

    async def _look_into(self, *, repeatable: bool) -> str:
        """Look into the sign-in once, for a result that may refuse it; return what has changed.

        The result of a call that must not be repeated is not given up for that.
        """
        if self._looked_into:
            return ""
        self._looked_into = True
        try:
            live = await self._connected()
            return SIGNED_IN_AGAIN if await live.check_sign_in() else ""
        except SignedOut as error:
            self._remember(error)
            if repeatable:
                raise
            return SIGN_IN_ENDED
        except (FaultError, MachineFailed):
            # Nobody knows: then the result is what it is.
            return ""

    async def _sign_in_again(self) -> None:
        async def attempt(live: LiveClient) -> None:
            await _limited(live, CALL_TIMEOUT, live.sign_in_again())

        await self._retrying(attempt, repeatable=True)

    def _raise(self, fault: Fault) -> NoReturn:
        error = to_error(self._title, fault)
        self._remember(error)
        raise error

    def _remember(self, error: Exception) -> None:
        """Raise this for further calls too: an agent may try again and again."""
        if isinstance(error, SignedOut) and error.scopes:
            # Other tools may need no more than the sign-in has.
            return
        if isinstance(error, SignedOut) or (isinstance(error, MachineFailed) and error.permanent):
            self._ended = error, None
        elif isinstance(error, ConnectionFailed):
            self._ended = error, self._policy.clock() + self._policy.rest.total_seconds()

    def _check_ended(self) -> None:
        if self._ended is None:
            return
        error, until = self._ended
        if until is None or self._policy.clock() < until:
            raise error.with_traceback(None)
        self._ended = None


def _with_note(result: ToolResult | InputNeeded, note: str) -> ToolResult | InputNeeded:
    if not isinstance(result, ToolResult):
        return result
    return replace(result, text=f"{result.text}\n{note}")


async def _limited(
    live: LiveClient, within: timedelta, request: Awaitable[T], notes: CallNotes | None = None
) -> T:
    seconds = within.total_seconds()
    try:
        async with asyncio.timeout(seconds):
            return await request
    except TimeoutError:
        if notes is not None and not notes.give_up():
            # Its sign-in is being renewed, or messages before it are not taken.
            why = f"was not asked within {seconds:g} seconds, so the call was not made."
            raise FaultError(Fault(effect=Effect.NONE, why=why, once=True)) from None
        why = f"did not answer within {seconds:g} seconds."
        raise FaultError(Fault(effect=Effect.UNKNOWN, why=why)) from None
    except Exception as error:  # noqa: BLE001 (all of them are faults)
        fault = live.fault_of(error)
        if fault.reopen and live.wire.ended is None:
            live.wire.ended = fault
        raise FaultError(fault) from None
