"""Builds the showcase and serves it: a real HTTP server in this loop, with everything in it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import ModuleType

from backburner.actions.accounts import sign_in
from backburner.actions.accounts.passwords import hash_password
from backburner.api.app import build_api
from backburner.api.http.caller_limits import CallerLimits
from backburner.core.accounts import Role
from backburner.store.db import Database
from backburner.store.dialect import make_engine
from backburner.store.lifecycle.schema import bring_up_to_date
from backburner.web import page_routes
from support.doubles.clock import SetClock
from support.doubles.tool_servers import FakeServers
from support.servers.live import serving
from support.showcase import asking, belongings, stories
from support.showcase.world import FIRST, Showcase

LOGIN, PASSWORD = "nora", "three words or more"
NAME = "Nora Whitfield"
BOOKS = (belongings, asking, stories)


@dataclass(frozen=True)
class House:
    world: Showcase
    address: str


@asynccontextmanager
async def open_house(folder: Path, *books: ModuleType) -> AsyncIterator[House]:
    """Serve a new database that is full of the stories of some modules."""
    engine = make_engine(f"sqlite:///{folder / 'backburner.sqlite3'}")
    bring_up_to_date(engine)
    clock = SetClock(FIRST - timedelta(days=2))
    with closing(Database(engine, clock)) as database:
        world = Showcase(database, clock, FakeServers())
        await furnish(world, *(books or BOOKS))
        api = build_api(world.deps, hosts={"127.0.0.1"}, checks={})
        page_routes.add_pages(api)
        # Nobody is faster than a test.
        api.state.limits = CallerLimits(requests_per_minute=1_000_000, max_connections=1_000)
        try:
            async with serving(api) as address:
                yield House(world, address)
        finally:
            world.kill()


async def furnish(world: Showcase, *books: ModuleType) -> None:
    world.me = await world.move_in(LOGIN, NAME, Role.OPERATOR)
    other = await world.move_in("tomas", "Tomas Reyes")
    hashed = await hash_password(PASSWORD, world.deps.password_cost)
    world.database.run(lambda tx: sign_in.set_password(tx, world.me, LOGIN, hashed))
    world.database.run(lambda tx: sign_in.set_password(tx, other, "tomas", hashed))
    await world.tell_all(*books)
