"""The page of a run: how it ended and what to do about it, its facts, and what it was told."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from markupsafe import Markup

from backburner.actions.work.run_pages import RunPage
from backburner.core.allowance import AllowanceScope
from backburner.core.content.excerpt import plain_text
from backburner.core.conversation import Conversation, Status
from backburner.core.run import FailureKind, Run, RunKind, RunStatus
from backburner.core.schedule.describe import MONTHS, WEEKDAYS
from backburner.core.work.run_facts import CauseKind, OutcomeKind, RunCause
from backburner.ports import RunCost
from backburner.web.display import Display, format_duration, format_money, format_size
from backburner.web.markdown import RenderedMessages
from backburner.web.markdown.characters import clean_source, escape_code, without_hidden
from backburner.web.rendering import load_words
from backburner.web.views.exact_text import ExactText
from backburner.web.views.runs.waterfall import Waterfall, show_waterfall
from backburner.web.views.thread_items import ShownFile, show_files
from backburner.web.views.tool_line import describe_call

#: Of what it was told, before it is opened.
MAX_TOLD = 300
#: A longer result is quoted in part; the chat has all of it.
MAX_RESULT = 2_000
#: Shorter waits are not worth a word.
MIN_WAIT = timedelta(seconds=1)
_WORK, _JSON = re.compile(r"(?:^|\n\n)# Your work\n"), json.JSONDecoder()
_SIGNS = {
    OutcomeKind.RUNNING: ("working", "pilot"),
    OutcomeKind.WAITING: ("paused", ""),
    OutcomeKind.DONE: ("done", "ok"),
    OutcomeKind.ASKED: ("done", "ok"),
    OutcomeKind.FAILED: ("failed", "bad"),
    OutcomeKind.STOPPED: ("rest", ""),
    OutcomeKind.SKIPPED: ("rest", ""),
}


@dataclass(frozen=True, slots=True)
class NextStep:
    """A next step for a run: a link, or a request to the API."""

    label: str
    href: str = ""
    call: str = ""
    icon: str = ""
    confirm: str = ""
    toast: str = ""
    is_main: bool = False


@dataclass(frozen=True, slots=True)
class RunFact:
    name: str
    value: str
    #: Smaller, after the value.
    more: str = ""
    href: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class OtherTry:
    id: str
    label: str
    is_failed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRun:
    id: str
    conversation: Conversation
    title: str
    moment: str
    full_time: str
    sign: str
    tone: str
    ending: str
    #: One sentence; `html` is rendered, and replaces it.
    outcome: str
    html: Markup
    what_to_do: str
    next_steps: Sequence[NextStep]
    facts: Sequence[RunFact]
    tries: Sequence[OtherTry]
    previous: str
    following: str
    #: It runs now, so the page looks again by itself.
    is_running: bool
    #: It may still change.
    is_open: bool
    waterfall: Waterfall
    files: Sequence[ShownFile]
    told: Sequence[ExactText] = field(default=())
    told_size: str = ""
    #: The beginning of it, which is known while it runs as well.
    told_first: str = ""


def show_run(page: RunPage, display: Display, rendered: RenderedMessages) -> ShownRun:
    run, words = page.run, load_words().run
    ending = page.outcome.ending
    sign, tone = _SIGNS[ending]
    is_asking = any(one.closed_at is None for one in page.asked)
    if ending in (OutcomeKind.WAITING, OutcomeKind.ASKED) and is_asking:
        sign, tone = "needs", "ember"
    text, html = _show_outcome(page, display.now, rendered)
    prompts = [text for text in page.prompts if text.strip()]
    return ShownRun(
        id=run.id,
        conversation=page.conversation,
        title=page.title,
        moment=describe_moment(run.started_at, display),
        full_time=display.full(run.started_at),
        sign=sign,
        tone=tone,
        ending=words.endings[ending.value],
        outcome=text,
        html=html,
        what_to_do=page.outcome.what_to_do or "",
        next_steps=list(list_next_steps(page)),
        facts=list(_list_facts(page, display)),
        tries=_list_tries(page, display),
        previous="" if page.previous is None else page.previous.id,
        following="" if page.following is None else page.following.id,
        is_running=run.status is RunStatus.RUNNING,
        is_open=run.status in (RunStatus.RUNNING, RunStatus.QUEUED),
        waterfall=show_waterfall(page, display.now),
        files=_list_files(page),
        told=[show_told(text) for text in prompts],
        told_size=format_size(sum(len(text.encode()) for text in prompts)),
        told_first=_begin_told(page, prompts),
    )


def describe_moment(at: datetime, display: Display) -> str:
    """Name a time with its day: Monday 16 November, 8:00."""
    local = display.local(at)
    year = "" if local.year == display.local(display.now).year else f" {local.year}"
    day = f"{WEEKDAYS[local.weekday()]} {local.day} {MONTHS[local.month - 1]}{year}"
    return f"{day}, {display.clock(at)}"


def list_next_steps(page: RunPage) -> Iterator[NextStep]:
    """List what can be done about a run; the first is the most likely."""
    run, words = page.run, load_words().run.actions
    api = f"/api/conversations/{page.conversation.id}"
    if run.status is RunStatus.RUNNING and run.kind is RunKind.REPLY:
        yield NextStep(words.stop, call=f"POST {api}/stop", icon="stop")
    elif run.status is RunStatus.RUNNING:
        if page.conversation.is_recurring:
            yield NextStep(words.stop_run, call=f"POST {api}/stop-run", icon="stop")
        call, sure = f"POST {api}/cancel", words.sure_cancel
        yield NextStep(words.cancel, call=call, icon="stop", confirm=sure)
    asked = next((one for one in page.asked if one.closed_at is None), None)
    if asked is not None:
        yield NextStep(words.answer, href=f"/q/{asked.id}", is_main=True)
    elif run.status is RunStatus.QUEUED and run.connection is not None:
        yield _reconnect(page)
    elif run.status is RunStatus.FAILURE and page.next_try is None:
        yield from _mend(page)


def _mend(page: RunPage) -> Iterator[NextStep]:
    """List what can be done after a failure."""
    run, words = page.run, load_words().run.actions
    kind = None if run.failure is None else run.failure.kind
    if kind is FailureKind.SIGNED_OUT:
        yield _reconnect(page)
    elif kind is FailureKind.ACCESS_DENIED:
        yield NextStep(words.settings, href="/settings/model", icon="sliders", is_main=True)
    if run.kind is RunKind.REPLY:
        yield NextStep(words.try_in_chat, href=f"/c/{page.conversation.id}", icon="retry")
    elif may_run_now(page.conversation):
        is_main = kind not in (FailureKind.SIGNED_OUT, FailureKind.ACCESS_DENIED)
        call = f"POST /api/conversations/{page.conversation.id}/run-now"
        yield NextStep(words.run_now, call=call, icon="play", toast=words.started, is_main=is_main)


def may_run_now(conversation: Conversation) -> bool:
    return conversation.has_work and conversation.status in (Status.ACTIVE, Status.BACKGROUND)


def describe_cause(cause: RunCause, run: Run) -> str:
    """Name what started a run in a few words."""
    words = load_words().run.causes
    text: str = words[cause.kind.value]
    if cause.kind is CauseKind.START and run.kind is RunKind.REPLY:
        text = words.unknown
    return text


def describe_cost(cost: RunCost) -> str:
    words = load_words().run
    if cost.is_all_priced:
        return format_money(cost.spent.micros)
    if not cost.spent.micros:
        return str(words.no_price)
    return str(words.at_least.format(cost=format_money(cost.spent.micros)))


def show_told(text: str) -> ExactText:
    """Show a text of ours and of others whole, with what is hidden in it."""
    html = Markup(escape_code(clean_source(text)))  # noqa: S704 (escaped)
    return ExactText(html, hidden=0, look_alike=0)


def _reconnect(page: RunPage) -> NextStep:
    words, which = load_words().run.actions, page.run.connection
    href = "/connections" if which is None else f"/connections/{which}"
    return NextStep(words.reconnect, href=href, icon="plug", is_main=True)


def _show_outcome(page: RunPage, now: datetime, rendered: RenderedMessages) -> tuple[str, Markup]:
    run, words = page.run, load_words().run
    if page.outcome.ending is OutcomeKind.RUNNING:
        running = [step for step in page.timeline.steps if step.duration is None and step.call]
        if not running:
            return str(words.works), Markup()
        call = running[-1].call
        assert call is not None  # noqa: S101 (chosen so)
        return str(words.works_on.format(doing=describe_call(call, now))), Markup()
    if page.outcome.ending is OutcomeKind.DONE and run.kind is RunKind.BACKGROUND:
        # A result is for comparing; what was said about it is for people.
        result = (page.report or run.result or "").strip()
        if result and len(result) <= MAX_RESULT:
            return "", rendered.render(run.id, result)
        return plain_text(page.outcome.text), Markup()
    return page.outcome.text, Markup()


def _list_facts(page: RunPage, display: Display) -> Iterator[RunFact]:
    run, words = page.run, load_words().run.facts
    if page.causes:
        # Lists name the same.
        named = (one for one in page.causes if one.kind.value == run.started_by)
        cause = next(named, page.causes[0])
        yield RunFact(
            words.started_by,
            describe_cause(cause, run),
            more=_quote(cause),
            href=_find_cause(cause, page.conversation),
            title=cause.text,
        )
    if run.status is RunStatus.SKIPPED:
        return
    waited = (run.ended_at or display.now) - run.started_at - page.worked
    more = words.waited.format(time=format_duration(waited)) if waited > MIN_WAIT else ""
    yield RunFact(words.took, format_duration(page.worked), more=more)
    limit = next(
        (one.allowance.micros for one in page.allowances if _is_of_run(one.allowance.scope)), None
    )
    is_priced = page.cost.is_all_priced or page.cost.spent.micros
    of_limit = words.of_limit.format(limit=format_money(limit)) if limit and is_priced else ""
    yield RunFact(words.cost, describe_cost(page.cost), more=of_limit)
    yield _describe_tokens(page.cost)
    model = ", ".join(page.models) or run.profile or ""
    if model:
        after = run.escalated_from
        more = words.after_profile.format(profile=after) if after else ""
        yield RunFact(words.model, model, more=more, title=model)


def _describe_tokens(cost: RunCost) -> RunFact:
    words = load_words().run.facts
    tokens = cost.spent.tokens
    if cost.output is None or not tokens:
        return RunFact(words.tokens, f"{tokens:,}")
    return RunFact(
        words.tokens,
        f"{tokens - cost.output:,}",
        more=words.tokens_out.format(number=f"{cost.output:,}"),
    )


def _is_of_run(scope: AllowanceScope) -> bool:
    return scope is AllowanceScope.RUN


def _quote(cause: RunCause) -> str:
    if cause.kind in (CauseKind.ANSWER, CauseKind.MESSAGE, CauseKind.JOB_RESULT) and cause.text:
        return f"“{cause.text[:60]}{'…' if len(cause.text) > 60 else ''}”"
    return ""


def _find_cause(cause: RunCause, conversation: Conversation) -> str:
    if cause.run_id is not None:
        return f"/r/{cause.run_id}"
    if cause.conversation_id is not None:
        return f"/c/{cause.conversation_id}"
    if cause.message_id is not None:
        return f"/c/{conversation.id}#i-{cause.message_id}"
    return ""


def _list_tries(page: RunPage, display: Display) -> Sequence[OtherTry]:
    """List the tries at the same work, with this one; none, if it was the only one."""
    runs = [*page.tries, page.run, *([page.next_try] if page.next_try else [])]
    if len(runs) == 1:
        return []
    return [
        OtherTry(
            "" if run.id == page.run.id else run.id,
            display.moment(run.started_at),
            run.status is RunStatus.FAILURE,
        )
        for run in runs
    ]


def _list_files(page: RunPage) -> Sequence[ShownFile]:
    known = {file.digest: file for call in page.calls for file in call.files}
    return show_files(list(known.values()))


def _begin_told(page: RunPage, prompts: Sequence[str]) -> str:
    """Quote the words of the user; the prompt, which has more, is kept once its run has ended."""
    asked = page.causes[0].text if page.run.kind is RunKind.REPLY and page.causes else ""
    begun = _read_work(prompts[0]) if prompts else page.conversation.state.context
    text = asked or str(begun.get("prompt", "")) or " ".join(prompts[:1])
    line = " ".join(without_hidden(text).split())
    return line if len(line) <= MAX_TOLD else f"{line[:MAX_TOLD]}…"


def _read_work(prompt: str) -> Mapping[str, Any]:
    """Read the description of the work in the prompt of a run in the background."""
    begin = _WORK.search(prompt)
    if begin is None:
        return {}
    with suppress(ValueError):
        found, _ = _JSON.raw_decode(prompt[begin.end() :])
        return found if isinstance(found, dict) else {}
    return {}
