"""`backburner notices`."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from support.programs.cli_server import Call, Running, wait_for
from support.stage import make

from backburner.cli.commands.notices import describe_delivery
from backburner.cli.output import local_time
from backburner.core import transitions
from backburner.core.conversation import Destination
from backburner.core.ids import derive_question_id, new_conversation_id
from backburner.core.notice import Notice, NoticeKind, point_to
from backburner.core.schedule import Cron
from backburner.core.transitions import Brief
from backburner.store.tx import Tx

MONDAYS = Cron("33 3 * * 1", "UTC")


def test_a_reminder_becomes_a_notice_that_can_be_marked_as_seen(
    ask: Callable[..., Any], talk: Call
) -> None:
    conversation_id = ask("say", "--no-wait", "remind me in 1 second to stretch")["conversation_id"]

    def notices(*options: str) -> Any:
        return [
            one for one in ask("notices", *options) if one["conversation_id"] == conversation_id
        ]

    (notice,) = wait_for(notices)
    listed = talk("notices")
    assert "stretch" in notice["text"]
    assert listed.out[0].split() == ["TIME", "KIND", "ID", "CONVERSATION", "TEXT"]
    (line,) = [line for line in listed.out if conversation_id[:12] in line]
    assert line.startswith("new ")
    assert notice["title"] == "Remind me to stretch"
    assert " Remind me to stretch " in line

    assert notices("--new", "--seen") == [notice]
    assert notices("--new") == []
    assert notices()[0]["seen_at"] is not None


def test_the_commands_that_notices_name_show_what_they_are_about(
    running: Running, ask: Callable[..., Any], talk: Call
) -> None:
    def tell(tx: Tx) -> None:
        brief = Brief(title="Watch", prompt="Look.", schedule=MONDAYS)
        step = transitions.start_task(new_conversation_id(), running.user, brief, now=tx.now)
        tx.conversations.add(replace(step, notices=(Notice(NoticeKind.RESULT, "It rains."),)))
        asked = make.question(id=derive_question_id(running.user), prompt="Shall I?")
        tx.conversations.save(transitions.ask_owner(step.conversation, asked))

    running.transact(tell)
    shown = []
    for notice in ask("notices"):
        command = re.fullmatch(r".*`backburner (.+)`\.", point_to(notice["address"], ""))
        assert command is not None
        ended = talk(*command[1].split(" "))
        assert ended.code == 0
        shown.append("\n".join(ended.out))

    assert ["Shall I?" in shown[0], "Watch" in shown[1]] == [True, True]


def test_a_notice_that_could_not_be_delivered_says_why_and_when_it_is_tried_again(
    running: Running, talk: Call
) -> None:
    def tell(tx: Tx) -> None:
        places = (Destination("discord", "me"), Destination("mail", "a@b"))
        brief = Brief(title="Watch", prompt="Look.", schedule=MONDAYS, reports_to=places)
        step = transitions.start_task(new_conversation_id(), running.user, brief, now=tx.now)
        told = Notice(NoticeKind.RESULT, "It rains.")
        tx.conversations.add(replace(step, notices=(told,)))

    running.transact(tell)
    # No such channels are set up there; each delivery is tried by itself.
    (line,) = wait_for(
        lambda: [line for line in talk("notices").out if line.count("not delivered") == 2]
    )

    assert line.endswith(
        "It rains.  not delivered through discord: The channel 'discord' is not set up.; not"
        " delivered through mail: The channel 'mail' is not set up."
    )
    assert talk("notices").out[0].endswith("DELIVERY")


@pytest.mark.parametrize(
    ("delivery", "words"),
    [
        ({"state": "sent"}, "sent through mail"),
        ({"state": "sending"}, "waits for mail"),
        ({"state": "waiting", "next_try_at": "2026-11-16T12:00:00Z"}, "waits for mail"),
        (
            {"state": "waiting", "next_try_at": "2026-11-16T12:00:00Z", "error": "Busy."},
            f"waits for mail: Busy. Next try {local_time('2026-11-16T12:00:00Z')}",
        ),
        ({"state": "failed", "error": "Refused."}, "not delivered through mail: Refused."),
    ],
)
def test_a_delivery_is_described(delivery: dict[str, Any], words: str) -> None:
    usual = {"channel": "mail", "error": None, "next_try_at": None}

    assert describe_delivery({**usual, **delivery}) == words
