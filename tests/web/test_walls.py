"""Nobody sees anything of anybody else on the page: every fragment, with the ids of others.

The routes come from the routers, so none is forgotten: one with a part unknown here fails.
"""

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from fastapi.routing import APIRoute
from support.showcase.house import LOGIN, PASSWORD, House, open_house
from support.showcase.world import Showcase

from backburner.actions import browse
from backburner.actions.work import run_pages
from backburner.api.http.auth import SESSION_COOKIE, SESSION_HEADER
from backburner.core.ids import ConversationId
from backburner.web.page_routes import ROUTERS
from backburner.web.views.connect.connection_tools import make_key

#: Of what belongs to somebody.
OWNED = (
    *("conversation_id", "task_id", "run_id", "call_id"),
    *("question_id", "connection_id", "message_id"),
)
#: Questions that a fragment needs.
QUERIES: Mapping[str, Mapping[str, str]] = {
    "/page/c/{conversation_id}/thread": {"before": "{cursor}"},
    "/page/list": {"q": "build"},
    "/page/schedule/preview": {"text": "every day at 8"},
    "/page/away/offer": {"since": "2026-11-16T00:00:00Z"},
    "/page/settings/memories/edit": {"key": "vet"},
}
#: Ids in questions rather than in addresses: those of others find nothing.
ID_QUERIES = {"/page/rows": "ids"}
#: Found by a name that its owner has given it.
NAMED = ("/page/settings/memories/edit",)
#: Says the same of the ids of others as of ids of nobody: that it is over.
GONE = ("/page/q/{question_id}",)
STREAM = "/page/stream"
#: Shows what it is sent, and what its sender has of that.
LOOK = "/page/connections/imports"
FOR_OPERATORS = "/page/operate"
NOBODYS = "0123456789abcdefghjkmnpqrs"
ROUTES = {
    route.path: route
    for router in ROUTERS
    for route in router.routes
    if isinstance(route, APIRoute) and route.path not in (STREAM, LOOK)
}


@dataclass(frozen=True)
class Walls:
    house: House
    #: What stands for the parts of addresses: ids of the one who lives here.
    parts: dict[str, str]
    owner: httpx2.AsyncClient
    stranger: httpx2.AsyncClient

    def fill(self, path: str) -> str:
        return re.sub(r"\{(\w+)\}", lambda found: self.parts[found[1]], path)

    def queries(self, path: str) -> dict[str, str]:
        return {name: self.fill(value) for name, value in QUERIES.get(path, {}).items()}

    async def get(self, client: httpx2.AsyncClient, path: str, **more: Any) -> httpx2.Response:
        return await client.get(self.fill(path), params=self.queries(path), **more)

    def titles(self) -> Iterator[str]:
        """Say what nobody else may read: the names of all that was made here."""
        for place in self.house.world.places.values():
            yield self.house.world.by_id(place).title

    def find_shown(self, answer: httpx2.Response) -> list[str]:
        return [title for title in self.titles() if title in answer.text]


@pytest.fixture(scope="module")
async def walls(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Walls]:
    async with (
        open_house(tmp_path_factory.mktemp("house")) as house,
        httpx2.AsyncClient(base_url=house.address) as owner,
        httpx2.AsyncClient(base_url=house.address) as stranger,
    ):
        await sign_in(owner, LOGIN)
        await sign_in(stranger, "tomas")
        yield Walls(house, await collect_parts(house, owner), owner, stranger)


async def sign_in(client: httpx2.AsyncClient, login: str) -> None:
    answer = await client.post("/api/sign-in", json={"login": login, "password": PASSWORD})
    assert answer.is_success, answer.text
    client.headers[SESSION_HEADER] = answer.json()["key"]


async def collect_parts(house: House, owner: httpx2.AsyncClient) -> dict[str, str]:
    world = house.world
    builds, digest = world.places["builds"], world.places["digest"]
    run = world.history(world.by_id(digest))[0]
    calls = (await run_pages.load_page(world.deps, world.me, run.id)).calls
    messages = (await owner.get(f"/api/conversations/{builds}/timeline?limit=1")).json()
    (tool, *_) = world.servers["mail"].listed
    return {
        "conversation_id": builds,
        "task_id": digest,
        "run_id": run.id,
        "call_id": calls[0].id,
        "number": "1",
        "question_id": world.question(world.by_id(builds)).id,
        "connection_id": world.connections["mail"],
        "key": make_key(tool.name),
        "cursor": messages["next"],
        "message_id": await find_message(world, builds),
    }


async def find_message(world: Showcase, conversation_id: ConversationId) -> str:
    page = await browse.messages(world.deps, world.me, conversation_id, None, limit=1)
    return page.items[0].id


def test_all_parts_of_addresses_are_known() -> None:
    parts = {part for path in ROUTES for part in re.findall(r"\{(\w+)\}", path)}

    assert parts <= {*OWNED, "number", "key"}
    ids = re.compile(r"(^|_)(ids?|conversations?|tasks?|runs?|connections?)$")
    asked = {
        (path, field.alias)
        for path, route in ROUTES.items()
        for field in route.dependant.query_params
        if ids.search(field.alias)
    }
    assert asked == set(ID_QUERIES.items())


@pytest.mark.parametrize("path", ROUTES)
async def test_a_fragment_is_for_its_owner_only(walls: Walls, path: str) -> None:
    own = await walls.get(walls.owner, path)
    assert own.status_code == 200, own.text

    others = await walls.get(walls.stranger, path)

    assert not walls.find_shown(others)
    if path.startswith(FOR_OPERATORS):
        assert others.status_code == 403
    elif path in NAMED:
        assert others.status_code == 404
    elif not any(f"{{{part}}}" in path for part in OWNED):
        assert others.status_code == 200
    else:
        # As for an id that nobody has.
        nobodys = {**walls.parts, **{part: nobodys_id(walls, part) for part in OWNED}}
        unknown = await walls.stranger.get(path_with(path, nobodys), params=walls.queries(path))
        assert others.status_code == unknown.status_code == (200 if path in GONE else 404)
        assert others.text == unknown.text


def nobodys_id(walls: Walls, part: str) -> str:
    return f"{walls.parts[part].partition('_')[0]}_{NOBODYS}"


def path_with(path: str, parts: Mapping[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: parts[found[1]], path)


@pytest.mark.parametrize(("path", "name"), ID_QUERIES.items())
async def test_ids_of_others_in_a_question_find_nothing(walls: Walls, path: str, name: str) -> None:
    ids = {name: ",".join(walls.house.world.places.values())}

    own = await walls.owner.get(path, params=ids)
    others = await walls.stranger.get(path, params=ids)

    assert len(walls.find_shown(own)) > 3
    assert (others.status_code, others.text.strip()) == (200, "")


@pytest.mark.parametrize("path", [*ROUTES, STREAM])
async def test_half_a_session_opens_no_fragment(walls: Walls, path: str) -> None:
    address, queries = walls.fill(path), walls.queries(path)
    cookie = walls.owner.cookies[SESSION_COOKIE]
    key = walls.owner.headers[SESSION_HEADER]
    theirs = walls.stranger.headers[SESSION_HEADER]
    halves: tuple[dict[str, str], ...] = (
        {"cookie": f"{SESSION_COOKIE}={cookie}"},
        {SESSION_HEADER: key},
        {"cookie": f"{SESSION_COOKIE}={cookie}", SESSION_HEADER: key[:-1]},
        {"cookie": f"{SESSION_COOKIE}={cookie}", SESSION_HEADER: theirs},
        {},
    )
    async with httpx2.AsyncClient(base_url=walls.house.address) as thief:
        for half in halves:
            answer = await thief.get(address, params=queries, headers=half)
            assert answer.status_code == 401
            assert not walls.find_shown(answer)
