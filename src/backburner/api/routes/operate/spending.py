"""`/api/operate/spend` and the allowances of users, for operators."""

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import AfterValidator

from backburner.actions.operate import spending
from backburner.api.http.auth import Operator
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.pages import PageOut, Paging, make_page
from backburner.api.schemas.base import check_id
from backburner.api.schemas.operate.spending import UserAllowancesBody, UserSpendingOut
from backburner.core.ids import UserId

router = APIRouter(prefix="/api", tags=["operate"])

UserIdPath = Annotated[UserId, Path(description="The user's id."), AfterValidator(check_id)]


@router.get("/operate/spend", summary="List what users spend")
async def list_spending(deps: AppDeps, _: Operator, paging: Paging) -> PageOut[UserSpendingOut]:
    """List what each user has spent today, in the last 30 days and in total; up to 50 a page."""
    page = await spending.list_spending(deps, paging.after(str), limit=paging.limit)
    return make_page(page, UserSpendingOut.of)


@router.put("/users/{user_id}/allowances", summary="Limit what a user may spend")
async def limit_user(
    user_id: UserIdPath, body: UserAllowancesBody, deps: AppDeps, caller: Operator
) -> UserSpendingOut:
    """Set the most that a user may allow themselves in a day or in total.

    They may set less. Work that was paused goes on if it is no longer over its limit.
    """
    row = await spending.set_ceilings(deps, caller.user, user_id, body.allowances)
    return UserSpendingOut.of(row)
