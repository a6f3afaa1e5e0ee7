"""Every route, and who may use it: anonymous callers, scopes, members, disabled users.

A route without an entry here fails: its author has to say who may use it.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from support.people import people
from support.stage.api_stage import NOBODYS, Asker
from support.stage.make import NOON
from support.stage.stage import Stage

from backburner.core.accounts import Role, Scope
from backburner.store import tables

READ, WRITE, APPROVE, METRICS, OPERATE = "read", "write", "approve", "metrics", "operate"
OPEN, ANYBODY = "open", "anybody"
PATHS = {
    "/health": {"get": OPEN},
    "/ready": {"get": OPEN},
    "/metrics": {"get": METRICS},
    "/api/agents": {"get": READ},
    "/api/away": {"get": READ},
    "/api/away/seen": {"post": WRITE},
    "/api/backup": {"post": OPERATE},
    "/api/connections": {"get": READ, "post": APPROVE},
    "/api/connections/calls": {"get": READ},
    "/api/connections/catalogue": {"get": READ},
    "/api/connections/imports": {"post": APPROVE},
    "/api/connections/imports/preview": {"post": APPROVE},
    "/api/connections/programs": {"post": APPROVE},
    "/api/connections/programs/check": {"post": APPROVE},
    "/api/connections/programs/source": {"post": APPROVE},
    "/api/connections/{connection_id}": {"get": READ, "patch": APPROVE, "delete": APPROVE},
    "/api/connections/{connection_id}/accept": {"post": APPROVE},
    "/api/connections/{connection_id}/health": {"get": READ},
    "/api/connections/{connection_id}/headers": {"post": APPROVE},
    "/api/connections/{connection_id}/program": {"get": READ},
    "/api/connections/{connection_id}/refresh": {"post": WRITE},
    "/api/connections/{connection_id}/ticks": {"post": APPROVE},
    "/api/conversations/{conversation_id}/connections": {"put": WRITE},
    "/api/connections/{connection_id}/sign-in": {"post": APPROVE},
    "/api/connections/{connection_id}/sign-in/wait": {"post": APPROVE},
    "/api/connections/finish-sign-in": {"post": APPROVE},
    "/api/conversations": {"get": READ, "post": WRITE},
    "/api/conversations/{conversation_id}": {"get": READ, "patch": WRITE, "delete": WRITE},
    "/api/conversations/{conversation_id}/grants": {"get": READ},
    "/api/conversations/{conversation_id}/messages": {"get": READ, "post": WRITE},
    "/api/conversations/{conversation_id}/messages/last": {"put": WRITE},
    "/api/conversations/{conversation_id}/runs": {"get": READ},
    "/api/conversations/{conversation_id}/schedule": {"put": WRITE, "delete": WRITE},
    "/api/conversations/{conversation_id}/stats": {"get": READ},
    "/api/conversations/{conversation_id}/stop": {"post": WRITE},
    "/api/conversations/{conversation_id}/stop-run": {"post": WRITE},
    "/api/conversations/{conversation_id}/timeline": {"get": READ},
    "/api/conversations/{conversation_id}/summary": {"get": READ, "delete": WRITE},
    **{
        f"/api/conversations/{{conversation_id}}/{verb}": {"post": WRITE}
        for verb in (
            "pause",
            "resume",
            "run-now",
            "cancel",
            "archive",
            "reopen",
            "fresh",
            "seen",
            "restore",
        )
    },
    # Each item needs a scope of its own; test_downloads.py tries them.
    "/api/downloads": {"post": ANYBODY},
    "/api/downloads/{item}/{secret}": {"get": ANYBODY},
    "/api/models/key": {"put": APPROVE, "delete": APPROVE},
    "/api/vault": {"get": OPERATE},
    "/api/vault/rotate": {"post": OPERATE},
    "/api/vault/reset": {"post": OPERATE},
    "/api/erase": {"post": APPROVE},
    "/api/events": {"get": READ},
    "/api/export": {"get": READ},
    "/api/audit": {"get": OPERATE},
    "/api/me/audit": {"get": READ},
    "/api/files": {"get": READ, "post": WRITE},
    "/api/files/{digest}": {"get": READ, "delete": WRITE},
    "/api/folders": {"get": READ, "post": APPROVE, "delete": APPROVE},
    "/api/folders/accept": {"post": APPROVE},
    "/api/grants": {"get": READ},
    "/api/grants/{grant_id}": {"delete": WRITE},
    "/api/invitations": {"get": OPERATE, "post": OPERATE},
    "/api/invitations/{invitation_id}": {"delete": OPERATE},
    "/api/invitations/accept": {"post": OPEN},
    "/api/jobs": {"get": READ, "post": WRITE},
    "/api/jobs/cancel": {"post": WRITE},
    "/api/jobs/clear": {"post": WRITE},
    "/api/jobs/tree": {"get": READ},
    "/api/jobs/{job_id}": {"get": READ, "delete": WRITE},
    "/api/jobs/{job_id}/cancel": {"post": WRITE},
    "/api/jobs/{job_id}/resume": {"post": WRITE},
    "/api/me": {"get": READ, "put": WRITE},
    "/api/memories": {"get": READ},
    "/api/memories/{key}": {"get": READ, "put": WRITE, "delete": WRITE},
    "/api/models": {"get": READ},
    "/api/models/reload": {"post": OPERATE},
    "/api/operate/failures": {"get": OPERATE},
    "/api/operate/spend": {"get": OPERATE},
    "/api/users/{user_id}/allowances": {"put": OPERATE},
    "/api/conversations/{conversation_id}/allowance": {"put": APPROVE},
    "/api/operate/overview": {"get": OPERATE},
    "/api/operate/models": {"get": OPERATE, "patch": OPERATE},
    "/api/operate/models/offered": {"post": OPERATE},
    "/api/operate/models/test": {"post": OPERATE},
    "/api/operate/models/{profile}": {"put": OPERATE, "delete": OPERATE},
    "/api/notices": {"get": READ},
    "/api/notices/seen": {"post": WRITE},
    "/api/password": {"put": ANYBODY},
    "/api/pause-all": {"post": OPERATE},
    "/api/password/reset": {"post": OPEN},
    "/api/push": {"get": READ},
    "/api/push/subscriptions": {"get": READ, "post": WRITE},
    "/api/push/subscriptions/{subscription_id}": {"delete": WRITE},
    "/api/push/subscriptions/{subscription_id}/test": {"post": WRITE},
    "/api/questions": {"get": READ},
    "/api/questions/{question_id}/answer": {"post": WRITE},
    "/api/questions/{question_id}/snooze": {"post": WRITE},
    "/api/runs": {"get": READ},
    "/api/resume-all": {"post": OPERATE},
    "/api/runs/{run_id}": {"get": READ},
    "/api/runs/{run_id}/calls": {"get": READ},
    "/api/schedule/preview": {"post": READ},
    "/api/sessions": {"get": READ},
    "/api/sessions/{session_id}": {"delete": WRITE},
    "/api/sign-in": {"post": OPEN},
    "/api/sign-in-links": {"post": ANYBODY},
    "/api/sign-out": {"post": ANYBODY},
    "/api/sign-out-everywhere": {"post": WRITE},
    "/api/spend": {"get": READ},
    "/api/upcoming": {"get": READ},
    "/api/tasks": {"get": READ, "post": WRITE},
    "/api/tasks/{task_id}": {"get": READ, "patch": WRITE, "delete": WRITE},
    "/api/tasks/{task_id}/preview": {"get": READ},
    "/api/tasks/{task_id}/runs": {"get": READ},
    **{f"/api/tasks/{{task_id}}/{verb}": {"post": APPROVE} for verb in ("approve", "reject")},
    **{
        f"/api/tasks/{{task_id}}/{verb}": {"post": WRITE}
        for verb in ("test-run", "pause", "resume", "run-now", "cancel")
    },
    "/api/tokens": {"get": READ, "post": WRITE},
    "/api/tokens/{token_id}": {"delete": WRITE},
    "/api/users": {"get": OPERATE, "post": OPERATE},
    "/api/users/{user_id}": {"patch": OPERATE},
    "/api/users/{user_id}/reset": {"post": OPERATE},
}


def routes(*needing: str) -> Iterator[tuple[str, str]]:
    for path, methods in PATHS.items():
        for method, needs in methods.items():
            if needs in needing:
                yield method.upper(), re.sub(r"\{\w+\}", f"c_{NOBODYS}", path)


async def test_somebody_has_said_of_every_route_who_may_use_it(ask: Asker) -> None:
    described = await ask.get("/api/openapi.json")

    there_are = {path: set(methods) for path, methods in described["paths"].items()}
    assert there_are == {path: set(methods) for path, methods in PATHS.items()}


async def test_nobody_is_let_in_without_a_credential(ask: Asker) -> None:
    for method, path in routes(READ, WRITE, APPROVE, OPERATE, ANYBODY):
        for headers in ({"authorization": ""}, {"authorization": "Bearer bb_no"}):
            answer = await ask(method, path, {} if method != "GET" else None, headers=headers)
            assert (method, path, answer.status_code) == (method, path, 401)
            assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("given", "refused"),
    [
        ((Scope.READ,), (WRITE, APPROVE, OPERATE)),
        ((Scope.WRITE,), (READ, APPROVE, OPERATE)),
        ((Scope.APPROVE,), (READ, WRITE, OPERATE)),
        ((Scope.OPERATE,), (READ, WRITE, APPROVE)),
    ],
)
async def test_a_credential_is_of_no_use_for_what_it_was_not_given_for(
    ask: Asker, stage: Stage, given: tuple[Scope, ...], refused: tuple[str, ...]
) -> None:
    user = await people.add(stage, role=Role.OPERATOR)
    headers = await people.token(stage, user, *given)
    for method, path in routes(*refused):
        answer = await ask(method, path, body_for(method), headers=headers)
        assert (method, path, answer.status_code) == (method, path, 403)


async def test_a_member_cannot_operate_whatever_they_were_given(ask: Asker, stage: Stage) -> None:
    user = await people.add(stage)
    headers = await people.token(stage, user, *Scope)
    for method, path in routes(OPERATE):
        answer = await ask(method, path, body_for(method), headers=headers)
        assert (method, path, answer.status_code) == (method, path, 403)


async def test_whoever_is_shut_out_is_let_in_nowhere(ask: Asker, stage: Stage) -> None:
    user = await people.add(stage, role=Role.OPERATOR)
    headers = await people.token(stage, user, *Scope)
    # Not by the way that ends credentials as well: each of both has to be enough.
    disable = tables.users.update().where(tables.users.c.id == user).values(disabled_at=NOON)
    stage.database.run(lambda tx: tx.connection.execute(disable))
    for method, path in routes(READ, WRITE, APPROVE, OPERATE, ANYBODY):
        answer = await ask(method, path, body_for(method), headers=headers)
        assert (method, path, answer.status_code) == (method, path, 401)


def body_for(method: str) -> dict[str, Any] | None:
    return None if method in ("GET", "DELETE") else {}
