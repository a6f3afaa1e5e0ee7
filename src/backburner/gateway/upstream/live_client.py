"""One connection to a server, and the task that owns it: enters the client of the SDK, and waits.

The client has to be entered and left by one task, and calls come from others.
"""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from datetime import timedelta

import anyio
from mcp import Client, MCPError
from mcp.client import ClientRequestContext
from mcp_types import (
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    Implementation,
)
from pydantic import ValidationError

from backburner import __version__
from backburner.core.errors import BackburnerError, BadRequest, ProcessFailed
from backburner.gateway.upstream.call_notes import CallNotes, current_call
from backburner.gateway.upstream.definitions import clean_words
from backburner.gateway.upstream.elicitation import read_params
from backburner.gateway.upstream.faults import Effect, Fault, FaultError, fault_of_exception
from backburner.gateway.upstream.guarded_http import GuardedTransport
from backburner.gateway.upstream.limits import CLOSE_TIMEOUT, MAX_WORDS_CHARS
from backburner.gateway.upstream.wire import Wire

DISCONNECTED = Fault(effect=Effect.NONE, why="was disconnected.")
#: Words of the SDK in errors that it makes up itself. A server that says the same only makes us
#: more careful.
_BROKEN_OFF = ("Connection closed", "SSE stream")
_UNREADABLE = ("Failed to parse", "Unexpected content type", "server answered a request with 202")


class LiveClient:
    def __init__(self, wire: Wire, *, guard: GuardedTransport | None = None) -> None:
        self._wire = wire
        self._guard = guard
        self._client = Client(
            wire,
            client_info=Implementation(name="Backburner", version=__version__),
            elicitation_callback=self._elicit,
            cache=None,
        )
        self._calls = set[CallNotes]()
        self._stop = asyncio.Event()
        self._entered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._owner: asyncio.Task[None] | None = None

    @property
    def client(self) -> Client:
        return self._client

    @property
    def wire(self) -> Wire:
        return self._wire

    @property
    def is_open(self) -> bool:
        owner = self._owner
        ended = self._wire.ended or self._wire.why_ended()
        return ended is None and owner is not None and not owner.done()

    @property
    def can_sign_in(self) -> bool:
        """Whether the server was sent a sign-in."""
        return self._guard is not None and bool(self._guard.signed)

    async def sign_in_again(self) -> None:
        """Renew the sign-in. Raises as `Authorization.renew`."""
        if self._guard is not None:
            await self._guard.renew()

    async def check_sign_in(self) -> bool:
        """Find out whether the sign-in holds; return whether it was renewed.

        Raises as `Authorization.check`.
        """
        return self._guard is not None and await self._guard.check()

    async def start(self, within: timedelta) -> None:
        """Connect. Raises `FaultError`; whatever was asked for has not been done."""
        self._owner = asyncio.create_task(self._own(within))
        # One that is cancelled before it runs would tell nobody.
        self._owner.add_done_callback(lambda _: self._fail(FaultError(DISCONNECTED)))
        try:
            await asyncio.shield(self._entered)
        except asyncio.CancelledError:
            # It may be signing in, which goes on; whoever closes this waits for it.
            self.abandon()
            raise
        except Exception as error:  # noqa: BLE001 (all of them are faults)
            await self.close()
            raise FaultError(self._connect_fault(error, within)) from None

    def abandon(self) -> None:
        """Stop connecting; `close` has to follow."""
        if self._owner is not None and not self._entered.done():
            self._owner.cancel()

    async def close(self) -> None:
        """End the connection; its task, its sockets and its program are gone afterwards."""
        if (owner := self._owner) is None:
            return
        self._stop.set()
        try:
            if self._entered.done():
                await asyncio.wait([owner], timeout=CLOSE_TIMEOUT.total_seconds())
        finally:
            owner.cancel()
            await asyncio.wait([owner])
        if self._guard is not None:
            await self._guard.settle()

    @contextmanager
    def noting(self) -> Iterator[CallNotes]:
        """Collect notes during a call."""
        # Nobody can tell what a program has read of its pipe.
        notes = CallNotes(is_sent=self._guard is None)
        self._calls.add(notes)
        token = current_call.set(notes)
        try:
            yield notes
        finally:
            # It may have been cancelled, or have failed while its request goes on.
            notes.give_up()
            current_call.reset(token)
            self._calls.discard(notes)

    def fault_of(self, error: Exception) -> Fault:
        """Describe why a request has failed."""
        match _first(error):
            case FaultError(fault=fault):
                return fault
            case MCPError() as refused:
                return self._fault_of_error(refused)
            case anyio.BrokenResourceError() | anyio.ClosedResourceError() | anyio.EndOfStream():
                self._wire.note_end()
                return self._wire.ended or DISCONNECTED
            case ValidationError() | RuntimeError():
                why = "answered in a form that is not valid."
                return Fault(effect=Effect.UNKNOWN, why=why)
            case other:
                return fault_of_exception(other, connecting=False)

    def _fault_of_error(self, error: MCPError) -> Fault:
        if kept := self._wire.faults.take(error.data):
            return kept
        if error.message.startswith(_BROKEN_OFF):
            return self._wire.ended or Fault(effect=Effect.UNKNOWN, why="broke off its answer.")
        if error.message.startswith(_UNREADABLE):
            return Fault(effect=Effect.UNKNOWN, why="answered in a form that is not valid.")
        said = clean_words(error.message, limit=MAX_WORDS_CHARS)
        return Fault(effect=Effect.ANSWERED, why=f"reported the error {error.code}.", said=said)

    def _connect_fault(self, error: Exception, within: timedelta) -> Fault:
        first = _first(error)
        if isinstance(first, TimeoutError):
            why = f"did not answer within {within.total_seconds():g} seconds."
            fault = Fault(effect=Effect.NONE, why=why, hint=self._wire.remark(), once=True)
        elif isinstance(first, ProcessFailed):
            effect = Effect.ENDED if first.permanent else Effect.NONE
            fault = Fault(effect=effect, why=f"was not started: {first.message}", hint=first.hint)
        else:
            fault = self.fault_of(first)
        match fault.effect:
            case Effect.UNKNOWN:
                return replace(fault, effect=Effect.NONE)
            case Effect.ANSWERED:
                return replace(fault, effect=Effect.ENDED)
            case _:
                return fault

    async def _own(self, within: timedelta) -> None:
        entered = self._entered
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(within.total_seconds()):
                    await stack.enter_async_context(self._client)
                entered.set_result(None)
                await self._stop.wait()
        except asyncio.CancelledError:
            self._fail(FaultError(DISCONNECTED))
            raise
        except Exception as error:  # noqa: BLE001 (whoever waits for it gets it)
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        if not self._entered.done():
            self._entered.set_exception(error)
            # Nobody may be waiting for it any more.
            self._entered.exception()
        elif self._wire.ended is None:
            why = "broke off the connection."
            self._wire.ended = Fault(effect=Effect.UNKNOWN, why=why, reopen=True)

    async def _elicit(
        self,
        context: ClientRequestContext,
        params: ElicitRequestFormParams | ElicitRequestURLParams,
    ) -> ElicitResult:
        """Answer a question in the middle of a call, for which nobody can wait in this revision."""
        try:
            request = read_params("", params)
        except BadRequest as error:
            self._note(error.message)
            return ElicitResult(action="decline")
        asked = f"{request.message} ({request.url})" if request.url else request.message
        version = context.session.protocol_version or "its protocol"
        self._note(
            f"The server asked the user: {asked!r}. Its revision of MCP ({version}) does not allow"
            " to wait for an answer, so it was told that the user has cancelled."
        )
        return ElicitResult(action="cancel")

    def _note(self, text: str) -> None:
        notes = current_call.get()
        for call in [notes] if notes in self._calls else self._calls:
            call.texts.append(text)


def _first(error: BaseException) -> Exception:
    """Return what tells most of a group of errors."""
    found = list(_leaves([error]))
    for kind in (FaultError, BackburnerError, MCPError, Exception):
        for each in found:
            if isinstance(each, kind):
                return each
    return RuntimeError("cancelled")


def _leaves(errors: Iterable[BaseException]) -> Iterator[BaseException]:
    for error in errors:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error.exceptions)
        else:
            yield error
