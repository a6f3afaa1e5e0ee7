"""Editing existing work, and cancelling it together with its conversation."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from backburner.core.conversation import (
    MAX_TITLE_CHARS,
    Conversation,
    Destination,
    Kind,
    Notify,
    OnRepeatedFailure,
    Status,
    check_state,
)
from backburner.core.errors import BadRequest, Conflict
from backburner.core.ids import RunId
from backburner.core.schedule import Schedule
from backburner.core.transitions import by_user, create
from backburner.core.transitions.shared_changes import is_proposal, refuse_archived
from backburner.core.transitions.step import FollowerEvent, Report, Step, Stops, system_message
from backburner.core.validation import check_message, check_text, normalize_title


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The description of work, without its schedule."""

    title: str
    prompt: str
    description: str
    notify: Notify
    max_runs: int | None
    run_timeout: timedelta | None
    tools: tuple[str, ...] | None
    connections: tuple[str, ...] | None
    reports_to: tuple[Destination, ...]
    on_repeated_failure: OnRepeatedFailure

    @classmethod
    def of(cls, conversation: Conversation) -> "Terms":
        context = conversation.state.context
        return cls(
            title=conversation.title,
            prompt=str(context.get("prompt", "")),
            description=str(context.get("description", "")),
            notify=conversation.notify,
            max_runs=conversation.max_runs,
            run_timeout=conversation.run_timeout,
            tools=conversation.tools,
            connections=conversation.connections,
            reports_to=conversation.reports_to,
            on_repeated_failure=conversation.on_repeated_failure,
        )


def edit_terms(
    conversation: Conversation,
    terms: Terms,
    *,
    now: datetime,
    schedule: Schedule | None = None,
    moved: Conversation | None = None,
    by_run: RunId | None = None,
) -> Step:
    """Change the terms of work, and perhaps its schedule; a changed proposal is asked again.

    `moved` is the conversation with another model, if that changes as well; `by_run`, the run whose
    agent changes it.
    """
    refuse_archived(conversation)
    _check_terms(conversation, terms)
    context = {
        **conversation.state.context,
        "prompt": terms.prompt,
        "description": terms.description,
    }
    edited = replace(
        moved or conversation,
        title=normalize_title(terms.title),
        state=replace(conversation.state, context=context),
        notify=terms.notify,
        max_runs=terms.max_runs,
        run_timeout=terms.run_timeout,
        tools=terms.tools,
        connections=terms.connections,
        reports_to=terms.reports_to,
        on_repeated_failure=terms.on_repeated_failure,
    )
    check_state(edited.state)
    if edited != conversation and by_run != conversation.set_up_by:
        edited = replace(edited, set_up_by=None)
    if schedule is not None:
        step = by_user.set_schedule(edited, schedule, now=now, by_run=by_run)
    else:
        step = apply_change(conversation, edited, now=now)
    before = Terms.of(conversation)
    is_other_work = _rights(terms) != _rights(before)
    return replace(step, ends_all_grants=is_other_work)


def _rights(terms: Terms) -> tuple[object, ...]:
    """Return what the grants of work were given for."""
    return terms.prompt, terms.description, terms.tools, terms.connections


def apply_change(before: Conversation, after: Conversation, *, now: datetime) -> Step:
    """Apply a change; a changed proposal is asked again: approval is for what was shown."""
    if after == before or not is_proposal(before):
        return Step(conversation=after)
    # The same terms may be proposed again later: the revision makes that a different question.
    later = replace(after, schedule_revision=before.schedule_revision + 1)
    return create.repropose(later, now=now)


def cancel_and_archive(
    conversation: Conversation,
    reason: str,
    *,
    now: datetime,
    by_parent: bool = False,
    running: bool = False,
) -> Step:
    """Cancel work and archive its conversation, with the reason; a chat stays open."""
    refuse_archived(conversation)
    reason = " ".join(check_message(reason).split())
    text = f"It was cancelled: {reason}" if reason else "It was cancelled."
    is_chat = conversation.kind is Kind.CHAT
    has_work = conversation.schedule is not None
    is_busy = has_work or running or conversation.status is Status.WAITING_INPUT
    if is_chat and not is_busy:
        raise Conflict("There is no background work to cancel.")
    step = Step(conversation=conversation)
    if is_busy:
        step = by_user.cancel(conversation, now=now, by_parent=by_parent, running=running)
    report = None if step.report is None else Report(text, failed=True, cancelled=True)
    step = replace(step, messages=(*step.messages, system_message(text, own=True)), report=report)
    if is_chat:
        return step
    return replace(
        step,
        conversation=replace(step.conversation, status=Status.ARCHIVED),
        stops=Stops.EVERYTHING,
        signal=FollowerEvent.STOPPED if has_work else FollowerEvent.GONE,
    )


def _check_terms(conversation: Conversation, terms: Terms) -> None:
    check_text("The title", terms.title, limit=MAX_TITLE_CHARS)
    if not terms.title.strip() or not terms.prompt.strip():
        raise BadRequest("Work needs a name and a prompt.", hint="Describe what to do.")
    run_count, max_runs = conversation.run_count, terms.max_runs
    if max_runs is not None and max_runs != conversation.max_runs and max_runs <= run_count:
        raise BadRequest(
            f"It has run {run_count} times, so max_runs must be {run_count + 1} or more.",
            hint="Omit it for no limit.",
        )
