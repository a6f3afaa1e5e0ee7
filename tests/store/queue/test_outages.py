"""Outages on both databases: one probe at a time, and each user is told once."""

from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

import pytest
from sqlalchemy import text
from support.cases.large_data import multiply
from support.stage import make
from support.stage.make import MATE, NOON, USER
from support.stage.scene import CLAIMER, Scene
from support.statements import scans, watched

from backburner.core import retry
from backburner.core.ids import UserId
from backburner.core.routing import AfterDemo, ProfileFilter, Routes
from backburner.core.run import FailureKind
from backburner.core.transitions import Step
from backburner.ports import Claim, LateWork, OutageReport
from backburner.store import tables
from backburner.store.db import Database
from backburner.store.dialect import is_sqlite
from backburner.store.queue.outages import Outages
from backburner.store.tx import Tx

PROFILE = "one"
OURS = ProfileFilter((PROFILE, ""))
MINUTE = timedelta(minutes=1)
DOWN = make.failure(FailureKind.UNAVAILABLE)
OUTAGE = retry.note_trouble(None, PROFILE, DOWN, probed=True, now=NOON)
CLAIMS = replace(CLAIMER, default_profile=PROFILE, per_user_limit=20)


@pytest.fixture
def scene(database: Database) -> Scene:
    return Scene(database)


def claim(tx: Tx) -> Claim | None:
    return next(iter(tx.queue.claim(None, CLAIMS)), None)


def begin_outage(scene: Scene) -> None:
    scene.database.run(lambda tx: tx.outages.note(PROFILE, DOWN, probed=False))


def end_rest(tx: Tx) -> None:
    tx.outages.probe_soon([PROFILE])


def test_nothing_is_claimed_while_a_profile_rests_and_then_one_run(scene: Scene) -> None:
    for _ in range(3):
        scene.task()
    begin_outage(scene)
    assert scene.database.run(claim) is None
    delays = scene.database.run(lambda tx: (claim(tx), tx.queue.probe_delays)[1])
    assert set(delays) == {PROFILE, ""}

    scene.database.run(end_rest)
    probe = scene.database.run(claim)

    assert probe is not None
    assert (probe.is_probe, probe.in_outage) == (True, True)
    assert scene.database.run(claim) is None

    assert scene.database.run(lambda tx: tx.outages.end(PROFILE))
    after = scene.database.run(claim)
    assert after is not None
    assert (after.is_probe, after.in_outage) == (False, False)


def test_two_claims_at_once_are_not_both_probes(postgres: Database) -> None:
    scene = Scene(postgres)
    for _ in range(3):
        scene.task()
    begin_outage(scene)
    postgres.run(end_rest)

    def claim_while_another_does(tx: Tx) -> tuple[Claim | None, Claim | None]:
        first = claim(tx)
        # In a transaction of its own, before this one has committed.
        return first, postgres.run(claim)

    first, second = postgres.run(claim_while_another_does)

    assert first is not None
    assert second is None


def test_a_claim_for_replies_only_leaves_probes_to_others(postgres: Database) -> None:
    scene = Scene(postgres)
    scene.task()
    begin_outage(scene)

    def claim_reply(tx: Tx) -> Claim | None:
        assert not tx.queue.claim(CLAIMS, None)
        assert set(tx.queue.probe_delays) == {PROFILE, ""}
        # In a transaction of its own, before this one has committed.
        return postgres.run(claim)

    assert postgres.run(claim_reply) is None
    postgres.run(end_rest)
    probe = postgres.run(claim_reply)
    assert probe is not None
    assert probe.is_probe


def test_the_agenda_leaves_out_background_work_of_profiles_in_an_outage(scene: Scene) -> None:
    scene.task()
    assert scene.database.run(lambda tx: tx.queue.agenda().work) == timedelta()
    assert scene.database.run(lambda tx: tx.queue.agenda(without=OURS).work) is None
    run = scene.begin_work()
    scene.hand_back(run)
    assert scene.database.run(lambda tx: tx.queue.agenda(without=OURS).work) is None
    scene.say(scene.chat())
    assert scene.database.run(lambda tx: tx.queue.agenda(without=OURS).work) == timedelta()


def test_a_user_is_told_once_until_the_outage_is_over(scene: Scene) -> None:
    begin_outage(scene)
    reports = [OutageReport(user, scene.chat(user).id, PROFILE) for user in (USER, MATE)]
    for report in reports:
        tell = partial(Outages.report, report=report, since=NOON)
        assert scene.database.run(lambda tx, tell=tell: tell(tx.outages))  # type: ignore[misc]
        assert not scene.database.run(lambda tx, tell=tell: tell(tx.outages))  # type: ignore[misc]
    assert scene.database.run(lambda tx: tx.outages.take_ended(limit=9)) == []

    scene.database.run(lambda tx: tx.outages.end(PROFILE))

    over = scene.database.run(lambda tx: tx.outages.take_ended(limit=9))
    assert sorted(over, key=str) == sorted(reports, key=str)
    assert scene.database.run(lambda tx: tx.outages.take_ended(limit=9)) == []


def test_a_refusal_is_reported_again_only_if_asked_for(scene: Scene) -> None:
    begin_outage(scene)
    report = OutageReport(USER, scene.chat().id, PROFILE)
    denial = replace(report, kind=FailureKind.ACCESS_DENIED)

    def tell(of: OutageReport, *, again: bool) -> bool:
        return scene.database.run(
            lambda tx: tx.outages.report(of, since=NOON, again_if_denied=again)
        )

    assert tell(report, again=True)
    assert not tell(denial, again=False)
    assert tell(denial, again=True)
    assert not tell(denial, again=True)


@pytest.mark.parametrize("rests", [True, False])
def test_the_end_of_a_rest_does_not_make_a_model_tried(scene: Scene, *, rests: bool) -> None:
    scene.task()
    scene.run(lambda tx: tx.outages.note(PROFILE, DOWN, probed=True))
    (outage,) = scene.run(lambda tx: tx.outages.all())
    tried_until = scene.clock.now if rests else outage.until
    if not rests:
        scene.clock.advance(30 * MINUTE)
        scene.run(lambda tx: Outages(tx).begin_probe(PROFILE))

    # Another process starts, or the model has answered.
    scene.run(end_rest)
    scene.run(lambda tx: tx.outages.note_answer(PROFILE))

    (after,) = scene.run(lambda tx: tx.outages.all())
    assert (after.until, after.tried_until) == (scene.clock.now, tried_until)


def test_a_model_counts_as_tried_while_a_run_tries_it(scene: Scene) -> None:
    scene.run(lambda tx: tx.outages.note(PROFILE, DOWN, probed=True))
    (before,) = scene.run(lambda tx: tx.outages.all())
    for _ in range(9):
        scene.clock.advance(MINUTE)
        scene.run(lambda tx: tx.outages.keep_trying({PROFILE, "without an outage"}))

    (after,) = scene.run(lambda tx: tx.outages.all())

    assert after == replace(before, tried_until=scene.clock.now)


def test_a_user_who_was_told_a_week_before_an_outage_is_told_of_it(scene: Scene) -> None:
    begin_outage(scene)
    told_at = scene.clock.now
    report = OutageReport(USER, scene.chat().id, PROFILE)

    def tell(since: datetime) -> bool:
        return scene.run(lambda tx: tx.outages.report(report, since=since))

    assert tell(told_at)
    assert not tell(told_at + retry.MAX_REPORT_AGE)
    scene.clock.advance(2 * retry.MAX_REPORT_AGE)
    assert tell(scene.clock.now)
    assert not tell(scene.clock.now)


def test_an_interrupted_probe_makes_room_but_ends_no_rest(scene: Scene) -> None:
    def interrupt() -> timedelta:
        scene.run(lambda tx: tx.outages.end_probe(PROFILE))
        (outage,) = scene.run(lambda tx: tx.outages.all())
        return outage.until - scene.clock.now

    scene.run(lambda tx: tx.outages.note(PROFILE, DOWN, probed=True))
    assert interrupt() == retry.FIRST_REST
    scene.clock.advance(retry.FIRST_REST)
    scene.run(lambda tx: Outages(tx).begin_probe(PROFILE))
    assert interrupt() == timedelta()


def test_late_work_is_listed_page_by_page(scene: Scene) -> None:
    tasks = []
    for _ in range(5):
        tasks.append(scene.task().id)
        scene.clock.advance(MINUTE)
    before = scene.clock.now - MINUTE

    def page(after: LateWork | None) -> list[LateWork]:
        return list(
            scene.database.run(lambda tx: tx.outages.late_work(OURS, after, before=before, limit=2))
        )

    found, after = list[LateWork](), None
    while rows := page(after):
        found += rows
        after = rows[-1]
    assert [work.conversation_id for work in found] == tasks
    assert (
        scene.database.run(
            lambda tx: tx.outages.late_work(
                ProfileFilter(("another",)), None, before=before, limit=2
            )
        )
        == []
    )


def test_work_that_waits_for_something_else_is_not_late(scene: Scene) -> None:
    task, blocked = scene.task(), scene.task()
    runs = {run.turn.conversation_id: run for run in (scene.begin_work(), scene.begin_work())}
    scene.hand_back(runs[task.id])
    # As if it waited for its jobs.
    scene.hand_back(runs[blocked.id], after=5 * MINUTE)
    scene.clock.advance(2 * MINUTE)

    late = scene.run(lambda tx: tx.outages.late_work(OURS, None, before=tx.now - MINUTE, limit=9))

    assert [work.conversation_id for work in late] == [task.id]


def test_work_that_would_leave_the_demo_for_a_model_in_an_outage_is_late(scene: Scene) -> None:
    task = scene.task()
    scene.change(task, lambda found: Step(conversation=replace(found, profile="demo")))
    scene.clock.advance(2 * MINUTE)
    before = scene.clock.now - MINUTE

    for routes, late in (
        (Routes(chat=PROFILE), True),
        (Routes(chat=PROFILE, background="another"), False),
    ):
        profiles = AfterDemo(demos=frozenset({"demo"}), routes=routes).match(OURS.profiles)
        looks = (
            partial(Outages.late_work, profiles=profiles, after=None, before=before, limit=9),
            partial(Outages.longest_waiting, user=USER, profiles=profiles, before=before),
        )
        for look in looks:
            found = scene.run(lambda tx, look=look: look(tx.outages))  # type: ignore[misc]
            assert bool(found) is late
        (user,) = scene.run(
            lambda tx, profiles=profiles: tx.outages.users(  # type: ignore[misc]
                OUTAGE, profiles, "", before=before, limit=9
            )
        )
        assert user.work_waits is late


def test_users_are_listed_page_by_page_and_their_work_is_looked_at_until_they_are_told(
    scene: Scene,
) -> None:
    waiting, told, idle = (UserId(f"u_{number}") for number in (1, 2, 3))
    work = {user: scene.task(user=user).id for user in (waiting, told)}
    scene.user(idle)
    scene.clock.advance(2 * MINUTE)
    before = scene.clock.now - MINUTE
    report = OutageReport(told, work[told], PROFILE)
    scene.database.run(lambda tx: tx.outages.report(report, since=NOON))

    def page(after: UserId, limit: int) -> list[tuple[UserId, bool, bool]]:
        users = scene.database.run(
            lambda tx: tx.outages.users(OUTAGE, OURS, after, before=before, limit=limit)
        )
        return [(user.user_id, user.was_told, user.work_waits) for user in users]

    assert page(UserId(""), 2) == [(waiting, False, True), (told, True, False)]
    assert page(told, 2) == [(idle, False, False)]
    for user, found in ((waiting, work[waiting]), (idle, None)):
        longest = partial(Outages.longest_waiting, user=user, profiles=OURS, before=before)
        assert scene.database.run(lambda tx, longest=longest: longest(tx.outages)) == found  # type: ignore[misc]


def test_a_look_at_an_outage_walks_indexes(scene: Scene) -> None:
    scene.task()
    scene.finish(scene.begin_work())
    task = scene.task()
    scene.say(scene.chat())
    scene.clock.advance(2 * MINUTE)
    begin_outage(scene)
    before = scene.clock.now - MINUTE
    profiles = AfterDemo(demos=frozenset({"demo"}), routes=Routes(chat=PROFILE)).match(
        OURS.profiles
    )

    def crowd(tx: Tx) -> None:
        due_at = f"(SELECT next_run_at FROM conversations WHERE id = '{task.id}')"  # noqa: S608
        apart = "n" if is_sqlite(scene.database.engine) else "n * interval '1 microsecond'"
        late = {"status": "'background'", "next_run_at": f"{due_at} - {apart}"}
        many = [
            {"id": f"u_{number}", "served_at": tx.now, "created_at": tx.now}
            for number in range(3000)
        ]
        tx.connection.execute(tables.users.insert(), many)
        multiply(tx.connection, tables.conversations, USER, 3000, **late)
        multiply(tx.connection, tables.conversations, USER, 2999, **late, user_id="'u_' || n")
        multiply(tx.connection, tables.runs, USER, 3000)
        multiply(tx.connection, tables.inbox, USER, 3000, served_at="t.arrived_at")
        told = {
            "profile": PROFILE,
            "conversation_id": task.id,
            "reported_at": tx.now,
            "kind": DOWN.kind.value,
        }
        reports = [{"user_id": user["id"], **told} for user in many]
        tx.connection.execute(tables.outage_reports.insert(), reports)
        if not is_sqlite(scene.database.engine):
            tx.connection.execute(text("ANALYZE"))

    scene.run(crowd)
    looks = (
        lambda tx: tx.outages.users(OUTAGE, profiles, UserId(""), before=before, limit=200),
        lambda tx: tx.outages.longest_waiting(USER, profiles, before=before),
        lambda tx: tx.outages.late_work(profiles, None, before=before, limit=200),
    )
    for look in looks:
        with watched(scene.database) as seen:
            assert scene.database.run(look)
        # One more asks for the time.
        assert len(seen) <= 2
        for statement, values in seen:
            # The settings of the install are a few rows.
            found = set(scans(scene.database, statement, values)) - {"install"}
            assert found == set(), statement


def test_outages_of_profiles_that_are_gone_are_forgotten(scene: Scene) -> None:
    begin_outage(scene)

    scene.database.run(lambda tx: tx.outages.probe_soon(["another"]))

    assert scene.database.run(lambda tx: tx.outages.all()) == []
