"""`/api/connections/catalogue`, `imports` and `programs`: well-known servers, and those of other
clients.

Programs are imported on the command line of the server's machine alone.
"""

from fastapi import APIRouter

from backburner.actions.connections import imports, manage, own_programs
from backburner.api.http.auth import Approver, Reader
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.idempotency import IdempotentRoute
from backburner.api.http.openapi import error_responses
from backburner.api.http.pages import PageOut
from backburner.api.routes.work.connections import ConnectionIdPath
from backburner.api.schemas.work.connection import ConnectionCheckOut
from backburner.api.schemas.work.connection_import import (
    ImportPreviewBody,
    ImportServerBody,
    OfferedServerOut,
)
from backburner.api.schemas.work.imported_program import (
    CatalogueEntryOut,
    ImportedProgramOut,
    NewProgramBody,
    ProgramCheckOut,
    ProgramSourceBody,
)
from backburner.core.connections.catalogue import CATALOGUE

router = APIRouter(prefix="/api/connections", tags=["connections"], route_class=IdempotentRoute)


@router.get("/catalogue", summary="List well-known servers")
async def list_catalogue(_caller: Reader) -> PageOut[CatalogueEntryOut]:
    """List public MCP servers that can be connected by their names, on one page."""
    return PageOut(items=[CatalogueEntryOut.of(entry) for entry in CATALOGUE], next=None)


@router.post("/imports/preview", summary="Look at a file of another client")
async def preview_import(
    body: ImportPreviewBody, deps: AppDeps, caller: Approver
) -> PageOut[OfferedServerOut]:
    """List the servers of a file, on one page, without their secrets. Nothing is stored.

    Variables of this machine are not read: values that the file only refers to are in `asks`.
    """
    found = await imports.preview(deps, caller, body.content)
    return PageOut(items=[OfferedServerOut.of(one) for one in found], next=None)


@router.post(
    "/imports",
    summary="Import a server",
    status_code=201,
    responses=error_responses(409, 429, 502),
)
async def import_server(
    body: ImportServerBody, deps: AppDeps, caller: Approver
) -> ConnectionCheckOut:
    """Add a connection to one server of a file, as `POST /api/connections` adds one.

    Its headers are sealed. Programs are refused.
    """
    check = await imports.add(deps, caller, body.server())
    shown = await manage.show(deps, caller.user, check.connection_id)
    return ConnectionCheckOut.of(check, shown)


@router.post("/programs/source", summary="Check a file of programs", status_code=204)
async def check_source(body: ProgramSourceBody, deps: AppDeps, caller: Approver) -> None:
    """Refuse a file that agents can change, or that a link which they can change leads to.

    Only the command line of the server's machine may import programs, in an installation with
    SQLite and one account. Others are refused with 403, unless the path is one that agents of
    theirs can change: then with 400, and servers with secrets are not to be imported from there.
    Links are followed for that command line only.
    """
    await own_programs.check_source(deps, caller, body.path)


@router.post("/programs/check", summary="Check a program", responses=error_responses(409))
async def check_program(body: NewProgramBody, deps: AppDeps, caller: Approver) -> ProgramCheckOut:
    """Refuse a program that cannot be imported, before its user is asked. Nothing is stored."""
    known = await own_programs.check(deps, caller, body.program())
    return ProgramCheckOut(known=known is not None)


@router.post(
    "/programs", summary="Import a program", status_code=201, responses=error_responses(409, 429)
)
async def import_program(
    body: NewProgramBody, deps: AppDeps, caller: Approver
) -> ConnectionCheckOut:
    """Add a connection to a program, start the program in its cage, and list its tools.

    What is wrong with it, if it does not start, is in `error`; the connection is there all the
    same. A program that is there already is left as it is.
    """
    check = await own_programs.add(deps, caller, body.program())
    shown = await manage.show(deps, caller.user, check.connection_id)
    return ConnectionCheckOut.of(check, shown)


@router.get("/{connection_id}/program", summary="Get an imported program")
async def get_program(
    connection_id: ConnectionIdPath, deps: AppDeps, caller: Reader
) -> ImportedProgramOut:
    """Get the program that you have imported for a connection."""
    return ImportedProgramOut.of(await own_programs.show(deps, caller.user, connection_id))
