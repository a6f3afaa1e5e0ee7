"""Reports outages of models: each user is told once when work waits, and once when it is over.

One-time work that has waited too long is ended. Each look reads a limited number of users and of
late work, and the next one continues where it ended.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

import structlog

from backburner.actions import steps
from backburner.actions.deps import Deps
from backburner.core import notice, retry, routing, transitions
from backburner.core.errors import NotFound
from backburner.core.ids import ConversationId, UserId, new_conversation_id
from backburner.core.notice import Notice
from backburner.core.retry import Outage, Waiting
from backburner.core.routing import ProfileFilter
from backburner.core.run import FailureKind
from backburner.core.transitions import Step
from backburner.core.transitions.step import system_message
from backburner.ports import ConversationFilter, LateWork, OutageReport, OutageUser, Tx

#: Nobody is told about an outage that keeps their work waiting for less.
MIN_LATENESS = timedelta(minutes=1)
#: Users that one look at an outage reads, and pieces of late work.
USER_BATCH, BATCH = 1000, 200
#: Of a conversation that is created because its user has none to be told in.
TITLE, END_TITLE = "Model not available", "Model available again"

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class OutageReporter:
    deps: Deps
    #: The profiles that were in an outage the last time, for the log.
    _known: frozenset[str] = frozenset()
    #: Where the last look at each outage ended, if there was more.
    _last_user: dict[str, str] = field(default_factory=dict)
    _last_work: dict[str, LateWork] = field(default_factory=dict)

    async def run_once(self) -> bool:
        outages, now = await self.deps.store.transact(lambda tx: (tx.outages.all(), tx.now))
        self._log_changes(outages)
        for outage in outages:
            await self._report(outage)
            # Without a rest after its last trouble, a profile has not been tried lately.
            if outage.tried_until > now:
                await self._end_late_work(outage)
        return await self.deps.store.transact(self._report_ends)

    def _log_changes(self, outages: Sequence[Outage]) -> None:
        now = frozenset(outage.profile for outage in outages)
        for outage in outages:
            if outage.profile not in self._known:
                _log.warning("profile.unavailable", profile=outage.profile, error=outage.message)
        for profile in sorted(self._known - now):
            _log.info("profile.available", profile=profile)
            self._last_user.pop(profile, None)
            self._last_work.pop(profile, None)
        self._known = now

    async def _report(self, outage: Outage) -> None:
        after = self._last_user.pop(outage.profile, "")
        users, now = await self.deps.store.transact(
            lambda tx: (self._list_users(tx, outage, after), tx.now)
        )
        if len(users) == USER_BATCH:
            self._last_user[outage.profile] = users[-1].user_id
        is_long = outage.since <= now - MIN_LATENESS
        for user in users:
            waits = user.work_waits and is_long and not user.was_told
            if waits or (_concerns_operator(outage, user) and not user.was_told_of_denial):
                await self.deps.store.transact(partial(self._tell, outage, user))

    async def _end_late_work(self, outage: Outage) -> None:
        after = self._last_work.pop(outage.profile, None)
        late, now = await self.deps.store.transact(
            lambda tx: (self._list_late_work(tx, outage, after), tx.now)
        )
        if len(late) == BATCH:
            self._last_work[outage.profile] = late[-1]
        for work in late:
            if self._is_too_late(work, outage, now):
                # Each by itself: it locks its parent as well.
                await self.deps.store.transact(partial(self._end_work, work, outage))

    def _list_users(self, tx: Tx, outage: Outage, after: str) -> Sequence[OutageUser]:
        before = tx.now - MIN_LATENESS
        profiles = self._profiles(outage)
        return tx.outages.users(outage, profiles, after, before=before, limit=USER_BATCH)

    def _profiles(self, outage: Outage) -> ProfileFilter:
        is_default = outage.profile == self.deps.default_profile
        names = [outage.profile, ""] if is_default else [outage.profile]
        return self.deps.after_demo.match(names)

    def _tell(self, outage: Outage, user: OutageUser, tx: Tx) -> None:
        """Tell a user in the conversation that waits longest, if one does."""
        now = tx.outages.find(outage.profile)
        if now is None or now.since > outage.since:
            # It has ended since, or another one has begun.
            return
        chosen: ConversationId | None = None
        if user.work_waits:
            before, profiles = tx.now - MIN_LATENESS, self._profiles(outage)
            chosen = tx.outages.longest_waiting(user.user_id, profiles, before=before)
            if chosen is None and not _concerns_operator(outage, user):
                # Nothing waits any more.
                return
        chosen = chosen or _find_newest(tx, user.user_id)
        new_id = new_conversation_id()
        report = OutageReport(user.user_id, chosen or new_id, outage.profile, outage.kind)
        if tx.outages.report(report, since=now.since, again_if_denied=user.is_operator):
            new = notice.of_outage(outage.message)
            self._notify(tx, user.user_id, chosen, new, new_id=new_id)

    def _list_late_work(self, tx: Tx, outage: Outage, after: LateWork | None) -> Sequence[LateWork]:
        before, profiles = tx.now - MIN_LATENESS, self._profiles(outage)
        return tx.outages.late_work(profiles, after, before=before, limit=BATCH)

    def _is_too_late(self, work: LateWork, outage: Outage, now: datetime) -> bool:
        if work.is_recurring:
            return False
        run_timeout = work.run_timeout or self.deps.limits.run_timeout
        waiting = Waiting(
            times=(work.due_at, work.waits_since, work.last_ended_at),
            not_before=(work.resumed_at,),
            limit=retry.max_outage_wait(work.kind, run_timeout),
        )
        return retry.has_waited_too_long(waiting, outage, now=now)

    def _end_work(self, work: LateWork, outage: Outage, tx: Tx) -> None:
        """End one-time work that has waited too long for its model, if it still does."""
        now = tx.outages.find(outage.profile)
        if now is None or now.tried_until <= tx.now:
            return
        try:
            conversation = tx.conversations.lock(work.user_id, work.conversation_id)
        except NotFound:
            return
        late = tx.outages.find_late_work(work, self._profiles(outage))
        if late is not None and self._is_too_late(late, now, tx.now):
            steps.save(tx, transitions.end_in_outage(conversation, now.message, now=tx.now))

    def _report_ends(self, tx: Tx) -> bool:
        ended = tx.outages.take_ended(limit=BATCH)
        for report in ended:
            place: ConversationId | None = report.conversation_id
            try:
                tx.conversations.load(report.user_id, report.conversation_id)
            except NotFound:
                # It was deleted since.
                place = _find_newest(tx, report.user_id)
            new = notice.of_outage_end()
            self._notify(tx, report.user_id, place, new, title=END_TITLE)
        return len(ended) == BATCH

    def _notify(
        self,
        tx: Tx,
        user: UserId,
        place: ConversationId | None,
        new: Notice,
        *,
        new_id: ConversationId | None = None,
        title: str = TITLE,
    ) -> None:
        """Notify a user in one of their conversations, or in a new one."""
        if place is not None:
            conversation = tx.conversations.lock(user, place)
            tx.conversations.save(Step(conversation=conversation, notices=(new,)))
            return
        chat_id = new_id or new_conversation_id()
        chat = transitions.start_chat(chat_id, user, now=tx.now).conversation
        chat = routing.assign(transitions.rename(chat, title).conversation, self.deps.routes)
        told = Step(conversation=chat, messages=(system_message(new.text),), notices=(new,))
        tx.conversations.add(told)


def _concerns_operator(outage: Outage, user: OutageUser) -> bool:
    return user.is_operator and outage.kind is FailureKind.ACCESS_DENIED


def _find_newest(tx: Tx, user: UserId) -> ConversationId | None:
    """Find the conversation that changed last, to tell a user something in."""
    page = tx.browse.conversations(user, ConversationFilter(archived=False), None, limit=1)
    return page.conversations[0].conversation.id if page.conversations else None
