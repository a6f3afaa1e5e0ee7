"""Users and invitations: what operators do, and nobody else."""

import asyncio
from datetime import timedelta

import httpx2
import pytest
from support.doubles.clock import SetClock
from support.doubles.engine import End, Wait
from support.people import people
from support.people.people import PASSWORD
from support.stage.make import NOON, OPERATOR, USER
from support.stage.stage import Stage

from backburner.actions.accounts import credentials, sign_in, users
from backburner.api.schemas.account import InvitationAcceptanceBody, SignInBody
from backburner.core.accounts import Caller, Role, Scope
from backburner.core.conversation import PauseReason, Status
from backburner.core.errors import Conflict
from backburner.core.ids import UserId
from backburner.core.run import RunStatus
from backburner.core.schedule import Interval

OTHER = "four words or even more"
EVERY_HOUR = Interval(timedelta(hours=1), anchor=NOON)


async def operator(stage: Stage) -> dict[str, str]:
    return await people.token(stage, (await people.owner(stage)).id)


async def invitation(browser: httpx2.AsyncClient, headers: dict[str, str], **body: str) -> str:
    answer = await browser.post("/api/invitations", json=body, headers=headers)
    assert answer.status_code == 201
    link: str = answer.json()["link"]
    return link


async def accept(browser: httpx2.AsyncClient, link: str, login: str = "ada") -> httpx2.Response:
    body = {"invitation": link, "login": login, "password": PASSWORD}
    return await browser.post("/api/invitations/accept", json=body)


async def test_a_fresh_install_has_one_owner_however_often_it_starts(stage: Stage) -> None:
    owners = await asyncio.gather(*(users.ensure_owner(stage.deps) for _ in range(3)))

    assert len({owner.id for owner in owners if owner}) == 1
    assert owners[0]
    assert (owners[0].role, owners[0].login, owners[0].has_password) == (Role.OPERATOR, None, False)
    assert await users.has_only_owner(stage.deps)


async def test_where_there_are_others_no_owner_is_made(stage: Stage) -> None:
    await people.add(stage)

    assert await users.ensure_owner(stage.deps) is None
    assert not await users.has_only_owner(stage.deps)


@pytest.mark.parametrize("role", list(Role))
async def test_an_invitation_makes_an_account_once(
    stage: Stage, browser: httpx2.AsyncClient, role: Role
) -> None:
    headers = await operator(stage)
    link = await invitation(browser, headers, name="Ada", role=role)
    first = await accept(browser, link)
    second = await accept(browser, link, "eve")

    assert (first.status_code, second.status_code) == (201, 401)
    sees_users = await browser.get("/api/users")
    assert sees_users.status_code == (200 if role is Role.OPERATOR else 403)
    listed = (await browser.get("/api/users", headers=headers)).json()["items"]
    assert sorted(user["login"] or "" for user in listed) == ["", "ada"]


async def test_an_invitation_that_two_use_at_once_makes_one_account(stage: Stage) -> None:
    owner = await people.owner(stage)
    caller = await users.invite(
        stage.deps, await caller_for(stage, owner.id), name="", role=Role.MEMBER
    )
    both = [
        users.accept(
            stage.deps, caller.secret, login=login, password=PASSWORD, name="", address="192.0.2.1"
        )
        for login in ("ada", "eve")
    ]

    assert sorted(one is None for one in await asyncio.gather(*both)) == [False, True]
    assert len((await users.list_users(stage.deps, None, limit=9)).items) == 2


async def caller_for(stage: Stage, user: UserId) -> Caller:
    secret = (await people.token(stage, user))["authorization"].split()[1]
    caller = await credentials.identify(stage.deps, secret)
    assert caller
    return caller


async def test_an_invitation_is_good_for_a_week_and_while_its_maker_is(
    stage: Stage, browser: httpx2.AsyncClient, clock: SetClock
) -> None:
    headers = await operator(stage)
    link = await invitation(browser, headers)
    clock.advance(timedelta(days=7))
    assert (await accept(browser, link)).status_code == 401

    second = await people.add(stage, "bob", Role.OPERATOR)
    link = await invitation(browser, await people.token(stage, second))
    await users.change(stage.deps, second, actor=OPERATOR, role=Role.MEMBER)
    assert (await accept(browser, link)).status_code == 401


async def test_what_is_wrong_with_an_account_leaves_the_invitation_good(
    stage: Stage, browser: httpx2.AsyncClient
) -> None:
    headers = await operator(stage)
    await people.add(stage, "bob")
    link = await invitation(browser, headers)
    for login, password, status in (
        ("bob", PASSWORD, 409),
        ("a b", PASSWORD, 400),
        ("eve", "password1234", 400),
        ("eve", "short", 422),
        ("eve-and-adam-1", "Eve and Adam 1", 400),
    ):
        body = {"invitation": link, "login": login, "password": password}
        answer = await browser.post("/api/invitations/accept", json=body)
        assert answer.status_code == status, login
        assert password not in answer.text

    assert (await accept(browser, link)).status_code == 201


async def test_an_invitation_is_listed_until_it_is_used_or_taken_back(
    stage: Stage, browser: httpx2.AsyncClient, clock: SetClock
) -> None:
    headers = await operator(stage)
    other = await people.add(stage, "bob", Role.OPERATOR)
    theirs = await people.token(stage, other)
    used = await invitation(browser, theirs, name="Ada")
    await invitation(browser, headers, name="Eve", role="operator")

    async def listed() -> list[dict[str, str]]:
        answer = await browser.get("/api/invitations", headers=headers)
        assert used.partition("#")[2] not in answer.text
        found: list[dict[str, str]] = answer.json()["items"]
        return sorted(found, key=lambda one: one["name"])

    assert [(one["name"], one["role"]) for one in await listed()] == [
        ("Ada", "member"),
        ("Eve", "operator"),
    ]
    assert (await listed())[0]["made_by"] == other
    assert (await accept(browser, used)).status_code == 201
    (left,) = await listed()
    path = f"/api/invitations/{left['id']}"
    gone = [await browser.delete(path, headers=theirs) for _ in range(2)]
    assert [answer.status_code for answer in gone] == [204, 404]
    assert await listed() == []

    await invitation(browser, headers)
    clock.advance(timedelta(days=7))
    assert await listed() == []


async def test_only_invitations_are_taken_back(stage: Stage, browser: httpx2.AsyncClient) -> None:
    headers = await operator(stage)
    link = await invitation(browser, headers)
    (token,) = (await browser.get("/api/tokens", headers=headers)).json()["items"]
    answer = await browser.delete(f"/api/invitations/{token['id']}", headers=headers)

    assert answer.status_code == 404
    assert (await browser.get("/api/tokens", headers=headers)).status_code == 200
    (invited,) = (await browser.get("/api/invitations", headers=headers)).json()["items"]
    await browser.delete(f"/api/invitations/{invited['id']}", headers=headers)
    assert (await accept(browser, link)).status_code == 401


async def test_members_see_to_no_accounts(stage: Stage, browser: httpx2.AsyncClient) -> None:
    user = await people.add(stage)
    narrow = await people.token(
        stage, await people.add(stage, "bob", Role.OPERATOR), Scope.READ, Scope.WRITE
    )
    for headers, status in ((await people.token(stage, user), 403), (narrow, 403), ({}, 401)):
        answers = [
            await browser.get("/api/users", headers=headers),
            await browser.post("/api/users", json={"login": "eve"}, headers=headers),
            await browser.patch(f"/api/users/{user}", json={"role": "operator"}, headers=headers),
            await browser.post(f"/api/users/{user}/reset", headers=headers),
            await browser.post("/api/invitations", json={}, headers=headers),
        ]
        assert [answer.status_code for answer in answers] == [status] * 5


async def test_who_is_added_sets_their_password_themselves(
    stage: Stage, browser: httpx2.AsyncClient
) -> None:
    headers = await operator(stage)
    body = {"login": "ada", "name": "Ada"}
    added = (await browser.post("/api/users", json=body, headers=headers)).json()
    assert added["user"]["has_password"] is False
    assert (await browser.post("/api/users", json=body, headers=headers)).status_code == 409

    body = {"reset": added["reset"]["link"], "password": PASSWORD}
    assert (await browser.post("/api/password/reset", json=body)).status_code == 200
    assert (await browser.get("/api/tokens")).status_code == 200
    assert (await browser.post("/api/password/reset", json=body)).status_code == 401
    assert (await people.sign_in(browser)).status_code == 200


async def test_a_reset_is_good_once_for_a_day_and_until_the_next(
    stage: Stage, browser: httpx2.AsyncClient, clock: SetClock
) -> None:
    headers, user = await operator(stage), await people.add(stage)
    path = f"/api/users/{user}/reset"
    old, new = [(await browser.post(path, headers=headers)).json()["secret"] for _ in range(2)]
    # Until it is used, nothing has happened.
    assert (await people.sign_in(browser)).status_code == 200

    for secret, status in ((old, 401), (new, 200), (new, 401)):
        body = {"reset": secret, "password": OTHER}
        answer = await browser.post("/api/password/reset", json=body)
        assert answer.status_code == status
    late = (await browser.post(path, headers=headers)).json()["secret"]
    clock.advance(timedelta(days=1))
    body = {"reset": late, "password": PASSWORD}
    assert (await browser.post("/api/password/reset", json=body)).status_code == 401
    assert (await people.sign_in(browser, password=OTHER)).status_code == 200


async def test_a_reset_that_two_use_at_once_sets_one_password(stage: Stage) -> None:
    user = await people.add(stage)
    made = await users.reset_password(stage.deps, user, actor=OPERATOR)
    both = [
        sign_in.redeem_reset(stage.deps, made.secret, password, address="")
        for password in (OTHER, OTHER + "!")
    ]

    assert sorted(one is None for one in await asyncio.gather(*both)) == [False, True]


async def test_one_kind_of_secret_is_not_good_for_another(
    stage: Stage, browser: httpx2.AsyncClient
) -> None:
    headers = await operator(stage)
    owner = await people.owner(stage)
    link = (await sign_in.issue_link(stage.deps, owner.id)).secret
    invited = await invitation(browser, headers)

    assert (await accept(browser, link)).status_code == 401
    answer = await browser.post("/api/sign-in", json={"link": invited})
    assert answer.status_code == 401
    answer = await browser.get("/api/tokens", headers={"authorization": f"Bearer {link}"})
    assert answer.status_code == 401


async def test_the_owner_without_a_login_has_nothing_to_reset(
    stage: Stage, browser: httpx2.AsyncClient
) -> None:
    headers, owner = await operator(stage), await people.owner(stage)

    answer = await browser.post(f"/api/users/{owner.id}/reset", headers=headers)
    assert answer.status_code == 409


async def test_somebody_is_shut_out_and_let_in_again(
    stage: Stage, browser: httpx2.AsyncClient
) -> None:
    headers, user = await operator(stage), await people.add(stage)
    theirs = await people.token(stage, user)
    for disabled, status in ((True, 401), (False, 200)):
        body = {"disabled": disabled, "name": "Ada"}
        answer = await browser.patch(f"/api/users/{user}", json=body, headers=headers)
        assert answer.json()["name"] == "Ada"
        assert (answer.json()["disabled_at"] is not None) is disabled
        assert (await people.sign_in(browser)).status_code == status
    # What ended does not come back.
    assert (await browser.get("/api/tokens", headers=theirs)).status_code == 401


async def test_an_id_of_nobody_is_not_found(stage: Stage, browser: httpx2.AsyncClient) -> None:
    headers = await operator(stage)
    for body in ({"disabled": True}, {"role": "member"}, {"name": "x"}, {}):
        answer = await browser.patch("/api/users/u_nobody", json=body, headers=headers)
        assert answer.status_code == 404
    answer = await browser.post("/api/users/u_nobody/reset", headers=headers)
    assert answer.status_code == 404


async def test_disabling_a_user_stops_their_work_at_once(
    stage: Stage, browser: httpx2.AsyncClient
) -> None:
    headers, user = await operator(stage), stage.user(USER)
    question = {"type": "confirmation", "prompt": "Go on?"}
    stage.engine.then(End({"needs_input": True, "message": "Hm.", "question": question}))
    asking = await stage.task(EVERY_HOUR)
    await stage.work()
    stage.engine.then(Wait())
    running = await stage.task(EVERY_HOUR)
    await stage.take_up()

    answer = await browser.patch(f"/api/users/{user}", json={"disabled": True}, headers=headers)
    assert answer.status_code == 200
    await stage.renew()
    await stage.idle()

    assert stage.history(running)[0].status is RunStatus.CANCELLED
    asked = stage.load(asking)
    assert (asked.status, asked.pause_reason, asked.questions) == (
        Status.ACTIVE,
        PauseReason.USER,
        (),
    )
    assert asked.schedule == stage.load(running).schedule == EVERY_HOUR
    requests = len(stage.engine.requests)
    await stage.work()
    assert len(stage.engine.requests) == requests

    await browser.patch(f"/api/users/{user}", json={"disabled": False}, headers=headers)
    # Whoever is back decides what goes on.
    assert stage.database.run(lambda tx: tx.users.load(user)).paused


@pytest.mark.parametrize("body", [{"disabled": True}, {"role": "member"}])
async def test_the_last_operator_stays(
    stage: Stage, browser: httpx2.AsyncClient, body: dict[str, object]
) -> None:
    headers, owner = await operator(stage), await people.owner(stage)
    await people.add(stage, "bob")

    answer = await browser.patch(f"/api/users/{owner.id}", json=body, headers=headers)
    assert answer.status_code == 409
    assert (await browser.get("/api/users", headers=headers)).status_code == 200


async def test_two_operators_cannot_shut_each_other_out_at_once(stage: Stage) -> None:
    both = [await people.add(stage, login, Role.OPERATOR) for login in ("ada", "bob")]
    changes = [users.change(stage.deps, user, actor=OPERATOR, disabled=True) for user in both]
    results = await asyncio.gather(*changes, return_exceptions=True)

    assert sum(isinstance(result, Conflict) for result in results) == 1


async def test_nothing_made_for_somebody_who_is_shut_out_lets_them_in(
    stage: Stage, browser: httpx2.AsyncClient
) -> None:
    user = await people.add(stage)
    await people.add(stage, "bob", Role.OPERATOR)
    await users.change(stage.deps, user, actor=OPERATOR, disabled=True)
    reset = await users.reset_password(stage.deps, user, actor=OPERATOR)
    link = await sign_in.issue_link(stage.deps, user)

    body = {"reset": reset.secret, "password": OTHER}
    assert (await browser.post("/api/password/reset", json=body)).status_code == 401
    assert (await browser.post("/api/sign-in", json={"link": link.secret})).status_code == 401
    headers = await people.token(stage, user)
    assert (await browser.get("/api/tokens", headers=headers)).status_code == 401


def test_a_secret_does_not_show_where_it_is_held() -> None:
    issued = credentials.IssuedCredential(
        id="k_1",
        user=USER,
        secret="bb_canary",  # noqa: S106
        expires_at=None,
    )
    bodies = [
        InvitationAcceptanceBody(invitation="bb_canary", login="ada", password="canary of words"),  # type: ignore[arg-type]  # noqa: S106
        SignInBody(link="bb_canary"),  # type: ignore[arg-type]
    ]

    assert "canary" not in repr([issued, *bodies])
