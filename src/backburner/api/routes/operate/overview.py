"""`/api/operate/overview` and `/api/operate/failures`: the state of the install."""

from fastapi import APIRouter

from backburner.actions.operate import overview
from backburner.api.http.auth import Operator
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.pages import PageOut
from backburner.api.schemas.operate.overview import FailureReportOut, OverviewOut

router = APIRouter(prefix="/api/operate", tags=["operate"])


@router.get("/overview", summary="Get the state of the install")
async def get_overview(deps: AppDeps, _: Operator) -> OverviewOut:
    """Get workers, queue, outages of models, deliveries and database."""
    return OverviewOut.of(await overview.read_overview(deps))


@router.get("/failures", summary="List what failed last")
async def list_failures(deps: AppDeps, _: Operator) -> PageOut[FailureReportOut]:
    """List the last 50 failures of runs, deliveries and credentials of all users, newest first."""
    failures = await overview.list_failures(deps)
    return PageOut(items=[FailureReportOut.of(failure) for failure in failures], next=None)
