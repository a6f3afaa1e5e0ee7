"""Outages of models: one row per profile for all processes, and whom they were reported to."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import (
    Integer,
    Row,
    Text,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    literal_column,
    not_,
    or_,
    select,
    text,
    tuple_,
    update,
)

from backburner.core import retry, schedule
from backburner.core.conversation import Kind
from backburner.core.ids import ConversationId, UserId
from backburner.core.retry import Outage
from backburner.core.routing import ProfileFilter
from backburner.core.run import Failure, FailureKind
from backburner.core.schedule.serialize import from_json
from backburner.ports import LateWork, OutageReport, OutageUser
from backburner.store.context import Group
from backburner.store.dialect import insert_if_absent, upsert
from backburner.store.queue import late_work, next_profiles
from backburner.store.tables import (
    PAUSED,
    conversations,
    install,
    is_queued,
    is_scheduled,
    outage_reports,
    outages,
    runs,
    users,
)

_of_profile = outages.c.profile == bindparam("of_profile")
_lock = select(outages).where(_of_profile).with_for_update()
_select_all = select(outages).order_by(outages.c.profile)
#: Another claim that has locked one is about to probe it.
_lock_due_probes = (
    select(outages.c.profile)
    .where(outages.c.until <= bindparam("now"))
    .with_for_update(skip_locked=True)
)
_select_one = select(outages).where(_of_profile)
_set_until = update(outages).where(_of_profile).values(until=bindparam("new_until"))
_now = bindparam("now", type_=outages.c.until.type)
_end_rests = (
    update(outages)
    .where(outages.c.until > _now)
    .values(
        until=_now,
        # That a probe was claimed does not count as tried.
        tried_until=case((outages.c.tried_until > _now, _now), else_=outages.c.tried_until),
    )
)
#: Not the rest after a trouble that another run has met meanwhile.
_end_probe = update(outages).where(_of_profile, outages.c.tried_until <= _now).values(until=_now)
_note_answer = update(outages).where(_of_profile).values(answered_at=_now)
_end_rest = _end_rests.where(_of_profile)
_delete_others = delete(outages).where(
    outages.c.profile.not_in(bindparam("profiles", expanding=True))
)
#: Nobody is told that a model which was removed is available again.
_forget_reports = delete(outage_reports).where(
    outage_reports.c.profile.not_in(bindparam("profiles", expanding=True))
)
_delete = delete(outages).where(_of_profile)

_was_handed_back = and_(
    runs.c.user_id == conversations.c.user_id,
    runs.c.conversation_id == conversations.c.id,
    is_queued,
    runs.c.kind == text("'background'"),
)
_is_late = and_(
    is_scheduled,
    next_profiles.uses_given(next_profiles.for_work),
    conversations.c.next_run_at <= bindparam("before"),
    # Nothing would run anyway while work is paused.
    not_(users.c.paused),
    users.c.disabled_at.is_(None),
    not_(exists().where(install.c.key == PAUSED)),
    # It waits for its own jobs, or because of its own trouble.
    not_(
        exists().where(
            _was_handed_back,
            or_(runs.c.wait_until.is_(None), runs.c.wait_until > bindparam("now")),
        )
    ),
)
_position = tuple_(conversations.c.next_run_at, conversations.c.user_id, conversations.c.id)
_select_late = (
    select(
        conversations.c.user_id,
        conversations.c.id,
        conversations.c.next_run_at,
        conversations.c.kind,
        conversations.c.run_timeout,
        conversations.c.schedule,
        users.c.resumed_at,
        select(func.coalesce(runs.c.waits_since, runs.c.wait_until))
        .where(_was_handed_back)
        .scalar_subquery()
        .label("waits_since"),
        select(runs.c.ended_at)
        .where(
            runs.c.user_id == conversations.c.user_id,
            runs.c.conversation_id == conversations.c.id,
            runs.c.kind == text("'background'"),
        )
        .order_by(runs.c.started_at.desc())
        .limit(literal_column("1", Integer))
        .scalar_subquery()
        .label("last_ended_at"),
    )
    .join(users, users.c.id == conversations.c.user_id)
    .where(_is_late)
    .order_by(conversations.c.next_run_at, conversations.c.user_id, conversations.c.id)
    .limit(bindparam("limit"))
)
_select_late_after = _select_late.where(
    _position
    > tuple_(
        bindparam("at", type_=conversations.c.next_run_at.type),
        bindparam("owner", type_=Text()),
        bindparam("which", type_=Text()),
    )
)
_find_late = _select_late.where(
    conversations.c.user_id == bindparam("owner", type_=Text()),
    conversations.c.id == bindparam("which", type_=Text()),
)
_has_ended = not_(exists().where(outages.c.profile == outage_reports.c.profile))
_select_ended = (
    select(outage_reports)
    .where(_has_ended)
    .order_by(outage_reports.c.user_id, outage_reports.c.profile)
    .limit(bindparam("limit"))
)
_report_anew = (
    update(outage_reports)
    .where(
        outage_reports.c.user_id == bindparam("owner"),
        outage_reports.c.profile == bindparam("of_profile"),
        outage_reports.c.reported_at < bindparam("told_since"),
    )
    .values(
        kind=bindparam("new_kind"),
        conversation_id=bindparam("place"),
        reported_at=bindparam("now"),
    )
)
_report_denial = (
    update(outage_reports)
    .where(
        outage_reports.c.user_id == bindparam("owner"),
        outage_reports.c.profile == bindparam("of_profile"),
        outage_reports.c.kind != FailureKind.ACCESS_DENIED.value,
    )
    .values(
        kind=FailureKind.ACCESS_DENIED.value,
        conversation_id=bindparam("place"),
        reported_at=bindparam("now"),
    )
)
_delete_report = delete(outage_reports).where(
    outage_reports.c.user_id == bindparam("owner"),
    outage_reports.c.profile == bindparam("of_profile"),
)


class Outages(Group):
    def all(self) -> Sequence[Outage]:
        return [_to_outage(row) for row in self._execute(_select_all, {})]

    def find(self, profile: str) -> Outage | None:
        row = self._execute(_select_one, {"of_profile": profile}).one_or_none()
        return None if row is None else _to_outage(row)

    def note(self, profile: str, failure: Failure, *, probed: bool) -> Outage:
        """Begin an outage of a profile, or prolong the one it has."""
        new = retry.note_trouble(None, profile, failure, probed=probed, now=self.tx.now)
        # Another process may have begun it meanwhile.
        while (row := self._execute(_lock, {"of_profile": profile}).one_or_none()) is None:
            if insert_if_absent(self.connection, outages, _to_row(new)):
                return new
        before = _to_outage(row)
        outage = retry.note_trouble(before, profile, failure, probed=probed, now=self.tx.now)
        self._save(outage)
        return outage

    def keep_trying(self, profiles: Iterable[str]) -> None:
        """Note that runs are still trying the models of these profiles."""
        for profile in sorted(profiles):
            row = self._execute(_lock, {"of_profile": profile}).one_or_none()
            if row is not None:
                self._save(retry.keep_trying(_to_outage(row), self.tx.now))

    def _save(self, outage: Outage) -> None:
        upsert(self.connection, outages, _to_row(outage))

    def end(self, profile: str) -> bool:
        """End the outage of a profile; False: it had none."""
        return self._execute(_delete, {"of_profile": profile}).rowcount == 1

    def lock_due_probes(self) -> frozenset[str]:
        """Lock the profiles that may be probed now, and that no other claim has locked."""
        return frozenset(self._execute(_lock_due_probes, {"now": self.tx.now}).scalars())

    def begin_probe(self, profile: str) -> None:
        until = self.tx.now + retry.PROBE_TIME
        self._execute(_set_until, {"of_profile": profile, "new_until": until})

    def probe_soon(self, profiles: Sequence[str]) -> None:
        """Make these profiles due for a probe, and forget others: the settings may have changed."""
        self._execute(_delete_others, {"profiles": list(profiles)})
        self._execute(_forget_reports, {"profiles": list(profiles)})
        self._execute(_end_rests, {"now": self.tx.now})

    def note_answer(self, profile: str) -> None:
        """Make a profile due for a probe at once, because its model has answered a call."""
        values = {"of_profile": profile, "now": self.tx.now}
        self._execute(_end_rest, values)
        self._execute(_note_answer, values)

    def end_probe(self, profile: str) -> None:
        """Allow another probe at once: the last one was interrupted, or did not try."""
        self._execute(_end_probe, {"of_profile": profile, "now": self.tx.now})

    def late_work(
        self,
        profiles: ProfileFilter,
        after: LateWork | None,
        *,
        before: datetime,
        limit: int,
    ) -> Sequence[LateWork]:
        """List work under these profiles that was due before a time, the longest waiting first."""
        values = {"limit": limit, **self._late(profiles, before)}
        if after is None:
            rows = self._execute(_select_late, values)
        else:
            position = {
                "at": after.due_at,
                "owner": after.user_id,
                "which": after.conversation_id,
            }
            rows = self._execute(_select_late_after, {**values, **position})
        return [_to_late_work(row) for row in rows]

    def find_late_work(self, work: LateWork, profiles: ProfileFilter) -> LateWork | None:
        values = {"owner": work.user_id, "which": work.conversation_id, "limit": 1}
        values |= self._late(profiles, work.due_at)
        row = self._execute(_find_late, values).one_or_none()
        return None if row is None else _to_late_work(row)

    def users(
        self, outage: Outage, profiles: ProfileFilter, after: str, *, before: datetime, limit: int
    ) -> Sequence[OutageUser]:
        """List users by their ids, and what the outage of a profile means to each."""
        values = {"of_profile": outage.profile, "after": after, "limit": limit}
        values["told_since"] = outage.since - retry.MAX_REPORT_AGE
        rows = self._execute(late_work.select_users, values | self._late(profiles, before))
        return [
            OutageUser(
                user_id=UserId(row.id),
                was_told=bool(row.was_told),
                was_told_of_denial=bool(row.was_told_of_denial),
                work_waits=bool(row.waits),
                is_operator=bool(row.is_operator),
            )
            for row in rows
        ]

    def longest_waiting(
        self, user: UserId, profiles: ProfileFilter, *, before: datetime
    ) -> ConversationId | None:
        """Find the conversation whose work has waited longest since before a time."""
        values = {"owner": user, "limit": 1, **self._late(profiles, before)}
        found = self._execute(late_work.longest_waiting, values).scalar()
        return None if found is None else ConversationId(found)

    def _late(self, profiles: ProfileFilter, before: datetime) -> dict[str, Any]:
        return {**next_profiles.as_parameters(profiles), "before": before, "now": self.tx.now}

    def report(
        self, report: OutageReport, *, since: datetime, again_if_denied: bool = False
    ) -> bool:
        """Record that a user is told about an outage `since` then; False: they were told already.

        `again_if_denied`: also those who were told that the model is unavailable.
        """
        row = {**asdict(report), "kind": report.kind.value, "reported_at": self.tx.now}
        if insert_if_absent(self.connection, outage_reports, row):
            return True
        values = {
            "owner": report.user_id,
            "of_profile": report.profile,
            "place": report.conversation_id,
        }
        anew = {"told_since": since - retry.MAX_REPORT_AGE, "new_kind": row["kind"]}
        if self._execute(_report_anew, {**values, **anew, "now": self.tx.now}).rowcount == 1:
            return True
        if not again_if_denied or report.kind is not FailureKind.ACCESS_DENIED:
            return False
        return self._execute(_report_denial, {**values, "now": self.tx.now}).rowcount == 1

    def take_ended(self, *, limit: int) -> Sequence[OutageReport]:
        """Delete and return reports of outages that have ended."""
        return [
            OutageReport(
                UserId(row.user_id),
                ConversationId(row.conversation_id),
                row.profile,
                FailureKind(row.kind),
            )
            for row in self._execute(_select_ended, {"limit": limit}).all()
            # Another process may be faster.
            if self._delete_report(row)
        ]

    def _delete_report(self, row: Row[Any]) -> bool:
        values = {"owner": row.user_id, "of_profile": row.profile}
        return self._execute(_delete_report, values).rowcount == 1


def _to_late_work(row: Any) -> LateWork:
    timed = row.schedule and from_json(json.loads(row.schedule))
    return LateWork(
        UserId(row.user_id),
        ConversationId(row.id),
        row.next_run_at,
        Kind(row.kind),
        row.run_timeout,
        is_recurring=timed is not None and schedule.is_recurring(timed),
        resumed_at=row.resumed_at,
        waits_since=row.waits_since,
        last_ended_at=row.last_ended_at,
    )


def _to_row(outage: Outage) -> dict[str, Any]:
    return {**asdict(outage), "kind": outage.kind.value}


def _to_outage(row: Row[tuple[object, ...]]) -> Outage:
    return Outage(
        profile=row.profile,
        kind=FailureKind(row.kind),
        message=row.message,
        since=row.since,
        until=row.until,
        tried_until=row.tried_until,
        answered_at=row.answered_at,
        probes=row.probes,
    )
