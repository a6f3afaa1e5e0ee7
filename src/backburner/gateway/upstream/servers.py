"""Sessions with MCP servers: over HTTP, and with programs that the operator has defined."""

import logging
from collections.abc import Iterable
from datetime import timedelta

from backburner.core.errors import BadRequest
from backburner.gateway.addresses import IpNetwork
from backburner.gateway.transport import Resolve, trusted_certificates
from backburner.gateway.upstream.faults import Effect, Fault, FaultError, Faults
from backburner.gateway.upstream.guarded_http import GuardedTransport
from backburner.gateway.upstream.http_streams import check_url, checked_transport, http_streams
from backburner.gateway.upstream.limits import CONNECT_TIMEOUT, IDLE_TIMEOUT
from backburner.gateway.upstream.live_client import LiveClient
from backburner.gateway.upstream.program_streams import ProgramStreams
from backburner.gateway.upstream.redaction import Redaction
from backburner.gateway.upstream.session import DEFAULT_POLICY, RetryPolicy, UpstreamSession
from backburner.gateway.upstream.wire import Wire
from backburner.ports import Authorization, StartProgram, StdioProgram, ToolServer

#: Their lines quote what servers send; what matters of it is in our errors.
_NOISY_LOGGERS = ("client", "mcp.client", "mcp.shared")


class UpstreamServers:
    """Connects to public addresses, and to networks that the operator allows.

    `start` runs programs; None: there are none here.
    """

    def __init__(
        self,
        *,
        allow: Iterable[IpNetwork] = (),
        resolve: Resolve | None = None,
        start: StartProgram | None = None,
        policy: RetryPolicy = DEFAULT_POLICY,
        connect_timeout: timedelta = CONNECT_TIMEOUT,
        idle_timeout: timedelta = IDLE_TIMEOUT,
    ) -> None:
        self._allow = tuple(allow)
        self._resolve = resolve
        self._start = start
        self._policy = policy
        self._connect_timeout = connect_timeout
        self._idle_timeout = idle_timeout
        self._certificates = trusted_certificates()
        for name in _NOISY_LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL)

    def open(self, server: ToolServer, authorization: Authorization) -> UpstreamSession:
        def connect() -> LiveClient:
            if server.program is not None:
                return self._to_program(server.program)
            return self._to_url(server.url, authorization)

        return UpstreamSession(
            server.title, connect, policy=self._policy, connect_timeout=self._connect_timeout
        )

    def _to_url(self, text: str, authorization: Authorization) -> LiveClient:
        try:
            url = check_url(text)
        except BadRequest as error:
            why = f"cannot be used: {error.message}"
            fault = Fault(effect=Effect.ENDED, why=why, hint=error.hint)
            raise FaultError(fault) from None
        faults = Faults()
        inner = checked_transport(
            url, allow=self._allow, resolve=self._resolve, certificates=self._certificates
        )
        guard = GuardedTransport(inner, authorization, faults)
        streams = http_streams(url, guard, idle_timeout=self._idle_timeout)
        return LiveClient(Wire(streams, faults, redaction=guard.redaction), guard=guard)

    def _to_program(self, program: StdioProgram) -> LiveClient:
        if self._start is None:
            why = "cannot be used: programs are not started here."
            raise FaultError(Fault(effect=Effect.ENDED, why=why))
        redaction = Redaction()
        redaction.add_variables(program.environment)
        streams = ProgramStreams(self._start, program, redaction)
        wire = Wire(
            streams,
            Faults(),
            redaction=redaction,
            why_ended=lambda: streams.ended,
            remark=streams.remark,
        )
        return LiveClient(wire)
