"""`/api/audit`: what operators did, and what their users see of it."""

import httpx2
from support.people import people
from support.stage.api_stage import AskAs
from support.stage.make import USER
from support.stage.stage import Stage

from backburner.core.accounts import Role


async def test_each_administrative_act_is_recorded_with_who_did_it(ask_as: AskAs) -> None:
    operator = await ask_as(USER, role=Role.OPERATOR)
    added = await operator.do("POST", "/api/users", {"login": "ada", "name": "", "role": "member"})
    path = f"/api/users/{added['user']['id']}"
    changes: list[dict[str, object]] = [
        {"name": "Ada"},
        {"role": "operator"},
        {"disabled": True},
        {"disabled": False},
        # Nothing new.
        {"name": "Ada", "role": "operator", "disabled": False},
    ]
    for change in changes:
        await operator.do("PATCH", path, change)
    await operator.do("POST", f"{path}/reset")
    await operator.do("POST", "/api/invitations", {"name": "Bob", "role": "member"})
    (invited,) = (await operator.get("/api/invitations"))["items"]
    assert (await operator("DELETE", f"/api/invitations/{invited['id']}")).status_code == 204
    refused = await operator("PATCH", "/api/users/u_nobody", {"name": "x"})
    assert refused.status_code == 404

    entries = (await operator.get("/api/audit"))["items"]

    ada = added["user"]["id"]
    assert {entry["actor"] for entry in entries} == {USER}
    assert [(entry["act"], entry["user"], entry["detail"]) for entry in entries[::-1]] == [
        ("user_added", ada, "ada, member"),
        ("user_changed", ada, "Ada"),
        ("role_changed", ada, "operator"),
        ("user_disabled", ada, ""),
        ("user_enabled", ada, ""),
        ("password_reset", ada, ""),
        ("user_invited", None, "Bob, member"),
        ("invitation_revoked", None, invited["id"]),
    ]
    first = await operator.get("/api/audit", limit=3)
    rest = await operator.get("/api/audit", limit=200, cursor=first["next"])
    assert first["items"] + rest["items"] == entries


async def test_a_reset_by_an_operator_is_seen_by_the_member(
    ask_as: AskAs, stage: Stage, browser: httpx2.AsyncClient
) -> None:
    operator = await ask_as(USER, role=Role.OPERATOR)
    member, other = await people.add(stage), await people.add(stage, "eve")
    await operator.do("POST", f"/api/users/{member}/reset")
    await people.sign_in(browser)

    seen = (await browser.get("/api/me/audit")).json()["items"]

    assert [entry["act"] for entry in seen] == ["password_reset", "user_added"]
    assert seen[0]["actor"] == USER
    assert (await browser.get("/api/audit")).status_code == 403
    acts = stage.database.run(lambda tx: tx.audit.of_user(other, limit=9))
    assert [entry.act for entry in acts] == ["user_added"]
