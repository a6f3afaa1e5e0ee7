"""Transitions caused by the user: messages, schedules, pause, cancel, archive."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from backburner.core import routing
from backburner.core import schedule as schedules
from backburner.core.content.attachment import dump_files
from backburner.core.content.file import FileReference
from backburner.core.conversation import (
    MAX_TITLE_CHARS,
    Conversation,
    EndedAs,
    Kind,
    MessageRole,
    PauseReason,
    Source,
    State,
    Status,
    check_state,
    drop_outside,
    make_title,
)
from backburner.core.errors import BadRequest, Conflict
from backburner.core.ids import MessageId, QuestionId, RunId
from backburner.core.question import Question, match_chat_message, withdrawal_note
from backburner.core.run import ItemKind, NewItem, RunKind
from backburner.core.schedule import Immediate, Schedule
from backburner.core.transitions import answers, create
from backburner.core.transitions.shared_changes import (
    end_work,
    is_proposal,
    refuse_archived,
    restart_schedule,
)
from backburner.core.transitions.step import (
    FollowerEvent,
    NewMessage,
    Report,
    Step,
    Stops,
    system_message,
)
from backburner.core.validation import (
    check_chat_message,
    check_message,
    check_text,
    normalize_title,
)
from backburner.core.work import views

STARTED_AFRESH = (
    "Started afresh: the agent continues without text that may come from others. You still see it."
)


def receive_message(
    conversation: Conversation,
    text: str,
    *,
    message_id: MessageId,
    now: datetime,
    profile: str | None = None,
    files: tuple[FileReference, ...] = (),
) -> Step:
    """Receive a user's message: it answers the shown question if it matches, else gets a reply.

    `profile` is for that reply only, or for the run that the answer starts.
    """
    refuse_archived(conversation)
    # Files need no words.
    (check_message if files else check_chat_message)(text)
    message = NewMessage(
        role=MessageRole.USER, content=text, source=Source.CHAT, id=message_id, files=files
    )
    changed = replace(
        conversation, title=conversation.title or make_title(text), unattended_replies=0
    )
    question = changed.pending_question
    answer = None if question is None else match_chat_message(question, text)
    if question is not None and answer is not None:
        step = answers.answer(changed, question.id, answer, now=now)
        # What was asked stands before the answer.
        asked, *others = step.messages
        step = replace(step, messages=(asked, message, *others))
        if files:
            told = (
                replace(one, content={**one.content, **dump_files(files)}) for one in step.inbox
            )
            step = replace(step, inbox=tuple(told))
    else:
        item = _message_item(text, message_id, RunKind.REPLY, files)
        step = Step(conversation=changed, messages=(message,), inbox=(item,))
    return step if profile is None else _ask_for_profile(step, profile)


def set_schedule(
    conversation: Conversation,
    schedule: Schedule,
    *,
    now: datetime,
    state: State | None = None,
    by_run: RunId | None = None,
) -> Step:
    """Give a conversation background work, or change when its work is due.

    `by_run`: the run whose agent does it.
    """
    refuse_archived(conversation)
    schedules.check_schedule(schedule, now=now)
    state = state or conversation.state
    check_state(state)
    if not state.context:
        raise BadRequest("Background work needs a description.", hint="Describe what to do.")
    is_new = conversation.schedule is None
    changed = replace(
        restart_schedule(replace(conversation, schedule=schedule), now=now),
        status=Status.BACKGROUND if conversation.status is Status.ACTIVE else conversation.status,
        schedule_revision=conversation.schedule_revision + 1,
        set_up_by=by_run if is_new or by_run == conversation.set_up_by else None,
        state=state,
        ended_as=None,
        ended_at=None,
        again_count=0,
        again_since=None,
        run_count=0 if is_new else conversation.run_count,
        last_result_hash=None if is_new else conversation.last_result_hash,
    )
    if is_proposal(conversation):
        return create.repropose(changed, now=now)
    is_other_work = not is_new and state.context != conversation.state.context
    return Step(conversation=changed, drops_queued=True, ends_all_grants=is_other_work)


def start_afresh(conversation: Conversation, *, now: datetime) -> Step:
    """Forget the agent's session, and leave out everything that may be outside text."""
    refuse_archived(conversation)
    fresh = replace(
        conversation,
        session=None,
        outside_read=False,
        fresh_at=now,
        state=drop_outside(conversation.state),
    )
    return Step(conversation=fresh, messages=(system_message(STARTED_AFRESH, own=True),))


def rename(conversation: Conversation, title: str) -> Step:
    check_text("The title", title, limit=MAX_TITLE_CHARS)
    if not title.strip():
        raise BadRequest("The title is empty.", hint="Give it a name.")
    return Step(conversation=replace(conversation, title=normalize_title(title)))


def pause(conversation: Conversation) -> Step:
    refuse_archived(conversation)
    if conversation.schedule is None:
        raise Conflict("There is no background work to pause.")
    if is_proposal(conversation):
        raise Conflict("This work has not been approved yet.", hint="Approve or reject it.")
    # Work that waits for a sign-in would go on after it.
    if conversation.pause_reason not in (None, PauseReason.SIGNED_OUT):
        raise Conflict("This work is already paused.", hint="Resume it to continue.")
    # The schedule stays: the next time is computed on resume, so paused slots are never due.
    paused = replace(
        conversation,
        status=Status.ACTIVE,
        next_run_at=None,
        pause_reason=PauseReason.USER,
        questions=(),
    )
    return Step(
        conversation=paused,
        messages=_withdrawal_notes(conversation),
        withdrawn=_open_question_ids(conversation),
        drops_queued=True,
    )


def resume(conversation: Conversation, *, now: datetime) -> Step:
    refuse_archived(conversation)
    if conversation.status is Status.WAITING_INPUT:
        raise Conflict(
            "This conversation waits for your answer.", hint="Answer its question first."
        )
    if conversation.schedule is None:
        raise Conflict("There is no background work to resume.", hint="Give it a schedule.")
    if conversation.pause_reason is None:
        raise Conflict("This work is not paused.")
    resumed = replace(restart_schedule(conversation, now=now), status=Status.BACKGROUND)
    return Step(conversation=resumed)


def run_now(conversation: Conversation) -> Step:
    """Request one run now, regardless of the schedule."""
    refuse_archived(conversation)
    if conversation.status is Status.WAITING_INPUT:
        raise Conflict(
            "This conversation waits for your answer.", hint="Answer its question first."
        )
    if not conversation.has_work:
        raise Conflict("There is no background work to run.", hint="Describe what to do.")
    item = NewItem(kind=ItemKind.RUN_NOW, run_kind=RunKind.BACKGROUND, at_once=True)
    return Step(conversation=conversation, inbox=(item,))


def cancel(
    conversation: Conversation,
    *,
    now: datetime,
    by_parent: bool = False,
    by_itself: bool = False,
    running: bool = False,
) -> Step:
    """Cancel the work; the conversation stays. `running`: a background run is in progress.

    The parent is told unless it did it itself; by whom, the user or the agent of the work. A
    proposal is archived as well: nobody has approved the work that it describes.
    """
    refuse_archived(conversation)
    has_work = conversation.schedule is not None
    if not has_work and not running and conversation.status is not Status.WAITING_INPUT:
        raise Conflict("There is no background work to cancel.")
    cancelled = end_work(conversation, EndedAs.CANCELLED, now=now) if has_work else conversation
    report = Report("It was cancelled.", failed=True, cancelled=True)
    if by_itself:
        report = Report("Its agent stopped it.", failed=True)
    step = Step(
        conversation=replace(cancelled, status=Status.ACTIVE, questions=()),
        messages=_withdrawal_notes(conversation),
        withdrawn=_open_question_ids(conversation),
        stops=Stops.WORK,
        report=report if has_work and not by_parent else None,
        signal=FollowerEvent.ENDED if has_work else None,
    )
    if not is_proposal(conversation):
        return step
    closed = replace(step.conversation, status=Status.ARCHIVED)
    return replace(step, conversation=closed, stops=Stops.EVERYTHING, signal=FollowerEvent.GONE)


def archive(conversation: Conversation, *, now: datetime, stopped: Sequence[str] = ()) -> Step:
    """Close a conversation and end its work. `stopped`: titles of cancelled tasks and jobs."""
    if conversation.status is Status.ARCHIVED:
        raise Conflict("This conversation is already archived.")
    closed, notes = conversation, []
    if conversation.schedule is not None:
        closed = end_work(conversation, EndedAs.CANCELLED, now=now)
        notes.append("Its background work was stopped.")
    if stopped:
        names = ", ".join(repr(title) for title in stopped)
        notes.append(f"Its tasks and jobs were cancelled: {names}. Results are kept.")
    messages = (system_message(" ".join(["Archived.", *notes]), own=True),) if notes else ()
    return Step(
        conversation=replace(closed, status=Status.ARCHIVED, questions=()),
        messages=(*_withdrawal_notes(conversation), *messages),
        withdrawn=_open_question_ids(conversation),
        stops=Stops.EVERYTHING,
        signal=FollowerEvent.GONE,
    )


def hide(conversation: Conversation, *, now: datetime) -> Step:
    """End everything in a conversation that its user has deleted; it may still be restored."""
    ended = conversation
    if conversation.schedule is not None:
        ended = end_work(conversation, EndedAs.CANCELLED, now=now)
    return Step(
        conversation=replace(ended, status=Status.ARCHIVED, questions=()),
        messages=_withdrawal_notes(conversation),
        withdrawn=_open_question_ids(conversation),
        stops=Stops.EVERYTHING,
        ends_all_grants=True,
    )


def show_again(
    conversation: Conversation,
    *,
    was_archived: bool,
    proposed: Question | None,
    now: datetime,
    lost_work: bool = False,
) -> Step:
    """Show a conversation again that its user had deleted. Work that was stopped stays stopped.

    `proposed` is as in `reopen`.
    """
    text = "Restored."
    if lost_work and proposed is None:
        text += " Its background work was stopped when it was deleted, and stays stopped."
    step = Step(conversation=conversation)
    if not was_archived:
        step = reopen(conversation, proposed=proposed, now=now)
    return replace(step, messages=(system_message(text, own=True),))


def reopen(conversation: Conversation, *, proposed: Question | None, now: datetime) -> Step:
    """Reopen an archived conversation; its work stays stopped.

    `proposed` is the last question that proposed its work, if nobody has ever approved that. It is
    asked again: without it, whoever may write could start what the owner has not consented to.
    """
    if conversation.status is not Status.ARCHIVED:
        raise Conflict("This conversation is not archived.")
    if proposed is not None:
        return create.propose_again(conversation, proposed, now=now)
    return Step(conversation=replace(conversation, status=Status.ACTIVE))


def follow_up(
    conversation: Conversation,
    text: str,
    *,
    message_id: MessageId,
    now: datetime,
    outside: bool = False,
) -> Step:
    """Give a completed job a follow-up, in the same agent session.

    `outside`: the session that wrote it had read outside text.
    """
    if conversation.kind is not Kind.JOB:
        raise Conflict("Only a job can be resumed with a follow-up.")
    if conversation.resuming:
        raise Conflict("This job has already been resumed.", hint="Wait until it has finished.")
    completed = conversation.ended_as is EndedAs.COMPLETED
    if not completed or conversation.status is not Status.ACTIVE:
        status = views.job_status(conversation)
        is_running = status is views.JobStatus.RUNNING
        raise Conflict(
            f"Only a completed job can be resumed, and this one is {status or 'idle'}.",
            hint="Wait until it has finished." if is_running else "Start a new one.",
        )
    if not check_message(text).strip():
        raise BadRequest("The message is empty.", hint="Describe what to do.")
    resumed = replace(
        restart_schedule(replace(conversation, schedule=Immediate()), now=now),
        status=Status.BACKGROUND,
        schedule_revision=conversation.schedule_revision + 1,
        set_up_by=None,
        ended_as=None,
        ended_at=None,
        retrieved_at=None,
        resuming=True,
        resume_count=conversation.resume_count + 1,
    )
    message = NewMessage(
        role=MessageRole.USER,
        content=text,
        source=Source.WORKER,
        id=message_id,
        outside=outside,
    )
    item = _message_item(text, message_id, RunKind.BACKGROUND)
    if outside:
        item = replace(item, content={**item.content, "outside": True})
    return Step(conversation=resumed, messages=(message,), inbox=(item,))


def _message_item(
    text: str, message_id: MessageId, run_kind: RunKind, files: Sequence[FileReference] = ()
) -> NewItem:
    content = {"message_id": message_id, "text": text, **dump_files(files)}
    return NewItem(kind=ItemKind.MESSAGE, run_kind=run_kind, content=content)


def _ask_for_profile(step: Step, profile: str) -> Step:
    """Ask for a profile for the run that serves the items of a step; some answers start none."""
    conversation, items = step.conversation, list[NewItem]()
    for item in step.inbox:
        conversation = routing.with_request(conversation, item.run_kind, profile)
        items.append(replace(item, content={**item.content, "profile": profile}))
    return replace(step, conversation=conversation, inbox=tuple(items))


def _open_question_ids(conversation: Conversation) -> tuple[QuestionId, ...]:
    return tuple(question.id for question in conversation.questions)


def _withdrawal_notes(conversation: Conversation) -> tuple[NewMessage, ...]:
    """Tell the next run which of its questions nobody will answer."""
    return tuple(
        message
        for question in conversation.questions
        for message in answers.record(question, withdrawal_note(question.prompt), own=True)
    )
