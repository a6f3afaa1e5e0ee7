"""What people do to a conversation: talk, schedule, pause, stop, archive."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from backburner.core import schedule as schedules
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
    check_message,
    check_state,
    make_title,
)
from backburner.core.errors import BadRequest, Conflict
from backburner.core.ids import MessageId, QuestionId
from backburner.core.question import match_chat_message
from backburner.core.run import ItemKind, NewItem, RunKind
from backburner.core.schedule import Immediate, Schedule
from backburner.core.transitions import answers, create
from backburner.core.transitions.moves import (
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
from backburner.core.validation import check_text
from backburner.core.work import views


def receive_message(
    conversation: Conversation, text: str, *, message_id: MessageId, now: datetime
) -> Step:
    """Take a user's message: an answer to the shown question if it fits, else to be replied to."""
    refuse_archived(conversation)
    if not check_message(text).strip():
        raise BadRequest("The message is empty.", hint="Say something.")
    spoken = NewMessage(role=MessageRole.USER, content=text, source=Source.CHAT, id=message_id)
    heard = replace(
        conversation, title=conversation.title or make_title(text), unattended_replies=0
    )
    shown = heard.pending_question
    meant = None if shown is None else match_chat_message(shown, text)
    if shown is not None and meant is not None:
        step = answers.answer(heard, shown.id, meant, now=now)
        return replace(step, messages=(spoken, *step.messages))
    item = _said(text, message_id, RunKind.REPLY)
    return Step(conversation=heard, messages=(spoken,), inbox=(item,))


def set_schedule(
    conversation: Conversation, schedule: Schedule, *, now: datetime, state: State | None = None
) -> Step:
    """Give a conversation background work, or the work it has another time."""
    refuse_archived(conversation)
    schedules.check_schedule(schedule, now=now)
    state = state or conversation.state
    check_state(state)
    if not state.context:
        raise BadRequest("Background work needs a description.", hint="Say what is to be done.")
    is_new = conversation.schedule is None
    changed = replace(
        restart_schedule(replace(conversation, schedule=schedule), now=now),
        status=Status.BACKGROUND if conversation.status is Status.ACTIVE else conversation.status,
        schedule_revision=conversation.schedule_revision + 1,
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
    return Step(conversation=changed, drops_queued=True)


def rename(conversation: Conversation, title: str) -> Step:
    check_text("The title", title, limit=MAX_TITLE_CHARS)
    if not title.strip():
        raise BadRequest("The title is empty.", hint="Say how to call it.")
    return Step(conversation=replace(conversation, title=" ".join(title.split())))


def pause(conversation: Conversation) -> Step:
    refuse_archived(conversation)
    if conversation.schedule is None:
        raise Conflict("There is no background work to pause.")
    if is_proposal(conversation):
        raise Conflict("This work has not been approved yet.", hint="Approve or dismiss it.")
    if conversation.pause_reason is not None:
        raise Conflict("This work is already paused.", hint="Resume it to let it go on.")
    # The schedule stays: resuming computes the next time from then, so paused slots are never due.
    paused = replace(
        conversation,
        status=Status.ACTIVE,
        next_run_at=None,
        pause_reason=PauseReason.USER,
        questions=(),
    )
    return Step(conversation=paused, withdrawn=_open(conversation), drops_queued=True)


def resume(conversation: Conversation, *, now: datetime) -> Step:
    refuse_archived(conversation)
    if conversation.status is Status.WAITING_INPUT:
        raise Conflict("This conversation waits for your answer.", hint="Answer the question.")
    if conversation.schedule is None:
        raise Conflict("There is no background work to resume.", hint="Give it a schedule.")
    if conversation.pause_reason is None:
        raise Conflict("This work is not paused.")
    going = replace(restart_schedule(conversation, now=now), status=Status.BACKGROUND)
    return Step(conversation=going)


def run_now(conversation: Conversation) -> Step:
    """Ask for one run at once, whatever the schedule says."""
    refuse_archived(conversation)
    if conversation.status is Status.WAITING_INPUT:
        raise Conflict("This conversation waits for your answer.", hint="Answer the question.")
    if not conversation.has_work:
        raise Conflict("There is no background work to run.", hint="Say what is to be done.")
    item = NewItem(kind=ItemKind.RUN_NOW, run_kind=RunKind.BACKGROUND, at_once=True)
    return Step(conversation=conversation, inbox=(item,))


def cancel(
    conversation: Conversation, *, now: datetime, by_parent: bool = False, running: bool = False
) -> Step:
    """Stop the work for good; the conversation stays. `running`: a background run is under way."""
    refuse_archived(conversation)
    has_work = conversation.schedule is not None
    if not has_work and not running and conversation.status is not Status.WAITING_INPUT:
        raise Conflict("There is no background work to stop.")
    stopped = end_work(conversation, EndedAs.CANCELLED, now=now) if has_work else conversation
    tells_parent = has_work and not by_parent
    return Step(
        conversation=replace(stopped, status=Status.ACTIVE, questions=()),
        withdrawn=_open(conversation),
        stops=Stops.WORK,
        report=Report("It was cancelled.", failed=True) if tells_parent else None,
        signal=FollowerEvent.ENDED if has_work else None,
    )


def archive(conversation: Conversation, *, now: datetime, stopped: Sequence[str] = ()) -> Step:
    """Close a conversation; work that it had, or had handed out, is over, and it says so."""
    if conversation.status is Status.ARCHIVED:
        raise Conflict("This conversation is already archived.")
    closed, told = conversation, []
    if conversation.schedule is not None:
        closed = end_work(conversation, EndedAs.CANCELLED, now=now)
        told.append("Its background work was stopped.")
    if stopped:
        names = ", ".join(repr(title) for title in stopped)
        told.append(f"What it had handed out was cancelled: {names}. Results are kept.")
    messages = (system_message(" ".join(["Archived.", *told])),) if told else ()
    return Step(
        conversation=replace(closed, status=Status.ARCHIVED, questions=()),
        messages=messages,
        withdrawn=_open(conversation),
        stops=Stops.EVERYTHING,
        signal=FollowerEvent.GONE,
    )


def reopen(conversation: Conversation) -> Step:
    """Open an archived conversation again; what was stopped stays stopped."""
    if conversation.status is not Status.ARCHIVED:
        raise Conflict("This conversation is not archived.")
    # A proposal that was dismissed and is opened again is a conversation like any other.
    if conversation.ended_as is EndedAs.DISMISSED:
        conversation = replace(conversation, ended_as=None, ended_at=None)
    return Step(conversation=replace(conversation, status=Status.ACTIVE))


def follow_up(
    conversation: Conversation, text: str, *, message_id: MessageId, now: datetime
) -> Step:
    """Give a completed job one more thing to do, in the same agent session."""
    if conversation.kind is not Kind.JOB:
        raise Conflict("Only a job can be resumed with a follow-up.")
    if conversation.resuming:
        raise Conflict("This job is being resumed already.", hint="Wait until it has finished.")
    completed = conversation.ended_as is EndedAs.COMPLETED
    if not completed or conversation.status is not Status.ACTIVE:
        status = views.job_status(conversation)
        at_work = status is views.JobStatus.RUNNING
        raise Conflict(
            f"Only a completed job can be resumed, and this one is {status or 'none'}.",
            hint="Wait until it has finished." if at_work else "Start a new one.",
        )
    if not check_message(text).strip():
        raise BadRequest("The message is empty.", hint="Say what is to be done.")
    working = replace(
        restart_schedule(replace(conversation, schedule=Immediate()), now=now),
        status=Status.BACKGROUND,
        schedule_revision=conversation.schedule_revision + 1,
        ended_as=None,
        ended_at=None,
        retrieved_at=None,
        resuming=True,
        resume_count=conversation.resume_count + 1,
    )
    asked = NewMessage(role=MessageRole.USER, content=text, source=Source.WORKER, id=message_id)
    item = _said(text, message_id, RunKind.BACKGROUND)
    return Step(conversation=working, messages=(asked,), inbox=(item,))


def _said(text: str, message_id: MessageId, run_kind: RunKind) -> NewItem:
    content = {"message_id": message_id, "text": text}
    return NewItem(kind=ItemKind.MESSAGE, run_kind=run_kind, content=content)


def _open(conversation: Conversation) -> tuple[QuestionId, ...]:
    return tuple(question.id for question in conversation.questions)
