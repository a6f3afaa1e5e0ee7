"""Schedules in words, what could be typed for them, and what a typed text would mean."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from backburner.actions.schedules import SchedulePreview
from backburner.actions.work.schedule_choices import ScheduleChoices
from backburner.core import schedule as schedules
from backburner.core.conversation import Conversation, Status
from backburner.core.errors import BackburnerError
from backburner.core.schedule import (
    After,
    AfterCondition,
    CatchUp,
    Cron,
    Immediate,
    Interval,
    Schedule,
    Scheduled,
)
from backburner.core.schedule.describe import describe
from backburner.core.schedule.phrases import MAX_PHRASE_CHARS, PHRASE_HINT
from backburner.core.schedule.short_phrases import to_input, to_phrase
from backburner.core.work.views import TaskStatus, task_status
from backburner.web.display import Display
from backburner.web.rendering import capitalize_first, load_words

_DAY = re.compile(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b")
_CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True, slots=True)
class HintPart:
    """A part of a hint; an example can be taken over by a click."""

    text: str
    is_example: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPreview:
    words: str = ""
    times: Sequence[datetime] = ()
    warnings: Sequence[str] = ()
    problem: str = ""
    hint: Sequence[HintPart] = ()
    is_at_once: bool = False


@dataclass(frozen=True, slots=True)
class OtherWork:
    id: str
    title: str
    is_chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleEditor:
    conversation: Conversation
    #: As it is now; empty: it does not run by itself.
    words: str
    #: What the field begins with.
    typed: str
    #: What that means.
    preview: ShownPreview
    #: It has no work yet; what it could do is what was said last.
    needs_what: bool
    request: str
    others: Sequence[OtherWork]
    is_after: bool
    on_any: bool
    #: What becomes of times that it misses; None: it misses none.
    missed: CatchUp | None
    is_proposal: bool
    can_run: bool
    #: What is asked before it runs now.
    run_confirm: str
    can_pause: bool


def say_schedule(schedule: Schedule, display: Display, *, other: str | None = None) -> str:
    """Say when something runs, as short as it can be; `other` is the title of work before it."""
    words = load_words().schedule
    match schedule:
        case Immediate():
            return str(words.at_once)
        case Scheduled(run_at):
            return str(words.once.format(time=display.moment(run_at)))
        case After(on=on) if other is not None:
            form = words.after if on is AfterCondition.SUCCESS else words.after_any
            return str(form.format(title=other))
        case _:
            text = to_phrase(schedule) or describe(schedule, zone=display.zone)
            text = _DAY.sub(lambda day: day[0].capitalize(), text)
    if isinstance(schedule, Cron) and schedule.zone != display.zone and schedule.zone not in text:
        text = f"{text} ({schedule.zone})"
    return capitalize_first(text.removesuffix(f" ({display.zone})"))


def confirm_run(conversation: Conversation, display: Display) -> str:
    """Say that a run now would be the only one; empty: there are others."""
    at = conversation.next_run_at
    if at is None or not isinstance(conversation.schedule, Scheduled):
        return ""
    words = load_words().schedule
    if display.is_today(at):
        return str(words.run_confirm_today.format(time=display.clock(at)))
    return str(words.run_confirm.format(time=display.moment(at)))


def starts_with_day(text: str) -> bool:
    return _DAY.match(text.lower()) is not None


def describe_misses(schedule: Schedule | None) -> str:
    """Say in which zone something runs by the clock, and what becomes of times it misses."""
    words = load_words().schedule
    if not isinstance(schedule, Cron | Interval):
        return ""
    skips = schedule.catch_up is CatchUp.SKIP
    missed = str(words.missed_times_skipped if skips else words.missed_times_run)
    if isinstance(schedule, Interval):
        return capitalize_first(missed)
    return str(words.zone_and_missed.format(zone=schedule.zone, missed=missed))


def show_preview(preview: SchedulePreview, display: Display) -> ShownPreview:
    schedule = preview.schedule
    return ShownPreview(
        words=say_schedule(schedule, display),
        times=preview.times,
        warnings=preview.warnings,
        is_at_once=isinstance(schedule, Immediate),
    )


def show_problem(error: BackburnerError, text: str) -> ShownPreview:
    if error.hint == PHRASE_HINT and len(text) <= MAX_PHRASE_CHARS:
        words = load_words().schedule
        return ShownPreview(problem=words.unknown, hint=split_hint(words.unknown_hint))
    return ShownPreview(problem=error.message, hint=split_hint(error.hint))


def split_hint(hint: str) -> Sequence[HintPart]:
    """Split a hint at its examples, which stand between backticks."""
    texts = _CODE.split(hint)
    parts = [HintPart(text, bool(number % 2)) for number, text in enumerate(texts)]
    return [part for part in parts if part.text]


def show_editor(choices: ScheduleChoices, display: Display) -> ScheduleEditor:
    conversation = choices.conversation
    schedule, status = conversation.schedule, conversation.status
    after = schedule if isinstance(schedule, After) else None
    is_proposal = task_status(conversation) is TaskStatus.PROPOSED
    typed, said = None, ""
    if schedule is not None:
        typed = to_input(schedule, zone=display.zone, now=display.now)
        said = say_schedule(schedule, display, other=choices.after)
    return ScheduleEditor(
        conversation=conversation,
        words=said,
        typed=typed or "",
        preview=ShownPreview()
        if schedule is None or not typed
        else ShownPreview(words=said, times=schedules.upcoming(schedule, now=display.now)),
        needs_what=not conversation.has_work,
        request=choices.last_request,
        others=[
            OtherWork(
                one.id,
                one.title or load_words().common.untitled,
                after is not None and after.conversation == one.id,
            )
            for one in choices.others
        ],
        is_after=after is not None,
        on_any=after is not None and after.on is AfterCondition.ANY,
        missed=schedule.catch_up if isinstance(schedule, Cron | Interval) else None,
        is_proposal=is_proposal,
        can_run=_can_run(conversation) and not is_proposal,
        run_confirm=confirm_run(conversation, display),
        can_pause=schedule is not None
        and not is_proposal
        and conversation.pause_reason is None
        and status is not Status.ARCHIVED,
    )


def _can_run(conversation: Conversation) -> bool:
    return conversation.has_work and conversation.status in (Status.ACTIVE, Status.BACKGROUND)
