"""The sections of the settings: what each shows of its user, and of nobody else."""

import re
from collections.abc import Sequence
from datetime import timedelta
from functools import partial

import httpx2
import pytest
from support.doubles.engine import Call
from support.stage.api_stage import AskAs, Asker
from support.stage.make import NOON, USER
from support.stage.stage import Stage

from backburner.actions.deps import DiscoverySettings
from backburner.core.accounts import Role, Scope
from backburner.core.schedule import Interval
from backburner.core.tool_policy import ALWAYS_HERE
from backburner.ports import Change, Tx
from backburner.web.views.account.sections import OPERATE, SETTINGS

HOUR = timedelta(hours=1)
HOSTILE = '<script>alert(1)</script>"><img src=x>'
ESCAPED = "&lt;script&gt;alert(1)&lt;/script&gt;"


async def read(ask: Asker, path: str, **params: str) -> str:
    answer = await ask("GET", path, params=params)
    assert answer.status_code == 200, answer.text
    text: str = answer.text
    return text


@pytest.mark.parametrize("name", ["", *(f"/{name}" for name in SETTINGS)])
async def test_a_section_is_for_everybody_and_shows_members_nothing_of_operators(
    ask: Asker, client: httpx2.AsyncClient, name: str
) -> None:
    page = await read(ask, f"/page/settings{name}")

    assert 'id="section"' in page
    assert "/operate" not in page
    assert page.count('aria-current="page"') == 1
    assert ("data-root" in page) == (name == "")
    assert (await client.get(f"/page/settings{name}")).status_code == 401


@pytest.mark.parametrize("name", ["", *(f"/{name}" for name in OPERATE)])
async def test_what_operators_see_is_for_operators(ask_as: AskAs, name: str) -> None:
    path = f"/page/operate{name}"
    member, reader = await ask_as(USER), await ask_as(USER, Scope.READ)
    refused = await member("GET", path)
    assert refused.status_code == 403
    assert refused.json()["detail"] == "Only operators of this server may do this."
    assert (await reader("GET", path)).status_code == 403

    operator = await ask_as(USER, role=Role.OPERATOR)
    page = await read(operator, path)
    assert 'id="section"' in page
    # An operator whose token has not been given the scope sees as little.
    token = await ask_as(USER, Scope.READ, Scope.WRITE, role=Role.OPERATOR)
    assert (await token("GET", path)).status_code == 403
    assert "/operate" not in await read(token, "/page/settings")


async def test_people_are_told_in_the_page_that_an_address_is_unknown(
    client: httpx2.AsyncClient,
) -> None:
    browsing = {"accept": "text/html,*/*;q=0.8"}
    page = await client.get("/nonsense", headers=browsing)

    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert 'class="shell"' in page.text
    assert "content-security-policy" in page.headers
    for path, headers in (("/nonsense", {}), ("/api/nonsense", browsing)):
        answer = await client.get(path, headers=headers)
        assert (answer.status_code, answer.json()["detail"]) == (404, "Not Found")


async def test_commands_are_named_as_they_are_called(ask: Asker, stage: Stage) -> None:
    stage.deps.command = "python3 dev.py run"

    assert "python3 dev.py run user link makes one" in await read(ask, "/page/settings")


async def test_open_settings_hear_of_what_changes_in_other_browsers(
    ask: Asker, stage: Stage
) -> None:
    def changes_after(number: int, tx: Tx) -> Sequence[Change]:
        return tx.events.after(USER, number, limit=9)

    memory = "/api/memories/family%2Fada"
    for name in SETTINGS:
        assert re.search(
            # Of the memories it is the list, which is searched.
            r'id="(section"|memories" aria-live="polite") data-src="[^"]+" data-on="user\b',
            await read(ask, f"/page/settings/{name}"),
        )
    token = {"name": "calendar", "scopes": ["read"]}
    seen = stage.database.run(lambda tx: tx.events.latest(USER))
    for method, path, body in (
        ("PUT", "/api/me", {"name": "Ada"}),
        ("PUT", "/api/me", {"zone": "Europe/Oslo"}),
        ("PUT", "/api/me", {"paused": True}),
        ("POST", "/api/tokens", token),
        ("PUT", memory, {"text": "Likes tea."}),
        ("DELETE", memory, None),
    ):
        await ask.do(method, path, body)
        (event,) = stage.database.run(partial(changes_after, seen))
        assert event.kind == "user", path
        seen = event.number


async def test_names_of_people_are_text(ask: Asker) -> None:
    await ask.do("PUT", "/api/me", {"name": HOSTILE})

    page = await read(ask, "/page/settings/you")

    assert ESCAPED in page
    assert "<script" not in page


async def test_allowances_say_what_was_spent_whose_they_are_and_what_is_allowed(
    ask: Asker, ask_as: AskAs
) -> None:
    assert "set by this server" in await read(ask, "/page/settings/allowances")

    await ask.do("PUT", "/api/me", {"allowances": {"day": "$2.50"}})
    page = await read(ask, "/page/settings/allowances")
    assert 'name="allowances.day" value="$2.50"' in page
    assert "$0.00 spent today · set by you" in page

    operator = await ask_as(USER, role=Role.OPERATOR)
    await operator.do("PUT", f"/api/users/{USER}/allowances", {"allowances": {"day": "$1"}})
    page = await read(ask, "/page/settings/allowances")
    assert 'name="allowances.day" value="$1.00"' in page
    assert "Your operator allows $1.00." in page


async def test_lasting_grants_are_listed_with_their_conversation_and_revoked(
    ask: Asker, mate: Asker, stage: Stage
) -> None:
    for _ in range(2):
        stage.engine.then(Call("command", {"command": "curl a.org"}))
    task = await stage.task(Interval(HOUR, anchor=NOON), title=HOSTILE)
    await stage.work()
    await stage.answer(task, ALWAYS_HERE)
    await stage.work()

    page = await read(ask, "/page/settings/permissions")

    (grant,) = (await ask.get("/api/grants"))["items"]
    assert f'data-call="DELETE /api/grants/{grant["id"]}"' in page
    assert "curl a.org</bdi>" in page
    assert ESCAPED in page
    assert f"/c/{task.id}" in page
    assert grant["id"] not in await read(mate, "/page/settings/permissions")
    await ask.do("DELETE", f"/api/grants/{grant['id']}")
    assert "Nothing happens unasked." in await read(ask, "/page/settings/permissions")


async def test_memories_are_searched_and_shown_as_text(ask: Asker, mate: Asker) -> None:
    await ask.do("PUT", "/api/memories/family/ada", {"text": f"Likes tea. {HOSTILE}"})
    await ask.do("PUT", "/api/memories/home", {"text": "cold " * 200})

    page = await read(ask, "/page/settings/memories")
    assert ESCAPED in page
    assert "<script" not in page
    assert 'data-call="DELETE /api/memories/family%2Fada"' in page
    # A long one is cut; its form has all of it.
    assert page.count("cold") < 60
    assert (await read(ask, "/page/settings/memories/edit", key="home")).count("cold") == 200

    found = await read(ask, "/page/settings/memories/found", text="tea")
    assert "family/ada" in found
    assert "home" not in found
    assert "No memory matches" in await read(ask, "/page/settings/memories/found", text="xyzzy")
    assert "family/ada" not in await read(mate, "/page/settings/memories")
    theirs = await mate("GET", "/page/settings/memories/edit", params={"key": "home"})
    assert theirs.status_code == 404


async def test_more_memories_follow(ask: Asker) -> None:
    for number in range(3):
        await ask.do("PUT", f"/api/memories/m{number}", {"text": "x"})

    page = await read(ask, "/page/settings/memories", limit="2")
    (cursor,) = [part.split('"')[0] for part in page.split("memories?cursor=")[1:]]
    rest = await read(ask, "/page/settings/memories", cursor=cursor)
    assert "m2" in rest
    assert "m1" not in rest
    assert 'id="section"' not in rest


async def test_background_work_is_paused_and_discovery_says_what_it_does(
    ask: Asker, stage: Stage
) -> None:
    page = await read(ask, "/page/settings/background")
    assert "This server does not allow it." in page
    assert 'name="paused" aria-label="Pause everything" data-submits' in page

    await ask.do("PUT", "/api/me", {"paused": True})
    assert 'aria-label="Pause everything" checked' in await read(ask, "/page/settings/background")
    stage.deps.discovery = DiscoverySettings(allowed=True)
    await ask.do("PUT", "/api/me", {"discovery": True})
    page = await read(ask, "/page/settings/background")
    assert 'name="discovery" aria-label="Look for work to propose" checked' in page


async def test_tokens_are_listed_without_their_secrets(ask: Asker, mate: Asker) -> None:
    made = await ask.do("POST", "/api/tokens", {"name": HOSTILE, "scopes": ["read", "write"]})

    for name in ("tokens", "browsers", "you"):
        page = await read(ask, f"/page/settings/{name}")
        assert made["token"] not in page
        assert "bb_" not in page
    page = await read(ask, "/page/settings/tokens")
    assert ESCAPED in page
    assert "Read, write and start work · ends" in page
    assert f'data-call="DELETE /api/tokens/{made["id"]}"' in page
    # Members are not offered what only operators have.
    assert "Operate the server" not in page
    assert made["id"] not in await read(mate, "/page/settings/tokens")


async def test_the_browser_that_asks_is_marked(browser: httpx2.AsyncClient, ask: Asker) -> None:
    page = (await browser.get("/page/settings/browsers")).text

    assert "Firefox on Linux" in page
    assert page.count("This browser</span>") == 1
    assert 'data-call="POST /api/sign-out" data-signs-out' in page
    # Seen from elsewhere, it can be signed out.
    assert 'data-call="DELETE /api/sessions/' in await read(ask, "/page/settings/browsers")


async def test_the_first_page_says_who_can_set_up_a_model(ask_as: AskAs, stage: Stage) -> None:
    stage.deps.injection_proof = frozenset({stage.deps.default_profile})
    member = await ask_as(USER)
    page = await read(member, "/page/new")
    assert "An operator of this server can set up a real one" in page
    assert "/settings/model" not in page

    operator = await ask_as(USER, role=Role.OPERATOR)
    assert 'href="/settings/model"' in await read(operator, "/page/new")
    # A token may not choose where keys are sent, whoever has made it.
    token = await ask_as(USER, Scope.READ, Scope.OPERATE, role=Role.OPERATOR)
    assert "/settings/model" not in await read(token, "/page/new")
