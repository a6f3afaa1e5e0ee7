"""The instructions of the folder that a run works in, as far as its user has accepted them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import structlog

from backburner.actions.deps import Deps
from backburner.actions.work import folders
from backburner.core import prompt
from backburner.core.conversation import Conversation
from backburner.core.errors import BackburnerError, EngineFailed
from backburner.core.notice import Notice, NoticeKind
from backburner.core.transitions import Step
from backburner.core.transitions.step import system_message
from backburner.core.work.folders import Folder, instructions_digest
from backburner.ports import Tx

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Project:
    """The folder of a conversation, as it is described to its agent."""

    text: str = ""
    #: None: it has no folder.
    added_at: datetime | None = None


NO_PROJECT = Project()


async def describe_project(deps: Deps, conversation: Conversation) -> Project:
    """Describe the folder of a conversation to its agent; report changed instructions to its user.

    The agent gets the instructions that were accepted. Raises `EngineFailed` if the folder was
    removed.
    """
    place = conversation.folder
    if place is None:
        return NO_PROJECT
    user = conversation.user_id
    folder = await deps.store.read(lambda tx: folders.find_for_work(tx, deps, user, place))
    if folder is None:
        raise EngineFailed(
            f"The folder {place.path} was removed from those that agents may use.",
            hint="Add it again with `backburner folders add`, or cancel this work.",
            permanent=True,
        )
    changed = await _find_changes(deps, folder)
    if changed is not None:
        await _report(deps, conversation, folder, changed)
    text = prompt.for_folder(place.path, folder.instructions, read_only=place.read_only)
    return Project(text, folder.created_at)


async def _find_changes(deps: Deps, folder: Folder) -> Mapping[str, str] | None:
    try:
        now = (await deps.folders.read(folder.path)).instructions
    except BackburnerError as error:
        # The tools tell the agent.
        _log.warning("folder.unreadable", error=str(error))
        return None
    return None if dict(now) == dict(folder.instructions) else now


async def _report(
    deps: Deps, conversation: Conversation, folder: Folder, changed: Mapping[str, str]
) -> None:
    """Tell the user about each change once."""
    digest = instructions_digest(changed)
    if folder.reported == digest:
        return
    names = " and ".join(
        name
        for name in sorted({*changed, *folder.instructions})
        if changed.get(name) != folder.instructions.get(name)
    )
    text = (
        f"{names} in {folder.path} changed. Agents follow the version that you accepted. To see"
        f" the change and accept it: `backburner folders accept {folder.path}`."
    )

    def work(tx: Tx) -> None:
        locked = tx.conversations.lock(conversation.user_id, conversation.id)
        tx.conversations.save(
            Step(
                conversation=locked,
                messages=(system_message(text),),
                notices=(Notice(NoticeKind.RESULT, text),),
            )
        )
        tx.folders.mark_reported(conversation.user_id, folder.for_work, digest)

    await deps.store.transact(work)
