"""What operators see, in words."""

from dataclasses import replace
from datetime import timedelta

import pytest
from support.stage.make import NOON, USER

from backburner.actions.models.profiles import ModelUse
from backburner.actions.operate.overview import Overview
from backburner.core.accounts import ON_THE_SERVER, Act, AuditEntry
from backburner.core.ids import UserId
from backburner.core.retry import Outage
from backburner.core.run import FailureKind
from backburner.ports import (
    DatabaseState,
    DeliveryCounts,
    QueueState,
    VaultStatus,
    WorkerReport,
    WorkerRow,
)
from backburner.web.display import Display
from backburner.web.rendering import load_words
from backburner.web.views.account.operate import describe_detail, show_act, show_overview

DISPLAY = Display(NOON, "UTC")
WORKER = WorkerReport(
    name="vm:1:ab", host="vm", version="1", started_at=NOON, seats=5, seats_used=2
)
QUEUE = QueueState(
    due=0, oldest_wait=timedelta(), running=1, queued=0, users_waiting=0, is_paused=False
)
FINE = Overview(
    at=NOON,
    version="1",
    started_at=NOON,
    queue=QUEUE,
    workers=[WorkerRow(WORKER, NOON)],
    outages=[],
    deliveries=DeliveryCounts(waiting=0, failed=0),
    database=DatabaseState("sqlite", 700_000),
)


def test_an_install_without_trouble_has_no_problems() -> None:
    vault = VaultStatus(source="file", master_keys=["k"], users=1)
    models = [
        ModelUse("claude", chats=True, background=False),
        ModelUse("x", chats=False, background=False),
    ]
    shown = show_overview(FINE, vault, DISPLAY, models)

    assert [(one.name, one.use, one.trouble) for one in shown.models] == [
        ("claude", "Used for chats", ""),
        ("x", "", ""),
    ]
    assert shown.problems == []
    assert [(one.seats, one.state) for one in shown.workers] == [("2 of 5", "Works")]
    assert shown.vault == [
        "The secrets of people are sealed.",
        "One person has some.",
        "The master keys come from file.",
    ]
    assert shown.may_back_up


def test_every_trouble_is_told_in_a_sentence() -> None:
    gone = WorkerRow(WORKER, NOON - timedelta(minutes=5))
    outage = Outage(
        profile="claude",
        kind=FailureKind.UNAVAILABLE,
        message="Overloaded.",
        since=NOON,
        until=NOON,
        tried_until=NOON,
    )
    troubled = replace(
        FINE,
        workers=[FINE.workers[0], gone],
        outages=[outage],
        deliveries=DeliveryCounts(waiting=1, failed=2),
        queue=replace(QUEUE, due=3, oldest_wait=timedelta(minutes=2)),
    )

    shown = show_overview(troubled, None, DISPLAY)

    assert shown.problems == [
        "One machine does not report any more.",
        "One model does not answer.",
        "2 notices could not be sent in the last day.",
        "3 runs wait for a free place, the first for 2\u00a0min.",
    ]
    assert (shown.models[0].name, shown.models[0].use) == ("claude", "")
    assert shown.models[0].trouble.startswith("Overloaded.")
    assert show_overview(replace(FINE, workers=[gone]), None, DISPLAY).problems == [
        load_words().operate.overview.no_worker
    ]


def test_locked_secrets_and_missing_keys_are_told() -> None:
    locked = show_overview(FINE, VaultStatus(source="file", locked={"k1": 2, "k2": 1}), DISPLAY)
    assert locked.vault[0] == "3 keys are locked: their master key is not here."
    broken = show_overview(
        FINE, VaultStatus(source="file", problem="No file.", hint="Make it."), DISPLAY
    )
    assert broken.vault == ["No file.", "Make it."]


def test_an_act_names_who_did_it_and_to_whom() -> None:
    entry = AuditEntry(
        id="a_1", at=NOON, actor=ON_THE_SERVER, act=Act.ROLE_CHANGED, user=USER, detail="operator"
    )
    names = {USER: "Ann"}

    shown = show_act(entry, names, DISPLAY)
    assert (shown.actor, shown.act, shown.user) == ("On the server", "changed a role", "Ann")
    # Of themselves, it is said once.
    own = show_act(replace(entry, actor=USER), names, DISPLAY)
    assert (own.actor, own.user) == ("Ann", "")
    gone = UserId("u_gone")
    assert show_act(replace(entry, actor=gone), names, DISPLAY).actor == "A deleted account"
    assert show_act(replace(entry, user=gone), names, DISPLAY).user == "A deleted account"


@pytest.mark.parametrize(
    ("act", "detail", "shown"),
    [
        (Act.INVITATION_REVOKED, "k_0123456789", ""),
        (
            Act.TOOL_TICKED,
            "mail: search (off=True, read_only=True)",
            "mail: search: off, only reads",
        ),
        (
            Act.TOOL_TICKED,
            "mail: a (b) (repeatable=None, other=1)",
            "mail: a (b): whether it may be repeated is up to the catalogue, other=1",
        ),
        (
            Act.MODEL_SAVED,
            "main: claude-key, sonnet, , background, chats",
            "main: Claude, with an API key, sonnet, background, chats",
        ),
        (Act.MODEL_SAVED, "own: new-kind, m, ", "own: new-kind, m"),
        (Act.ALLOWANCE_LIMITED, "day: $2.00", "Most per day: $2.00"),
        (Act.ALLOWANCE_LIMITED, "user: no limit", "Most ever: no limit"),
        (Act.ROLE_CHANGED, "operator", "operator"),
    ],
)
def test_what_an_act_was_about_has_no_names_of_programs(act: Act, detail: str, shown: str) -> None:
    entry = AuditEntry(id="a_1", at=NOON, actor=USER, act=act, user=USER, detail=detail)

    assert describe_detail(entry) == shown
