"""Pages of operators about the install. Everything here needs the scope `operate`."""

from fastapi import APIRouter
from starlette.responses import Response

from backburner.actions.accounts import users
from backburner.actions.deps import Deps
from backburner.actions.models import profiles
from backburner.actions.operate import overview, spending, vault
from backburner.api.http.auth import Operator
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.pages import MAX_PAGE_SIZE, Paging, write_cursor
from backburner.core.errors import BackburnerError
from backburner.ports import VaultStatus
from backburner.web.rendering import respond
from backburner.web.routes.lists import Shown
from backburner.web.routes.settings import find_place
from backburner.web.views.account.operate import (
    name_user,
    show_act,
    show_failure,
    show_invitation,
    show_overview,
    show_person,
    show_spending,
)

router = APIRouter(include_in_schema=False)


@router.get("/page/operate")
@router.get("/page/operate/overview")
async def show_state(deps: AppDeps, caller: Operator, display: Shown) -> Response:
    facts = await overview.read_overview(deps)
    return await respond(
        "operate/overview.html",
        display,
        place=find_place(caller, "overview"),
        shown=show_overview(
            facts,
            await _read_vault(deps),
            display,
            await profiles.list_models(deps, caller.user),
        ),
        is_direct=caller.is_direct,
    )


@router.get("/page/operate/people")
async def show_people(deps: AppDeps, caller: Operator, display: Shown, paging: Paging) -> Response:
    page = await users.list_users(deps, paging.after(str), limit=paging.limit)
    invitations = await users.list_invitations(deps, None, limit=MAX_PAGE_SIZE)
    return await respond(
        "operate/people_rows.html" if paging.cursor else "operate/people.html",
        display,
        place=find_place(caller, "people"),
        people=[show_person(user, caller, display) for user in page.items],
        next_page=write_cursor(page.next_key),
        invitations=[show_invitation(one, display) for one in invitations.items],
        is_direct=caller.is_direct,
    )


@router.get("/page/operate/spend")
async def show_spend(deps: AppDeps, caller: Operator, display: Shown, paging: Paging) -> Response:
    page = await spending.list_spending(deps, paging.after(str), limit=paging.limit)
    return await respond(
        "operate/spend_rows.html" if paging.cursor else "operate/spend.html",
        display,
        place=find_place(caller, "spend"),
        people=[show_spending(row, caller) for row in page.items],
        next_page=write_cursor(page.next_key),
    )


@router.get("/page/operate/failures")
async def show_failures(deps: AppDeps, caller: Operator, display: Shown) -> Response:
    reports = await overview.list_failures(deps)
    return await respond(
        "operate/failures.html",
        display,
        place=find_place(caller, "failures"),
        failures=[show_failure(report, display) for report in reports],
    )


@router.get("/page/operate/audit")
async def show_audit(deps: AppDeps, caller: Operator, display: Shown, paging: Paging) -> Response:
    page = await users.list_acts(deps, paging.after(str), limit=paging.limit)
    named = {one for entry in page.items for one in (entry.actor, entry.user) if one is not None}
    known = await users.load_known(deps, named)
    names = {user.id: name_user(user, caller) for user in known}
    return await respond(
        "operate/audit_rows.html" if paging.cursor else "operate/audit.html",
        display,
        place=find_place(caller, "audit"),
        acts=[show_act(entry, names, display) for entry in page.items],
        next_page=write_cursor(page.next_key),
    )


async def _read_vault(deps: Deps) -> VaultStatus | None:
    if deps.vault_keys is None:
        return None
    try:
        return await vault.read_status(deps)
    except BackburnerError as error:
        return VaultStatus(source="", problem=error.message, hint=error.hint)
