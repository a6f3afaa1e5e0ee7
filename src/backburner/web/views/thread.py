"""The items of a conversation, from its timeline, in the words of the page."""

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from markupsafe import Markup

from backburner.actions.work.timeline import ItemType, TimelineItem, TimelinePage
from backburner.core.conversation import Message, MessageRole
from backburner.core.ids import ConversationId, RunId
from backburner.core.question import DECLINE, NO
from backburner.core.run import Run, RunKind, RunStatus
from backburner.core.transitions import STOP
from backburner.ports import Answerer, RunDetails, ShownCall, TimelineQuestion
from backburner.web.display import Display, format_duration, format_money
from backburner.web.markdown import RenderedMessages
from backburner.web.rendering import count, load_words
from backburner.web.views.asked_about import name_question
from backburner.web.views.question import show_question
from backburner.web.views.thread_items import (
    AnsweredQuestion,
    DayLine,
    OpenQuestion,
    ShownBackground,
    ShownMark,
    ShownMessage,
    ShownReplyTools,
    ShownTools,
    ThreadItem,
    fold_tools,
    show_beginning,
    show_files,
)
from backburner.web.views.tool_line import show_call

#: Says what a run is doing, which is shown by itself.
_PROGRESS = "report_progress"
#: In what a job reports, before the words that it was started with.
_REQUEST = " Its request was: "
#: Of a page, from its newest message on. Of an older one the beginning is shown, and the rest on
#: request, unless it is kept from before: each page would take seconds.
MAX_RENDERED_CHARS, BEGINNING_CHARS = 300_000, 1_000
_CODE = re.compile(r"`([^`\n]+)`")
#: Answers that a tick would contradict.
_REFUSALS = frozenset({NO, DECLINE, STOP})
_IN_PROGRESS = (RunStatus.RUNNING, RunStatus.QUEUED)


@dataclass(slots=True)
class Thread:
    """Collects what is shown of a page of a timeline, oldest first."""

    conversation_id: ConversationId
    title: str
    display: Display
    rendered: RenderedMessages
    #: What runs in progress say that they are doing, in a line.
    doing: Mapping[RunId, str] = field(default_factory=dict)
    #: The work of the conversation can be run at once.
    may_run: bool = False
    #: What is asked before that.
    run_confirm: str = ""
    items: list[ThreadItem] = field(default_factory=list)
    _runs: Mapping[RunId, tuple[Run, RunDetails]] = field(default_factory=dict)
    #: Runs whose message is on the page: they are shown with it.
    _told: frozenset[RunId] = frozenset()
    #: Runs that have asked something: its card says so.
    _asked: frozenset[RunId | None] = frozenset()
    #: Those of them that wait for the answer.
    _waiting: frozenset[RunId | None] = frozenset()
    #: Of the messages from the one that is being added to the newest.
    _chars: int = 0
    _day: str = ""
    #: The reply to the user's last message.
    _has_failed: bool = False
    #: Background runs in a row that had nothing to report.
    _quiet: list[TimelineItem] = field(default_factory=list)

    def show(self, timeline: TimelinePage, *, is_newest: bool) -> Sequence[ThreadItem]:
        self._runs = timeline.runs
        self._told = frozenset(
            item.message.run_id
            for item in timeline.items
            if item.message is not None
            and item.message.run_id is not None
            and item.message.role is MessageRole.ASSISTANT
        )
        self._asked = frozenset(
            item.asked.question.run_id for item in timeline.items if item.asked is not None
        )
        self._waiting = frozenset(
            item.asked.question.run_id
            for item in timeline.items
            if item.asked is not None and item.asked.closed_at is None
        )
        prompts = frozenset(_list_repeated(timeline))
        self._chars = sum(map(_count_chars, timeline.items))
        for item in reversed(timeline.items):
            if not _is_repeated(item, prompts):
                self._add(item)
            self._chars -= _count_chars(item)
        self._close_quiet()
        if is_newest:
            self._mark_last()
            self._mark_last_background()
        return self.items

    def _add(self, item: TimelineItem) -> None:
        run = item.run
        if run is not None and run.id in self._told:
            return
        if run is not None and _is_quiet(run):
            if run.id not in self._asked:
                self._quiet.append(item)
            return
        self._close_quiet()
        self._begin_day(item)
        if item.asked is not None:
            self.items.append(self._show_question(item.asked))
        elif item.type is ItemType.SKIPPED and run is not None:
            self.items.append(self._show_skipped(run, item))
        elif run is not None and run.kind is RunKind.REPLY:
            self._add_reply(run)
        elif run is not None:
            self.items.append(self._show_background(run, item))
        else:
            self._add_message(item)

    def _add_message(self, item: TimelineItem) -> None:
        run = None if item.run_id is None else self._runs.get(item.run_id, (None,))[0]
        message = item.message
        is_told = message is not None and message.role is MessageRole.ASSISTANT
        if is_told and run is not None and run.kind is not RunKind.REPLY:
            self.items.append(self._show_background(run, item))
        elif message is not None and (shown := self._show_message(item, run)) is not None:
            self.items.append(shown)

    def _show_message(self, item: TimelineItem, run: Run | None) -> ThreadItem | None:
        """Show a message; None: nothing was said or done in it."""
        message = item.message
        assert message is not None  # noqa: S101 (the caller has looked)
        has_failed = run is not None and run.status is RunStatus.FAILURE
        is_reply = run is not None and run.kind is RunKind.REPLY
        if message.role is MessageRole.SYSTEM and not (has_failed and is_reply):
            return self._show_mark(message, _key(item))
        yours = message.role is MessageRole.USER
        if yours:
            self._has_failed = False
        details = RunDetails() if run is None or yours else self._details(run)
        micros = details.cost.amount.micros if details.cost else 0
        if not message.content.strip() and not message.files and not details.shown_calls:
            return None
        # Files that were sent without a word.
        says_names = message.content == ", ".join(file.name for file in message.files)
        return ShownMessage(
            id=message.id,
            key=_key(item),
            yours=yours,
            html=Markup() if says_names else self._render(message.content, message),
            source=message.content,
            time=self.display.clock(message.created_at),
            full_time=self.display.full(message.created_at),
            run_id=run.id if run else "",
            cost=format_money(micros) if micros else "",
            failed=has_failed and not yours,
            outside=message.outside,
            tools=self._show_tools(run, details.shown_calls) if run else ShownTools(),
            files=show_files(message.files),
        )

    def _show_mark(self, message: Message, key: str) -> ShownMark:
        """Show what the program says, and below it what it passes on: the result of a job."""
        text, _, report = message.content.partition("\n\n")
        if report:
            # What was asked for stands with the job.
            text = f"{text.partition(_REQUEST)[0].rstrip('.')}."
        return ShownMark(
            id=message.id,
            key=key,
            burner="rest",
            text=_mark_code(text),
            report=self._render(report, message) if report else None,
        )

    def _add_reply(self, run: Run) -> None:
        self._has_failed = run.status is RunStatus.FAILURE
        is_writing = run.status in _IN_PROGRESS
        tools = self._show_tools(run, self._details(run).shown_calls)
        if is_writing or tools.lines:
            shown = ShownReplyTools(run_id=run.id, tools=tools, is_writing=is_writing)
            self.items.append(shown)

    def _show_background(self, run: Run, item: TimelineItem) -> ShownBackground:
        words, display = load_words().chat, self.display
        working = run.status in _IN_PROGRESS
        failed = run.status is RunStatus.FAILURE
        waits = run.status is RunStatus.QUEUED and run.id in self._waiting
        state = "needs" if waits else "working" if working else "failed" if failed else "done"
        outcomes = {
            "working": words.working_outcome,
            "failed": words.failed_outcome,
            "needs": words.waiting_outcome,
        }
        text = "" if item.message is None else item.message.content
        if failed and not text and run.failure is not None:
            text = run.failure.message
        details, started = self._details(run), display.moment(run.started_at)
        calls = details.shown_calls
        if working and not waits and not text:
            text = self.doing.get(run.id, "" if details.calls else words.thinks)
            text = f"{text[:1].upper()}{text[1:]}"
            calls = [made for made in calls if made.call.tool != _PROGRESS]
        return ShownBackground(
            id=run.id,
            key=_key(item),
            run_id=run.id,
            state=state,
            started_by=words.started[run.started_by.value if run.started_by else "unknown"],
            time=started,
            label=words.ran_label.format(
                time=started, outcome=outcomes.get(state, words.went_well)
            ),
            html=Markup() if not text else self._render(text, item.message or run),
            facts=_describe_run(run, details, display),
            tools=self._show_tools(run, calls) if working else ShownTools(),
            files=() if item.message is None else show_files(item.message.files),
        )

    def _render(self, text: str, source: Message | Run) -> Markup:
        """Render what a message says, or what is said of a run; of what is too much, a part."""
        fits = self._chars <= MAX_RENDERED_CHARS or len(text) <= BEGINNING_CHARS
        if fits or isinstance(source, Run):
            return self.rendered.render(source.id, text)
        kept = self.rendered.find(source.id, text)
        if kept is not None:
            return kept
        path = f"/page/c/{self.conversation_id}/message/{source.id}"
        return show_beginning(text[:BEGINNING_CHARS], source.id, path)

    def _show_question(self, asked: TimelineQuestion) -> ThreadItem:
        question, words = asked.question, load_words().question
        key = question.asked_at.isoformat()
        if asked.closed_at is None:
            card = show_question(question, self.conversation_id, self.title, self.display)
            return OpenQuestion(replace(card, key=key))
        when = self.display.time(asked.closed_at)
        if asked.answer is None:
            title = question.prompt.strip().partition("\n")[0]
            how = f"{words.withdrawn}, {when}"
            return AnsweredQuestion(id=question.id, key=key, answer=title, how=how, done=False)
        return AnsweredQuestion(
            id=question.id,
            key=key,
            answer=f"{asked.answer[:1].upper()}{asked.answer[1:]}.",
            how=f"{_describe_answerer(asked.answered_by)}, {when} · {name_question(question)}",
            done=asked.answer not in _REFUSALS,
        )

    def _show_skipped(self, run: Run, item: TimelineItem) -> ThreadItem:
        skipped, words = run.skipped, load_words().chat
        assert skipped is not None  # noqa: S101 (the item says so)
        when = self.display.moment(skipped.gap.first_at)
        text = count(words.skipped, skipped.gap.count, when=when, reason=skipped.in_words)
        return ShownMark(id=run.id, key=_key(item), burner="rest", text=text)

    def _details(self, run: Run) -> RunDetails:
        return self._runs[run.id][1] if run.id in self._runs else RunDetails()

    def _show_tools(self, run: Run, calls: Iterable[ShownCall]) -> ShownTools:
        return fold_tools(run.id, [show_call(made, self.display.now) for made in calls])

    def _begin_day(self, item: TimelineItem) -> None:
        day = self.display.day(item.at)
        if day != self._day:
            # The first of today needs no line.
            if self._day or day != self.display.day(self.display.now):
                self.items.append(DayLine(day))
            self._day = day

    def _close_quiet(self) -> None:
        if not self._quiet:
            return
        first, last = self._quiet[0], self._quiet[-1]
        self._begin_day(first)
        words = load_words().chat
        text = count(words.nothing_to_report, len(self._quiet), when=self.display.moment(first.at))
        last_id = last.run_id or ""
        self.items.append(ShownMark(id=last_id, key=_key(first), burner="done", text=text))
        self._quiet = []

    def _mark_last(self) -> None:
        """Show what can be done with the last messages."""
        for number in range(len(self.items) - 1, -1, -1):
            item = self.items[number]
            if isinstance(item, ShownMessage):
                is_edit = item.yours
                # A reply that failed before it said anything has no message of its own.
                again = self._has_failed if is_edit else self._mark_own(number)
                self.items[number] = replace(item, last=True, can_edit=is_edit, can_retry=again)
                return

    def _mark_last_background(self) -> None:
        """Offer to run the work again if its last run has failed."""
        for number in range(len(self.items) - 1, -1, -1):
            item = self.items[number]
            if isinstance(item, ShownBackground):
                if self.may_run and item.state == "failed":
                    call = f"POST /api/conversations/{self.conversation_id}/run-now"
                    self.items[number] = replace(item, run_again=call, run_confirm=self.run_confirm)
                return

    def _mark_own(self, before: int) -> bool:
        """Make the message that was replied to editable; return whether there is one."""
        for number in range(before - 1, -1, -1):
            item = self.items[number]
            if isinstance(item, ShownMessage) and item.yours:
                self.items[number] = replace(item, can_edit=True)
                return True
        return False


def _list_repeated(timeline: TimelinePage) -> Iterator[str]:
    """List the messages of runs that say what the card of a question says already."""
    for item in timeline.items:
        if item.asked is not None:
            yield item.asked.question.prompt.strip()


def _is_repeated(item: TimelineItem, prompts: Container[str]) -> bool:
    message = item.message
    return message is not None and (
        message.closes is not None or message.content.strip() in prompts
    )


def _mark_code(text: str) -> Markup:
    """Show what is between backquotes as code."""
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 else part
        for number, part in enumerate(_CODE.split(text))
    )


def _count_chars(item: TimelineItem) -> int:
    return 0 if item.message is None else len(item.message.content)


def _key(item: TimelineItem) -> str:
    return item.at.isoformat()


def _is_quiet(run: Run) -> bool:
    """Say whether a run has ended well and said nothing."""
    is_background = run.kind is not RunKind.REPLY and run.skipped is None
    return is_background and run.status is RunStatus.SUCCESS and not run.result


def _describe_answerer(answerer: Answerer | None) -> str:
    words = load_words().question
    if answerer is None or answerer.kind in ("session", "link") or not answerer.name:
        return str(words.you_answered)
    return str(words.you_answered_on.format(channel=answerer.name))


def _describe_run(run: Run, details: RunDetails, display: Display) -> str:
    words = load_words().chat
    end = run.ended_at or display.now
    micros = details.cost.amount.micros if details.cost else 0
    parts = [
        count(words.steps, details.calls),
        format_duration(max(end - run.started_at, timedelta())),
        format_money(micros) if micros else "",
    ]
    return " · ".join(part for part in parts if part)
