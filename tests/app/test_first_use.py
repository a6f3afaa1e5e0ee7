"""Parts that are loaded at their first use."""

import asyncio
from ipaddress import ip_network
from threading import Event

import pytest

from backburner.app.first_use import LateNetwork, load_once
from backburner.core.errors import NotAllowed


async def test_it_is_loaded_once_even_if_the_first_who_asks_is_gone() -> None:
    loads, may_end = list[str](), Event()

    def load() -> str:
        loads.append("loaded")
        may_end.wait(30)
        return "library"

    loaded = load_once(load)
    assert loads == []
    first, second = asyncio.ensure_future(loaded()), asyncio.ensure_future(loaded())
    await asyncio.sleep(0)
    first.cancel()
    may_end.set()

    assert await second == await loaded() == "library"
    assert loads == ["loaded"]


async def test_a_failed_load_is_tried_again() -> None:
    failures = [OSError("Too many open files")]

    def load() -> str:
        if failures:
            raise failures.pop()
        return "library"

    loaded = load_once(load)
    with pytest.raises(OSError, match="Too many"):
        await loaded()

    assert await loaded() == "library"


async def test_the_network_that_is_loaded_late_checks_addresses() -> None:
    with pytest.raises(NotAllowed, match=r"127\.0\.0\.1"):
        await LateNetwork().fetch("http://127.0.0.1:9/")
    # Allowed, and so only refused by nobody being there.
    with pytest.raises(Exception, match="could not be fetched"):
        await LateNetwork(allow=[ip_network("127.0.0.0/8")]).fetch("http://127.0.0.1:9/")
