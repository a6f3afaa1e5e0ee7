"""Creating conversations: chats, tasks, jobs, proposals and discovery."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from backburner.core import schedule
from backburner.core.conversation import (
    MAX_TITLE_CHARS,
    Author,
    Conversation,
    Destination,
    Kind,
    Notify,
    OnRepeatedFailure,
    State,
    Status,
    Uses,
    WorkFolder,
    check_state,
)
from backburner.core.errors import BadRequest
from backburner.core.ids import ConversationId, MessageId, RunId, UserId
from backburner.core.question import Purpose, Question
from backburner.core.schedule import Immediate, Interval, Schedule
from backburner.core.schedule.serialize import from_json
from backburner.core.transitions.shared_changes import open_question
from backburner.core.transitions.step import Step
from backburner.core.validation import check_text, normalize_title
from backburner.core.work import proposal

DISCOVERY_TITLE = "Discovery"
#: The batch of jobs that try out a task; their reports get no reply.
TEST_RUN_BATCH = "test run"


def is_test_run(conversation: Conversation) -> bool:
    return conversation.kind is Kind.JOB and conversation.batch == TEST_RUN_BATCH


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """The complete description of work: enough to do it without knowing the conversation."""

    title: str
    prompt: str
    schedule: Schedule
    description: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    notify: Notify = Notify.ON_CHANGE
    max_runs: int | None = None
    run_timeout: timedelta | None = None
    folder: WorkFolder | None = None
    tools: tuple[str, ...] | None = None
    connections: tuple[str, ...] | None = None
    uses: Uses = None
    agent: str | None = None
    profile: str | None = None
    reports_to: tuple[Destination, ...] = ()
    parent_id: ConversationId | None = None
    set_up_by: RunId | None = None
    parent_run_id: RunId | None = None
    parent_message_id: MessageId | None = None
    root_id: ConversationId | None = None
    batch: str | None = None
    created_by: Author = Author.USER
    on_repeated_failure: OnRepeatedFailure = OnRepeatedFailure.PAUSE


def start_chat(conversation_id: ConversationId, user_id: UserId, *, now: datetime) -> Step:
    return Step(
        conversation=Conversation(
            id=conversation_id, user_id=user_id, kind=Kind.CHAT, created_at=now
        )
    )


def start_task(
    conversation_id: ConversationId, user_id: UserId, brief: Brief, *, now: datetime
) -> Step:
    return Step(conversation=_new_work(conversation_id, user_id, Kind.TASK, brief, now))


def start_job(
    conversation_id: ConversationId, user_id: UserId, brief: Brief, *, now: datetime
) -> Step:
    """Start a job for another conversation: once, and immediately."""
    immediate = replace(brief, schedule=Immediate())
    return Step(conversation=_new_work(conversation_id, user_id, Kind.JOB, immediate, now))


def start_discovery(
    conversation_id: ConversationId,
    user_id: UserId,
    *,
    every: timedelta,
    now: datetime,
    folder: WorkFolder | None = None,
    params: Mapping[str, Any] | None = None,
) -> Step:
    """Create the conversation that looks for work to propose; it first runs after `every`.

    It only reads in its folder.
    """
    brief = Brief(
        title=DISCOVERY_TITLE,
        folder=folder and replace(folder, read_only=True),
        params=params or {},
        prompt=proposal.DISCOVERY_PROMPT,
        schedule=Interval(every, anchor=now + every),
        created_by=Author.AGENT,
    )
    return Step(conversation=_new_work(conversation_id, user_id, Kind.DISCOVERY, brief, now))


def propose(
    conversation_id: ConversationId,
    user_id: UserId,
    brief: Brief,
    *,
    why: str,
    now: datetime,
    zone: str = "UTC",
) -> Step:
    """Propose a task: nothing runs until its owner approves exactly this task."""
    proposed = _new_work(conversation_id, user_id, Kind.TASK, brief, now)
    question = proposal.proposal_question(proposed, why, now=now, zone=zone)
    return open_question(replace(proposed, next_run_at=None), question)


def repropose(conversation: Conversation, *, now: datetime) -> Step:
    """Ask again about a proposal that was changed: approval is for what was shown."""
    questions = conversation.questions
    (last,) = (one for one in questions if one.purpose is Purpose.PROPOSAL)
    step = _ask_again(replace(conversation, questions=(), next_run_at=None), last, now=now)
    withdrawn = tuple(question.id for question in questions)
    return replace(step, withdrawn=withdrawn, drops_queued=True)


def propose_again(conversation: Conversation, last: Question, *, now: datetime) -> Step:
    """Propose work again whose proposal was withdrawn or rejected, with what it asked last."""
    timed = last.binds_to["shown"]["schedule"]
    proposed = replace(
        conversation,
        schedule=None if timed is None else from_json(timed),
        # The same may be proposed again: the revision makes that a different question.
        schedule_revision=conversation.schedule_revision + 1,
        ended_as=None,
        ended_at=None,
    )
    return _ask_again(proposed, last, now=now)


def _ask_again(proposed: Conversation, last: Question, *, now: datetime) -> Step:
    why, zone = str(last.binds_to["why"]), str(last.binds_to.get("zone", "UTC"))
    return open_question(proposed, proposal.proposal_question(proposed, why, now=now, zone=zone))


def _new_work(
    conversation_id: ConversationId, user_id: UserId, kind: Kind, brief: Brief, now: datetime
) -> Conversation:
    check_text("The title", brief.title, limit=MAX_TITLE_CHARS)
    if not brief.title.strip() or not brief.prompt.strip():
        raise BadRequest("Work needs a name and a prompt.", hint="Describe what to do.")
    if brief.max_runs is not None and brief.max_runs < 1:
        raise BadRequest("max_runs must be 1 or more.", hint="Omit it for no limit.")
    schedule.check_schedule(brief.schedule, now=now)
    context = {**brief.params, "prompt": brief.prompt, "description": brief.description}
    state = State(context=context)
    check_state(state)
    return Conversation(
        id=conversation_id,
        user_id=user_id,
        kind=kind,
        created_at=now,
        status=Status.BACKGROUND,
        title=normalize_title(brief.title),
        created_by=brief.created_by,
        parent_id=brief.parent_id,
        set_up_by=brief.set_up_by,
        parent_run_id=brief.parent_run_id,
        parent_message_id=brief.parent_message_id,
        root_id=brief.root_id,
        batch=brief.batch,
        schedule=brief.schedule,
        schedule_revision=1,
        next_run_at=schedule.first_run_at(brief.schedule, now=now),
        state=state,
        max_runs=brief.max_runs,
        run_timeout=brief.run_timeout,
        folder=brief.folder,
        tools=brief.tools,
        connections=brief.connections,
        uses=brief.uses,
        agent=brief.agent,
        requested_profile=brief.profile,
        on_repeated_failure=brief.on_repeated_failure,
        notify=brief.notify,
        reports_to=brief.reports_to,
    )
