"""Conversations: update, archive, reopen, delete; and pause all background work."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from backburner.actions import active_limit, steps
from backburner.actions.deps import Deps
from backburner.actions.models.changes import ModelChoice, forget_session
from backburner.actions.steps import change, save
from backburner.actions.waits import inputs
from backburner.core import transitions
from backburner.core.accounts import Act
from backburner.core.conversation import Conversation, Notify, OnRepeatedFailure
from backburner.core.errors import Conflict, NotFound
from backburner.core.ids import ConversationId, MessageId, UserId
from backburner.core.question import Purpose
from backburner.core.run import RunKind, RunStatus
from backburner.core.transitions import FollowerEvent, Step
from backburner.core.work.summary import Summary
from backburner.ports import Tx

#: Pinned conversations of a user.
MAX_PINNED = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Changes of a conversation; None: it stays as it is."""

    title: str | None = None
    notify: Notify | None = None
    on_repeated_failure: OnRepeatedFailure | None = None
    model: ModelChoice | None = None
    pinned: bool | None = None

    @property
    def is_only_pin(self) -> bool:
        return self == Changes(pinned=self.pinned) and self.pinned is not None


async def update(
    deps: Deps, user: UserId, conversation_id: ConversationId, changes: Changes
) -> Conversation:
    """Change a conversation. To pin or unpin it is no change by which it is listed."""
    if changes.is_only_pin:
        return await deps.store.transact(
            lambda tx: _pin(tx, tx.conversations.lock(user, conversation_id), changes)
        )

    def transition(before: Conversation, tx: Tx) -> Step:
        _pin(tx, before, changes)
        title, model = changes.title, changes.model
        after = before if title is None else transitions.rename(before, title).conversation
        after = replace(
            after,
            notify=changes.notify or before.notify,
            on_repeated_failure=changes.on_repeated_failure or before.on_repeated_failure,
        )
        if model is not None:
            after = transitions.with_model(after, deps.routes, model.profile)
            forget_session(tx, before, after)
        step = transitions.apply_change(before, after, now=tx.now)
        return replace(step, messages=(*step.messages, *transitions.model_note(before, after)))

    return await active_limit.change(deps, user, conversation_id, transition)


def _pin(tx: Tx, conversation: Conversation, changes: Changes) -> Conversation:
    user, pinned = conversation.user_id, changes.pinned
    if pinned is None:
        return conversation
    facts = tx.browse.list_facts(user, [conversation.id])[conversation.id]
    if pinned == (facts.pinned_at is not None):
        return conversation
    if pinned and tx.marks.count_pinned(user) >= MAX_PINNED:
        raise Conflict(f"{MAX_PINNED} conversations are pinned.", hint="Unpin one of them.")
    tx.marks.pin(conversation, pinned=pinned)
    return conversation


async def see(
    deps: Deps, user: UserId, conversation_id: ConversationId, up_to: MessageId | None = None
) -> None:
    """Mark everything in a conversation as seen, or what came up to a message."""
    await deps.store.transact(
        lambda tx: tx.marks.see(tx.conversations.lock(user, conversation_id), up_to)
    )


async def delete(deps: Deps, user: UserId, conversation_id: ConversationId) -> None:
    """Delete a conversation with its jobs and child tasks; tool calls and spend are kept."""
    await deps.store.transact(lambda tx: remove(tx, user, conversation_id))


def remove(tx: Tx, user: UserId, conversation_id: ConversationId) -> None:
    """Delete a conversation and all below it for good."""
    tx.conversations.lock(user, conversation_id)
    remove_deleted(tx, user, conversation_id)


def remove_deleted(tx: Tx, user: UserId, conversation_id: ConversationId) -> None:
    """The same of one that is locked, and that may be hidden."""
    deleted = with_descendants(tx, user, conversation_id)
    withdrawn = set[Purpose]()
    for deleted_id in deleted:
        # Those that are hidden have no questions.
        with suppress(NotFound):
            asked = tx.conversations.load(user, deleted_id).questions
            withdrawn |= {question.purpose for question in asked}
    for deleted_id in deleted:
        pause_followers(tx, user, deleted_id, deleted)
    for deleted_id in deleted:
        tx.conversations.delete(user, deleted_id)
        inputs.forget_conversation(tx, user, deleted_id)
    steps.resume_without_answer(tx, user, withdrawn)


async def archive(deps: Deps, user: UserId, conversation_id: ConversationId) -> Conversation:
    """Archive a conversation and cancel its open jobs and child tasks."""
    stopped = dict[ConversationId, str]()

    def work(tx: Tx) -> Conversation:
        # Parents are locked after their children, as when a child reports.
        _stop_children(tx, user, conversation_id, stopped)
        conversation = tx.conversations.lock(user, conversation_id)
        _stop_children(tx, user, conversation_id, stopped)
        step = transitions.archive(conversation, now=tx.now, stopped=list(stopped.values()))
        save(tx, step)
        return step.conversation

    return await deps.store.transact(work)


async def start_afresh(deps: Deps, user: UserId, conversation_id: ConversationId) -> Conversation:
    """Start a new session with the next run, without any outside text."""

    def work(tx: Tx) -> Conversation:
        before = tx.conversations.lock(user, conversation_id)
        under_way = (RunStatus.RUNNING, RunStatus.QUEUED)
        if any(steps.has_run(tx, before, kind, *under_way) for kind in RunKind):
            raise Conflict(
                "A run is in progress, in the session that would be forgotten.",
                hint="Stop it, or try again when it has ended.",
            )
        step = transitions.start_afresh(before, now=tx.now)
        if before.session is not None:
            tx.sessions.delete(user, conversation_id, before.session.id)
        if before.summarized and tx.summaries.load(user, conversation_id).outside:
            tx.summaries.delete(user, conversation_id)
            step = replace(step, conversation=replace(step.conversation, summarized=False))
        save(tx, step)
        return step.conversation

    return await deps.store.transact(work)


async def show_summary(deps: Deps, user: UserId, conversation_id: ConversationId) -> Summary:
    """Return the summary that the agent wrote of an earlier session."""

    def work(tx: Tx) -> Summary:
        if not tx.conversations.load(user, conversation_id).summarized:
            raise NotFound("There is no summary.", hint="One is written when it becomes too long.")
        return tx.summaries.load(user, conversation_id)

    return await deps.store.read(work)


async def delete_summary(deps: Deps, user: UserId, conversation_id: ConversationId) -> None:
    def work(tx: Tx) -> None:
        conversation = tx.conversations.lock(user, conversation_id)
        tx.summaries.delete(user, conversation_id)
        tx.conversations.save(Step(conversation=replace(conversation, summarized=False)))

    await deps.store.transact(work)


async def reopen(deps: Deps, user: UserId, conversation_id: ConversationId) -> Conversation:
    """Reopen an archived conversation; what nobody has approved in it is proposed again."""

    def transition(closed: Conversation, tx: Tx) -> Step:
        proposed = tx.questions.unapproved_proposal(user, conversation_id)
        return transitions.reopen(closed, proposed=proposed, now=tx.now)

    return await change(deps, user, conversation_id, transition)


async def pause_everything(deps: Deps, user: UserId | None, *, paused: bool) -> None:
    """Pause or resume all background work of one user, or of all users."""
    await deps.store.transact(lambda tx: tx.users.pause_everything(user, paused=paused))


async def pause_everyone(deps: Deps, actor: UserId, *, paused: bool) -> None:
    """Pause or resume the background work of all users, and record who did it."""

    def work(tx: Tx) -> None:
        tx.users.pause_everything(None, paused=paused)
        tx.audit.record(Act.EVERYONE_PAUSED if paused else Act.EVERYONE_RESUMED, actor=actor)

    await deps.store.transact(work)


def _stop_children(
    tx: Tx, user: UserId, conversation_id: ConversationId, stopped: dict[ConversationId, str]
) -> None:
    for child in tx.conversations.open_children(user, conversation_id):
        steps.stop_all(tx, child)
        stopped[child.id] = child.title


def with_descendants(
    tx: Tx, user: UserId, conversation_id: ConversationId
) -> Sequence[ConversationId]:
    """List a conversation and all its descendants, children before parents."""
    descendants = [
        descendant
        for child in tx.conversations.children(user, conversation_id)
        for descendant in with_descendants(tx, user, child)
    ]
    return [*descendants, conversation_id]


def pause_followers(
    tx: Tx, user: UserId, deleted_id: ConversationId, deleted: Sequence[ConversationId]
) -> None:
    """Pause the tasks that are scheduled after a deleted one, unless they are deleted too."""
    for follower_id in tx.conversations.followers(user, deleted_id):
        if follower_id not in deleted:
            follower = tx.conversations.lock(user, follower_id)
            save(tx, transitions.apply_follower_event(follower, FollowerEvent.GONE))
