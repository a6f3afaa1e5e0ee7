"""A commit takes place once or not at all, also where nobody heard the answer to it."""

from collections.abc import Sequence

import pytest
from sqlalchemy.exc import OperationalError

from backburner.core import transitions
from backburner.core.errors import Fenced, StoreFailed
from backburner.core.run import RunStatus
from backburner.core.schedule import Event
from backburner.ports import Claim
from backburner.store.db import MAX_TRIES
from backburner.store.tx import Tx
from support.simulator.world import FlakyDatabase, LostAnswer
from support.stage.make import USER
from support.stage.scene import Scene


def a_commit_whose_connection_broke_before_it_takes_place_once(scene: Scene) -> None:
    _takes_place_once(scene, breaks=["before"])


def a_commit_whose_answer_was_lost_takes_place_once(scene: Scene) -> None:
    _takes_place_once(scene, breaks=["after"])


def a_commit_is_found_out_about_though_the_connection_broke_again(scene: Scene) -> None:
    _takes_place_once(scene, breaks=["after", "before"])


def a_commit_is_found_out_about_though_the_proof_could_not_be_read_at_first(scene: Scene) -> None:
    # The transactions: the commit, its second try, a look for the proof.
    _takes_place_once(scene, breaks=["after", "never", "after"])


def a_commit_that_took_place_is_no_failure_when_it_is_tried_once_more(scene: Scene) -> None:
    scene.task()
    claim = scene.begin_work()
    _commit(scene, claim, breaks=[])
    before = scene.dump()

    _commit(scene, claim, breaks=[])

    assert scene.dump() == before


def a_hand_back_whose_answer_was_lost_takes_place_once(scene: Scene) -> None:
    task = scene.task()
    claim = scene.begin_work()

    _flaky(scene, ["after"]).commit_here(claim.turn, scene.handing_back(claim))

    assert [run.status for run in scene.history(task)] == [RunStatus.QUEUED]
    assert scene.begin_work().run.id == claim.run.id


def a_commit_that_comes_too_late_is_fenced_off_though_its_connection_broke(scene: Scene) -> None:
    scene.task()
    claim = scene.begin_work()
    scene.crash(claim)
    before = scene.dump()

    with pytest.raises(Fenced):
        _commit(scene, claim, breaks=["before"])

    assert scene.dump() == before


def a_database_that_keeps_breaking_is_given_up_and_nothing_is_changed(scene: Scene) -> None:
    scene.task()
    claim = scene.begin_work()
    before = scene.dump()
    tries = 0

    def commit(tx: Tx) -> None:
        nonlocal tries
        tries += 1
        scene.finishing(claim)(tx)
        raise OperationalError("COMMIT", {}, LostAnswer(), connection_invalidated=True)

    with pytest.raises(StoreFailed):
        scene.database.commit_here(claim.turn, commit)

    assert tries == MAX_TRIES
    assert scene.dump() == before


def _takes_place_once(scene: Scene, *, breaks: Sequence[str]) -> None:
    task = scene.task(Event("file", {}))
    scene.change(task, lambda found: transitions.receive_event(found, {}))
    claim = scene.begin_work()

    _commit(scene, claim, breaks=breaks)

    assert [run.status for run in scene.history(task)] == [RunStatus.SUCCESS]
    said = scene.run(lambda tx: tx.messages.recent(USER, task.id, limit=10))
    assert [message.content for message in said] == ["Done."]
    assert scene.load(task).run_count == 1


def _commit(scene: Scene, claim: Claim, *, breaks: Sequence[str]) -> None:
    _flaky(scene, breaks).commit_here(claim.turn, scene.finishing(claim))


def _flaky(scene: Scene, breaks: Sequence[str]) -> FlakyDatabase:
    flaky = FlakyDatabase(scene.database.engine, scene.clock)
    flaky.breaks = breaks
    return flaky
