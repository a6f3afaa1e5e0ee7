"""Commits of runs that are ready at the same time, together in one transaction.

While a transaction is under way, further commits wait for the next one. A group has one run of a
user at most, so that no two of its runs touch the same rows. Whatever goes wrong, each of them is
then tried by itself.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import structlog

from backburner.core.run import Turn
from backburner.store.tx import Tx

MAX_GROUP_SIZE = 8
#: A transaction that takes longer holds up no other.
MAX_GROUP_WAIT_SECONDS = 0.05

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class RunCommit:
    turn: Turn
    work: Callable[[Tx], None]
    #: Nothing is locked before its conversation.
    is_simple: bool = True
    done: "asyncio.Future[None]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def settle(self, error: BaseException | None = None) -> None:
        # Nobody may be waiting for it any more.
        if self.done.done():
            return
        if error is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(error)


class CommitGroups:
    def __init__(
        self,
        *,
        together: Callable[[Sequence[RunCommit]], Awaitable[Sequence[RunCommit]]],
        alone: Callable[[RunCommit], Awaitable[None]],
    ) -> None:
        #: Commits several, and returns those that it could not lock.
        self._together = together
        self._alone = alone
        self._waiting = list[RunCommit]()
        self._tasks = set[asyncio.Task[None]]()
        #: Ends the wait for the transaction under way; None: there is none to wait for.
        self._timer: asyncio.TimerHandle | None = None

    async def commit(self, commit: RunCommit) -> None:
        if self._timer is not None:
            self._waiting.append(commit)
            await commit.done
            return
        timer = self._begin()
        try:
            await self._alone(commit)
        finally:
            self._end(timer)

    def _begin(self) -> asyncio.TimerHandle:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(MAX_GROUP_WAIT_SECONDS, self._commit_waiting)
        return self._timer

    def _end(self, timer: asyncio.TimerHandle) -> None:
        timer.cancel()
        if timer is self._timer:
            self._commit_waiting()

    def _commit_waiting(self) -> None:
        self._timer = None
        if group := self._take():
            task = asyncio.create_task(self._commit(group, self._begin()))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _take(self) -> Sequence[RunCommit]:
        """Take the commits that have waited longest, one of each user."""
        group = dict[str, RunCommit]()
        for commit in self._waiting:
            if len(group) < MAX_GROUP_SIZE:
                group.setdefault(commit.turn.user_id, commit)
        taken = list(group.values())
        self._waiting = [commit for commit in self._waiting if commit not in taken]
        return taken

    async def _commit(self, group: Sequence[RunCommit], timer: asyncio.TimerHandle) -> None:
        left = group
        try:
            if len(group) > 1:
                left = await self._together(group)
        except Exception:  # noqa: BLE001 (each of them finds out by itself)
            _log.info("commits.tried_one_by_one", runs=len(group), exc_info=True)
        for commit in group:
            if commit not in left:
                commit.settle()
        await asyncio.gather(*(self._commit_alone(commit) for commit in left))
        self._end(timer)

    async def _commit_alone(self, commit: RunCommit) -> None:
        try:
            await self._alone(commit)
        except BaseException as error:
            commit.settle(error)
            if not isinstance(error, Exception):
                raise
        else:
            commit.settle()
