"""Delivers notices to channels, with leases and retries."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

import structlog

from backburner.actions.deps import Deps
from backburner.core.channels.push import PUSH
from backburner.core.errors import ChannelFailed, StoreFailed
from backburner.core.ids import UserId
from backburner.core.notice import point_to
from backburner.core.transitions import Step
from backburner.core.transitions.step import system_message
from backburner.ports import RUN_DEADLINE, ChannelMessage, Delivery, Tx

#: A sender that does not report back loses its part after this time.
DELIVERY_LEASE = timedelta(minutes=1)
FIRST_RETRY_DELAY, MAX_RETRY_DELAY = timedelta(seconds=5), timedelta(hours=1)
#: Seconds between attempts to record a result.
RECORD_RETRY_SECONDS = 0.5
#: About two days.
MAX_DELIVERY_ATTEMPTS = 60

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Deliverer:
    deps: Deps
    lease: timedelta = DELIVERY_LEASE
    #: Parts sent at the same time, so that a slow channel does not block the others.
    concurrency: int = 4
    #: Of these for one user, so that their slow channels do not block other users.
    per_user: int = 2
    #: Set to send nothing more.
    closed: bool = False

    async def run_once(self) -> bool:
        """Send up to `concurrency` parts; True: there were any."""
        if self.closed:
            return False
        sending = list[asyncio.Task[None]]()
        try:
            served = Counter[UserId]()
            while len(sending) < self.concurrency and (part := await self._lease(served)):
                served[part.user_id] += 1
                sending.append(asyncio.create_task(self._deliver(part)))
        finally:
            # Every send runs to its end: a cancelled one would be sent again.
            results = await asyncio.gather(*sending, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return bool(sending)

    async def _lease(self, served: Mapping[UserId, int]) -> Delivery | None:
        """Lease the next part of a user who is not served enough."""
        besides = [user for user, count in served.items() if count >= self.per_user]
        return await self.deps.store.transact(
            lambda tx: tx.deliveries.lease(lease=self.lease, besides=besides), within=RUN_DEADLINE
        )

    async def _deliver(self, part: Delivery) -> None:
        try:
            provider_id = await self._send(part)
        except ChannelFailed as error:
            await self._record_failure(part, error)
        except Exception as error:  # noqa: BLE001 (a bug in a channel is retried as well)
            _log.exception("channel.crashed", channel=part.channel)
            await self._record_failure(part, ChannelFailed(f"Unexpected error: {error!r}"))
        else:
            await self._record(lambda tx: tx.deliveries.mark_sent(part, provider_id=provider_id))

    async def _send(self, part: Delivery) -> str | None:
        channel = self.deps.channels.get(part.channel)
        if channel is None:
            raise ChannelFailed(f"The channel {part.channel!r} is not set up.", permanent=True)
        try:
            async with asyncio.timeout(self.lease.total_seconds() / 2):
                return await channel.send(self._compose(part))
        except TimeoutError:
            raise ChannelFailed(f"{part.channel} did not respond in time.") from None

    def _compose(self, part: Delivery) -> ChannelMessage:
        return ChannelMessage(
            user_id=part.user_id,
            target=part.target,
            key=part.key,
            title=part.title,
            text=part.text,
            kind=part.kind,
            notice_id=part.notice_id,
            address=part.address,
            # Parts of an earlier version have no address.
            where=point_to(part.address, self.deps.base_url) if part.address else "",
        )

    async def _record_failure(self, part: Delivery, error: ChannelFailed) -> None:
        gives_up = error.permanent or part.attempts >= MAX_DELIVERY_ATTEMPTS
        delay = max(retry_delay(part.attempts), error.retry_after or timedelta())

        def work(tx: Tx) -> bool:
            again_at = None if gives_up else tx.now + delay
            still_leased = tx.deliveries.mark_failed(part, str(error), again_at=again_at)
            # Nobody has named a browser as the place to report to.
            if gives_up and still_leased and part.channel != PUSH:
                _report_failure(tx, part, error)
            return still_leased

        await self._record(work)

    async def _record(self, work: Callable[[Tx], bool]) -> None:
        """Retry for as long as the lease lasts: a part sent but not recorded is sent again."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.lease.total_seconds()
        while True:
            try:
                await self.deps.store.transact(work, within=RUN_DEADLINE)
            except StoreFailed:
                if loop.time() + RECORD_RETRY_SECONDS > deadline:
                    raise
                await asyncio.sleep(RECORD_RETRY_SECONDS)
            else:
                return


def _report_failure(tx: Tx, part: Delivery, error: ChannelFailed) -> None:
    """Add a system message to the conversation whose notice could not be delivered."""
    conversation = tx.conversations.lock(part.user_id, part.conversation_id)
    text = f"This notice could not be delivered through {part.channel}: {error}"
    tx.conversations.save(Step(conversation=conversation, messages=(system_message(text),)))


def retry_delay(attempts: int) -> timedelta:
    """Double the delay with each attempt."""
    return min(FIRST_RETRY_DELAY * (1 << min(attempts - 1, 20)), MAX_RETRY_DELAY)
