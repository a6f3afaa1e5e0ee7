"""Outages on both databases: one probe at a time, and each user is told once."""

from dataclasses import replace
from datetime import timedelta

import pytest
from support.stage import make
from support.stage.make import MATE, USER
from support.stage.scene import CLAIMER, Scene

from backburner.core.run import FailureKind
from backburner.ports import Claim, LateWork, OutageReport
from backburner.store.db import Database
from backburner.store.tx import Tx

PROFILE = "one"
MINUTE = timedelta(minutes=1)
DOWN = make.failure(FailureKind.UNAVAILABLE)
CLAIMS = replace(CLAIMER, default_profile=PROFILE, per_user_limit=20)


@pytest.fixture
def scene(database: Database) -> Scene:
    return Scene(database)


def claim(tx: Tx) -> Claim | None:
    return tx.queue.claim(None, CLAIMS)


def begin_outage(scene: Scene) -> None:
    scene.database.run(lambda tx: tx.outages.note(PROFILE, DOWN, probed=False))


def end_rest(tx: Tx) -> None:
    tx.outages.probe_soon([PROFILE])


def test_nothing_is_claimed_while_a_profile_rests_and_then_one_run(scene: Scene) -> None:
    for _ in range(3):
        scene.task()
    begin_outage(scene)
    assert scene.database.run(claim) is None
    resting = scene.database.run(lambda tx: (claim(tx), tx.queue.resting)[1])
    assert set(resting) == {PROFILE, ""}

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


def test_the_agenda_leaves_out_background_work_of_resting_profiles(scene: Scene) -> None:
    scene.task()
    assert scene.database.run(lambda tx: tx.queue.agenda().work) == timedelta()
    assert scene.database.run(lambda tx: tx.queue.agenda(("", PROFILE)).work) is None
    run = scene.begin_work()
    scene.hand_back(run)
    assert scene.database.run(lambda tx: tx.queue.agenda(("", PROFILE)).work) is None
    scene.say(scene.chat())
    assert scene.database.run(lambda tx: tx.queue.agenda(("", PROFILE)).work) == timedelta()


def test_a_user_is_told_once_until_the_outage_is_over(scene: Scene) -> None:
    begin_outage(scene)
    reports = [OutageReport(user, scene.chat(user).id, PROFILE) for user in (USER, MATE)]
    for report in reports:
        assert scene.database.run(lambda tx, report=report: tx.outages.report(report))  # type: ignore[misc]
        assert not scene.database.run(lambda tx, report=report: tx.outages.report(report))  # type: ignore[misc]
    assert scene.database.run(lambda tx: tx.outages.take_ended(limit=9)) == []

    scene.database.run(lambda tx: tx.outages.end(PROFILE))

    over = scene.database.run(lambda tx: tx.outages.take_ended(limit=9))
    assert sorted(over, key=str) == sorted(reports, key=str)
    assert scene.database.run(lambda tx: tx.outages.take_ended(limit=9)) == []


def test_late_work_is_listed_page_by_page(scene: Scene) -> None:
    tasks = []
    for _ in range(5):
        tasks.append(scene.task().id)
        scene.clock.advance(MINUTE)
    before = scene.clock.now - MINUTE

    def page(after: LateWork | None) -> list[LateWork]:
        return list(
            scene.database.run(
                lambda tx: tx.outages.late_work([PROFILE, ""], after, before=before, limit=2)
            )
        )

    found, after = list[LateWork](), None
    while rows := page(after):
        found += rows
        after = rows[-1]
    assert [work.conversation_id for work in found] == tasks
    assert (
        scene.database.run(
            lambda tx: tx.outages.late_work(["another"], None, before=before, limit=2)
        )
        == []
    )


def test_outages_of_profiles_that_are_gone_are_forgotten(scene: Scene) -> None:
    begin_outage(scene)

    scene.database.run(lambda tx: tx.outages.probe_soon(["another"]))

    assert scene.database.run(lambda tx: tx.outages.all()) == []
