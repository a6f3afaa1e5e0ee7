"""Folders in which conversations may work: list, add, remove, accept instructions, choose one.

A user with the only account of a SQLite install adds folders on the local command line. Everybody
else has those that the settings give to their account.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import PurePosixPath

from backburner.actions.deps import Deps
from backburner.core.accounts import Caller
from backburner.core.conversation import Conversation, Kind, Use, Uses, WorkFolder
from backburner.core.errors import (
    BackburnerError,
    BadRequest,
    Conflict,
    LimitReached,
    NotAllowed,
    NotFound,
)
from backburner.core.ids import ConversationId, UserId
from backburner.core.work import folders
from backburner.core.work.folder_templates import fill_template
from backburner.core.work.folders import MAX_FOLDERS, Folder
from backburner.ports import FolderContent, Tx

HOW_TO_ADD = "Add one with `backburner folders add PATH`."


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderState:
    """A folder, and whether its instructions differ from the accepted ones."""

    folder: Folder
    is_here: bool
    #: The instructions as they are now; None: they are the accepted ones, or cannot be read here.
    changed: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class FolderUse:
    """A folder, and some of the conversations that work in it: titles by id, newest first."""

    state: FolderState
    conversations: Mapping[ConversationId, str]


async def list_uses(deps: Deps, user: UserId, *, limit: int) -> Sequence[FolderUse]:
    """List folders, each with at most so many of its conversations."""

    def work(tx: Tx) -> Sequence[tuple[Folder, Mapping[ConversationId, str]]]:
        return [
            (
                folder,
                tx.browse.titles_in_folder(user, folder.path, folder.machine, limit=limit),
            )
            for folder in usable(tx, deps, user)
        ]

    found = await deps.store.read(work)
    return [FolderUse(await _look_at(deps, folder), titles) for folder, titles in found]


async def list_folders(deps: Deps, user: UserId) -> Sequence[FolderState]:
    known = await deps.store.read(lambda tx: usable(tx, deps, user))
    return [await _look_at(deps, folder) for folder in known]


async def add(deps: Deps, caller: Caller, path: str, *, read_only: bool) -> FolderState:
    """Add a folder of this machine, or change whether agents may write in it."""
    if not (deps.folders.may_be_added and caller.is_local_client):
        raise NotAllowed(
            "Folders are added on the command line of the machine that the server runs on.",
            hint="Others have the folders that the operator names in the setting `folders`.",
        )
    content = await _read(deps, path)
    folders.check_place(content.path, deps.folders.forbidden)

    def work(tx: Tx) -> Folder:
        tx.users.lock(caller.user)
        if len(tx.accounts.page(limit=2)) > 1:
            raise NotAllowed(
                "With more than one account, folders are given by the operator.",
                hint="Name them in the setting `folders`, such as /srv/{login}.",
            )
        machine, machine_name = _place(deps)
        known = usable(tx, deps, caller.user)
        folders.check_overlap(content.path, known, machine)
        given = next((one for one in known if one.from_settings and one.path == content.path), None)
        if given is not None:
            raise Conflict(f"{content.path} is given by the settings already.")
        earlier = tx.folders.find(caller.user, content.path, machine)
        if earlier is None and len(known) >= MAX_FOLDERS:
            raise LimitReached(f"Limit reached: {MAX_FOLDERS} folders.", hint="Remove one first.")
        folder = Folder(
            path=content.path,
            read_only=read_only,
            machine=machine,
            machine_name=machine_name,
            created_at=tx.now if earlier is None else earlier.created_at,
            instructions=content.instructions,
        )
        tx.folders.put(caller.user, folder)
        return folder

    return FolderState(folder=await deps.store.transact(work), is_here=True)


async def remove(deps: Deps, user: UserId, path: str) -> Folder:
    """Remove a folder; its files stay, and conversations that have it can no longer use it."""

    def work(tx: Tx) -> Folder:
        folder = find(tx, deps, user, path)
        if folder.from_settings:
            raise NotAllowed(
                f"{folder.path} is given by the settings.", hint="Ask the operator to change them."
            )
        tx.folders.remove(user, folder.path, folder.machine)
        return folder

    return await deps.store.transact(work)


async def accept(deps: Deps, user: UserId, path: str, *, digest: str) -> FolderState:
    """Accept the instructions in a folder as they are now.

    `digest` is that of the instructions which the user has seen.
    """
    folder = await deps.store.read(lambda tx: find(tx, deps, user, path))
    content = await _read(deps, folder.path)
    if folders.instructions_digest(content.instructions) != digest:
        raise BadRequest(
            "The instructions were changed since they were shown.", hint="Look at them again."
        )

    def work(tx: Tx) -> Folder:
        tx.users.lock(user)
        accepted = replace(find(tx, deps, user, path), instructions=content.instructions)
        tx.folders.put(user, accepted)
        return accepted

    return FolderState(folder=await deps.store.transact(work), is_here=True)


def usable(tx: Tx, deps: Deps, user: UserId) -> Sequence[Folder]:
    """List the folders that a user may use now: added ones, and those of the settings."""
    return [folder for folder, refusal in _list_all(tx, deps, user) if refusal is None]


def find(tx: Tx, deps: Deps, user: UserId, path: str) -> Folder:
    """Find a folder by its path, or by its name if only one has it."""
    listed = _list_all(tx, deps, user)
    plain = str(PurePosixPath(path))
    exact = [one for one in listed if one[0].path == plain]
    named = [one for one in listed if PurePosixPath(one[0].path).name == path]
    if exact or len(named) == 1:
        folder, refusal = (exact or named)[0]
        if refusal is not None:
            raise refusal
        return folder
    paths = ", ".join(folder.path for folder, refusal in listed if refusal is None)
    hint = f"The folders are: {paths}." if paths else HOW_TO_ADD
    raise NotFound(f"There is no folder {path!r} that was added.", hint=hint)


def choose(
    tx: Tx, deps: Deps, user: UserId, path: str | None, *, here: Conversation | None, uses: Uses
) -> WorkFolder | None:
    """Choose the folder of new work: the named one, or that of its parent."""
    may_use = uses is None or Use.FOLDERS in uses
    if path is None:
        inherited = here.folder if here is not None and may_use else None
        if inherited is None or here is None or here.kind is not Kind.DISCOVERY:
            return inherited
        # Discovery itself only reads in it; its user approves what it proposes.
        added = find_for_work(tx, deps, user, inherited)
        return inherited if added is None else added.for_work
    if not may_use:
        raise NotAllowed(
            "Work of this token may not use folders.", hint="Create one with `--with folders`."
        )
    folder = find(tx, deps, user, path)
    if folder.from_settings and tx.folders.find(user, folder.path, folder.machine) is None:
        # What its user accepts of it is kept with it.
        tx.folders.put(user, folder)
    return folder.for_work


def is_usable(tx: Tx, deps: Deps, user: UserId, folder: WorkFolder) -> bool:
    return find_for_work(tx, deps, user, folder) is not None


def find_for_work(tx: Tx, deps: Deps, user: UserId, place: WorkFolder) -> Folder | None:
    """Find the folder of a conversation; None: its user may not use it any more."""
    machine = deps.folders.bound_to(place.machine)
    known = [one for one in usable(tx, deps, user) if one.path == place.path]
    # Machines may have shared it when the conversation last worked in it, and no longer do.
    return next((one for one in known if not machine or one.machine == machine), None)


def _list_all(tx: Tx, deps: Deps, user: UserId) -> Sequence[tuple[Folder, BackburnerError | None]]:
    """List added folders and those of the settings, and why one of the latter is not usable."""
    stored = _list_stored(tx, deps, user)
    added = [one for one in stored.values() if not one.from_settings]
    # Folders are added with SQLite only.
    is_mixed = deps.folders.templates and deps.folders.may_be_added
    by_all = tx.folders.added_by_all() if is_mixed else ()
    others = [path for owner, path in by_all if owner != user]
    given = [
        stored.get((one.path, one.machine), one)
        for one in _given_by_settings(tx, deps, user)
        if not any(one.path == other.path for other in added)
    ]
    return [
        *((folder, None) for folder in added),
        *((folder, _refuse_given(deps, folder, added, others)) for folder in given),
    ]


def _list_stored(tx: Tx, deps: Deps, user: UserId) -> Mapping[tuple[str, str], Folder]:
    """Return the stored folders by path and machine, one of each path if machines share them."""
    found = dict[tuple[str, str], Folder]()
    # Those that were stored as shared come first.
    for one in tx.folders.list(user):
        folder = replace(one, machine="", machine_name="") if deps.folders.is_shared else one
        found.setdefault((folder.path, folder.machine), folder)
    return found


def _refuse_given(
    deps: Deps, folder: Folder, added: Sequence[Folder], others: Sequence[str]
) -> BackburnerError | None:
    """Return why the settings may not give a folder to this account; None: they may.

    Templates are checked at the start. What is here now may have come later.
    """
    try:
        folders.check_place(folder.path, deps.folders.forbidden)
        folders.check_overlap(folder.path, added, folder.machine)
    except BadRequest as error:
        return NotAllowed(error.message, hint="Ask the operator to change the setting `folders`.")
    except Conflict as error:
        return error
    if any(folders.overlap(folder.path, other) for other in others):
        return Conflict(
            f"{folder.path} meets a folder that another account has added.",
            hint="Ask the operator to change the setting `folders`, or the other to remove theirs.",
        )
    return None


def _given_by_settings(tx: Tx, deps: Deps, user: UserId) -> Sequence[Folder]:
    rules = deps.folders
    login = tx.accounts.load(user).login if rules.templates else None
    if login is None:
        return ()
    try:
        paths = [fill_template(template, login) for template in rules.templates]
    except BadRequest:
        return ()
    machine, machine_name = _place(deps)
    return [
        Folder(
            path=path,
            read_only=False,
            machine=machine,
            machine_name=machine_name,
            created_at=datetime.fromtimestamp(0, tx.now.tzinfo),
            from_settings=True,
        )
        for path in paths
    ]


def _place(deps: Deps) -> tuple[str, str]:
    """Return the machine of a new folder and its name."""
    rules = deps.folders
    return ("", "") if rules.is_shared else (rules.machine, rules.machine_name)


async def _look_at(deps: Deps, folder: Folder) -> FolderState:
    if folder.machine not in ("", deps.folders.machine):
        return FolderState(folder=folder, is_here=False)
    try:
        content = await _read(deps, folder.path)
    except (BadRequest, NotFound):
        return FolderState(folder=folder, is_here=False)
    is_same = dict(content.instructions) == dict(folder.instructions)
    return FolderState(
        folder=folder, is_here=True, changed=None if is_same else content.instructions
    )


async def _read(deps: Deps, path: str) -> FolderContent:
    if not PurePosixPath(path).is_absolute():
        raise BadRequest(f"{path} is not an absolute path.", hint="Write it from / on.")
    return await deps.folders.read(path)
