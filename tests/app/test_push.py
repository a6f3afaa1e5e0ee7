"""Push messages in the program as it is assembled: its key, its network, and its contact."""

from collections.abc import AsyncIterator, Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.people.users import add_user
from support.servers.push_service import push_service
from support.stage.make import USER

from backburner.actions.accounts import credentials, sign_in
from backburner.actions.channels import push
from backburner.actions.channels.push import NewSubscription, PushTest
from backburner.app.build import App, build
from backburner.app.clock import Clock
from backburner.app.machines import build_machines
from backburner.bus.local import LocalBus
from backburner.core.channels.push import PUSH
from backburner.core.errors import NotAllowed
from backburner.settings import load
from backburner.store.lifecycle.opening import open_database

Assemble = Callable[..., App]


@pytest.fixture
async def assemble(tmp_path: Path) -> AsyncIterator[Assemble]:
    """Build the program with the machines that its settings ask for."""
    clock, data = Clock(), tmp_path / "data"
    data.mkdir()
    url = load(data=data).database.get_secret_value()
    with closing(open_database(url, clock.read)) as database:

        def assemble(**settings: Any) -> App:
            loaded = load(data=data, commands="off", **settings)
            return build(loaded, clock, database, LocalBus(), build_machines(loaded, "backburner"))

        yield assemble


async def test_a_browser_is_sent_messages_through_the_networks_of_the_settings(
    assemble: Assemble,
) -> None:
    app = assemble(private_networks=["127.0.0.1/32"], public_url="https://bb.example")
    strict = assemble()
    app.database.run(lambda tx: add_user(tx, USER))
    session = app.database.run(lambda tx: sign_in.start_session(tx, USER))
    caller = await credentials.identify(app.deps, session.secret)
    assert caller is not None
    async with push_service() as service:
        browser = service.browser()
        new = NewSubscription(
            endpoint=browser.endpoint,
            receiver_key=browser.p256dh,
            auth=browser.auth,
            label="phone",
        )
        encrypted = replace(new, endpoint=browser.endpoint.replace("http:", "https:"))
        with pytest.raises(NotAllowed, match=r"127\.0\.0\.1"):
            await push.subscribe(strict.deps, caller, encrypted)
        made = await push.subscribe(app.deps, caller, new)
        browser.server_key = made.server_key

        assert await push.send_test(app.deps, USER, made.id) == PushTest()

        (message,) = browser.messages
    assert message.claims["sub"] == "https://bb.example"
    # Another process of the same installation.
    assert (await push.read_state(strict.deps, "")).key == made.server_key


async def test_the_key_is_sealed_in_the_database(assemble: Assemble) -> None:
    app = assemble()

    key = (await push.read_state(app.deps, "")).key

    sealed = app.database.run(lambda tx: tx.secrets.load(None, push.SECRET))
    private = app.database.run(lambda tx: app.deps.vault.load(tx.secrets, None, push.SECRET))
    assert sealed is not None
    assert private is not None
    assert private not in sealed
    assert app.deps.push.crypto.public_key(private) == key


async def test_the_contact_of_the_settings_comes_before_the_public_url(
    assemble: Assemble,
) -> None:
    contacts = [
        assemble(**settings).deps.push.contact
        for settings in (
            {},
            {"public_url": "https://bb.example"},
            {"public_url": "https://bb.example", "push_contact": "mailto:ada@example.com"},
        )
    ]

    assert contacts == ["", "https://bb.example", "mailto:ada@example.com"]
    assert PUSH in assemble().deps.channels
