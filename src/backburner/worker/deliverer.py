"""Sends what is to be sent, apart from the runs it comes from."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import structlog

from backburner.actions.deps import Deps
from backburner.core.errors import ChannelFailed, StoreFailed
from backburner.core.transitions import Step
from backburner.core.transitions.step import system_message
from backburner.ports import Delivery, Tx

#: How long a part stays with a sender that has gone silent.
DELIVERY_LEASE = timedelta(minutes=1)
FIRST_RETRY_DELAY, MAX_RETRY_DELAY = timedelta(seconds=5), timedelta(hours=1)
#: Between two tries to write down what became of a part, in seconds.
RECORD_RETRY_SECONDS = 0.5
#: After about two days of trying.
MAX_DELIVERY_ATTEMPTS = 60

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Deliverer:
    deps: Deps
    lease: timedelta = DELIVERY_LEASE
    #: As many are under way at the same time: one that is slow holds up no other.
    concurrency: int = 4

    async def run_once(self) -> bool:
        """Send some parts, each for itself; say whether there were any."""
        sending = [self._deliver() for _ in range(self.concurrency)]
        # To the end, whatever becomes of the others: what is cut off would be sent again.
        ended = await asyncio.gather(*sending, return_exceptions=True)
        for error in ended:
            if isinstance(error, BaseException):
                raise error
        return any(ended)

    async def _deliver(self) -> bool:
        part = await self.deps.store.transact(lambda tx: tx.deliveries.lease(lease=self.lease))
        if part is None:
            return False
        try:
            provider_id = await self._send(part)
        except ChannelFailed as error:
            await self._put_back(part, error)
        except Exception as error:  # noqa: BLE001 (whatever it was, it is tried again)
            _log.exception("channel.crashed", channel=part.channel)
            await self._put_back(part, ChannelFailed(f"Something unexpected: {error!r}"))
        else:
            await self._write_down(
                lambda tx: tx.deliveries.mark_sent(part, provider_id=provider_id)
            )
        return True

    async def _send(self, part: Delivery) -> str | None:
        channel = self.deps.channels.get(part.channel)
        if channel is None:
            raise ChannelFailed(f"There is no channel {part.channel!r} here.", permanent=True)
        try:
            async with asyncio.timeout(self.lease.total_seconds() / 2):
                return await channel.send(part.target, part.text, key=part.key)
        except TimeoutError:
            raise ChannelFailed(f"{part.channel} does not answer.") from None

    async def _put_back(self, part: Delivery, error: ChannelFailed) -> None:
        gives_up = error.permanent or part.attempts >= MAX_DELIVERY_ATTEMPTS
        pause = max(retry_delay(part.attempts), error.retry_after or timedelta())

        def work(tx: Tx) -> bool:
            again_at = None if gives_up else tx.now + pause
            is_ours = tx.deliveries.mark_failed(part, str(error), again_at=again_at)
            if gives_up and is_ours:
                _report_failure(tx, part, error)
            return is_ours

        await self._write_down(work)

    async def _write_down(self, what: Callable[[Tx], bool]) -> None:
        """Insist while the part is ours: what was sent and not written down is sent again."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self.lease.total_seconds()
        while True:
            try:
                await self.deps.store.transact(what)
            except StoreFailed:
                if loop.time() + RECORD_RETRY_SECONDS > until:
                    raise
                await asyncio.sleep(RECORD_RETRY_SECONDS)
            else:
                return


def _report_failure(tx: Tx, part: Delivery, error: ChannelFailed) -> None:
    """Say in the conversation that something of it reached nobody."""
    found = tx.conversations.lock(part.user_id, part.conversation_id)
    text = f"This could not be told through {part.channel}: {error}"
    tx.conversations.save(Step(conversation=found, messages=(system_message(text),)))


def retry_delay(attempts: int) -> timedelta:
    """Wait twice as long each time."""
    return min(FIRST_RETRY_DELAY * (1 << min(attempts - 1, 20)), MAX_RETRY_DELAY)
