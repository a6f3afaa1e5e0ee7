"""`backburner push`."""

from typing import Any

import httpx2
import pytest
from support.programs.cli_server import Ask, Call, Running
from support.servers.push_service import PushServer, decode

from backburner.cli.commands.account.push import _describe
from backburner.core.accounts import CredentialKind
from backburner.core.channels.push import PushSubscription
from backburner.core.ids import PushId, new_push_id
from backburner.ports import NewCredential
from backburner.store.tx import Tx


def subscribe(running: Running) -> PushId:
    """Add a browser whose push service is on this machine, which this server does not allow."""
    headers = {"authorization": f"Bearer {running.token}"}
    state = httpx2.get(f"{running.address}/api/push", headers=headers, trust_env=False).json()
    browser, which = PushServer(port=9).browser(), new_push_id()

    def put(tx: Tx) -> None:
        new = NewCredential(CredentialKind.SESSION)
        tx.push_subscriptions.put(
            PushSubscription(
                id=which,
                user_id=running.user,
                session=tx.credentials.issue(running.user, which, new, now=tx.now),
                endpoint=browser.endpoint,
                receiver_key=browser.p256dh,
                auth=browser.auth,
                server_key=decode(state["key"]),
                label="Chrome on Android",
                created_at=tx.now,
            )
        )

    running.transact(put)
    return which


def test_browsers_are_listed_tried_and_removed(talk: Call, ask: Ask, running: Running) -> None:
    assert talk("push").out == ["No browser takes push messages."]
    which = subscribe(running)

    (item,) = ask("push", "list")
    listed = talk("push").out
    tried = talk("push", "test", which[:14])
    after = talk("push").out
    removed = talk("push", "remove", which, "--yes")
    gone = talk("push", "remove", which, "--yes")

    assert (item["id"], item["label"], item["service"]) == (which, "Chrome on Android", "127.0.0.1")
    assert listed[0].split() == ["ID", "BROWSER", "SINCE", "LAST", "MESSAGE", "STATE"]
    assert listed[1].endswith("never         ok")
    assert tried.code == 0
    assert tried.out[0].startswith("Not sent: The endpoint of this subscription is not an https")
    assert "not an https" in after[1]
    assert removed.out == ["Removed: it gets no more push messages."]
    assert (gone.code, "See `backburner push`" in gone.err[0]) == (3, True)


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ({"sent": True}, "Sent: the browser shows it as soon as it is reached."),
        (
            {"sent": False, "problem": "It is gone.", "hint": "", "removed": True},
            "Not sent: It is gone. It was removed.",
        ),
        (
            {"sent": False, "problem": "Refused.", "hint": "Ask the operator.", "removed": False},
            "Not sent: Refused. Ask the operator.",
        ),
    ],
)
def test_what_came_of_a_test_is_said_in_words(result: dict[str, Any], words: str) -> None:
    assert _describe(result) == words
