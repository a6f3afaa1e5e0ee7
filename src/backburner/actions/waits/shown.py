"""Descriptions of what work waits for, for its user."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from backburner.actions.deps import Deps
from backburner.core.connections import access
from backburner.core.conversation import Conversation, PauseReason, Status
from backburner.core.ids import ConversationId, RunId, UserId
from backburner.core.question import Purpose
from backburner.core.run import Run, RunStatus
from backburner.core.work import run_facts, timeline
from backburner.ports import Tx

#: Runs of a user that were handed back, among which those of some work are looked for.
_MAX_QUEUED = 500
_TURN = "It waits for its turn."


def warnings_for(
    tx: Tx, user: UserId, conversations: Iterable[Conversation]
) -> Mapping[ConversationId, Sequence[str]]:
    """Say which connections open work names and cannot use now. Without any, nothing is read."""
    named = [one for one in conversations if one.schedule is not None and access.named(one)]
    existing = tx.connections.list(user) if named else ()
    return {one.id: access.find_lacking(one, existing).warnings for one in named}


def awaited_sign_ins(
    tx: Tx, user: UserId, conversations: Iterable[Conversation]
) -> Mapping[ConversationId, str]:
    """Say which connections have to be reconnected for work that waits for it.

    Where nothing says that it does, nothing is read.
    """
    ids = {one.id for one in conversations if _waits_for_sign_in(one)}
    if not ids:
        return {}
    names = {one.id: one.name for one in tx.connections.list(user)}
    return {
        run.conversation_id: f"Reconnect {names[connection_id]}."
        for connection_id, run in tx.runs.waiting_for_sign_in(user)
        if run.conversation_id in ids and connection_id in names
    }


def _waits_for_sign_in(conversation: Conversation) -> bool:
    is_asked = any(asked.purpose is Purpose.RECONNECT for asked in conversation.questions)
    return is_asked or conversation.pause_reason is PauseReason.SIGNED_OUT


def awaited_places(
    tx: Tx, deps: Deps, user: UserId, conversations: Sequence[Conversation]
) -> Mapping[ConversationId, str]:
    """Say of which conversations the work is due, and waits for a folder or its machine."""
    due = [
        (one.id, folder)
        for one in conversations
        if (folder := one.folder) is not None and _is_due(one, tx.now)
    ]
    holders = tx.folders.holders(user) if due else {}
    waits = dict[ConversationId, str]()
    for conversation_id, folder in due:
        machine = deps.folders.bound_to(folder.machine)
        holder = holders.get((folder.path, machine))
        if machine not in ("", deps.folders.machine):
            waits[conversation_id] = f"The machine that has {folder.path}."
        elif holder not in (None, conversation_id) and not folder.read_only:
            waits[conversation_id] = f"The folder {folder.path}: {holder} works in it."
    return waits


def _is_due(conversation: Conversation, now: datetime) -> bool:
    next_run_at = conversation.next_run_at
    is_background = conversation.status is Status.BACKGROUND
    return is_background and next_run_at is not None and next_run_at <= now


def describe_waits(
    tx: Tx, user: UserId, runs: Sequence[Run]
) -> tuple[dict[RunId, str], frozenset[RunId]]:
    """Say what runs wait for that were handed back, and which of them for an answer."""
    asked = tx.questions.open_of_all(user, [run.conversation_id for run in runs])
    awaited = tx.browse.awaited_jobs(user, [run.id for run in runs])
    words = dict[RunId, str]()
    for run in runs:
        questions = asked.get(run.conversation_id, ())
        purposes = [one.purpose for one in questions if one.run_id == run.id]
        jobs = awaited.get(run.id)
        counts = None if jobs is None else (jobs.settled, jobs.count)
        words[run.id] = run_facts.describe_wait(run, purposes, counts)
    asking = {one.run_id for questions in asked.values() for one in questions}
    return words, frozenset(run.id for run in runs if run.id in asking)


def _describe_question(conversation: Conversation) -> str:
    return f"It waits for {timeline.awaited_answer(conversation.questions[0].purpose)}."


def awaited_by_work(
    tx: Tx, deps: Deps, user: UserId, conversations: Sequence[Conversation]
) -> Mapping[ConversationId, str]:
    """Say what open work waits for: an answer, a sign-in, its jobs, a folder, or its turn."""
    if not conversations:
        return {}
    ids = {one.id for one in conversations}
    queued = tx.browse.runs_by_status(user, RunStatus.QUEUED, None, limit=_MAX_QUEUED)
    runs = [row.run for row in queued if row.run.conversation_id in ids]
    words = describe_waits(tx, user, runs)[0] if runs else {}
    return {
        **{one.id: _TURN for one in conversations if _is_due(one, tx.now)},
        **{one.id: _describe_question(one) for one in conversations if one.questions},
        **{run.conversation_id: words[run.id] for run in runs},
        **awaited_places(tx, deps, user, conversations),
        **awaited_sign_ins(tx, user, conversations),
    }
