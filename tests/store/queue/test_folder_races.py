"""Two claims in one folder at the same moment, on PostgreSQL: one of them finds it taken."""

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import text
from support.contracts.store.work.folders import APP, ELSEWHERE, HERE
from support.stage.scene import CLAIMER, Scene

from backburner.core.conversation import WorkFolder
from backburner.core.transitions import Step
from backburner.ports import Claim
from backburner.store.db import Database
from backburner.store.tx import Tx

WAITING = text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")


def chat_in(scene: Scene, place: WorkFolder) -> None:
    chat = scene.chat()
    scene.change(chat, lambda found: Step(conversation=replace(found, folder=place)))
    scene.say(chat)


@pytest.mark.parametrize("machines", [(HERE, HERE), (HERE, ELSEWHERE), (ELSEWHERE, "")])
def test_two_replies_that_are_claimed_at_once_do_not_share_a_folder(
    emptied_postgres: Database, machines: tuple[str, str]
) -> None:
    scene = Scene(emptied_postgres)
    claimer = replace(CLAIMER, machine=HERE, shares_folders=machines != (HERE, HERE))
    for machine in machines:
        chat_in(scene, replace(APP, machine=machine))

    def claim(tx: Tx) -> Claim | None:
        return tx.queue.claim_reply(claimer)

    with ThreadPoolExecutor(1) as other:

        def claim_beside_another(tx: Tx) -> Claim | None:
            claimed = claim(tx)
            tx.write_now()
            second.append(other.submit(scene.run, claim))
            while not scene.run(lambda tx: tx.connection.execute(WAITING).scalar_one()):
                pass
            return claimed

        second = list[Future[Claim | None]]()
        first = scene.run(claim_beside_another)
        assert first is not None
        assert second[0].result(20) is None

    scene.finish(first, "Done.", served=scene.items(first))
    assert scene.run(claim) is not None
