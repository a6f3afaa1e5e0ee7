"""The column beside a conversation: its last runs, what it knows, what it cost, what it uses."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from backburner.actions.accounts.profile import SpendStatement
from backburner.actions.work.conversation_work import FIRST_STEP
from backburner.actions.work.run_pages import ConversationStats
from backburner.core.allowance import AllowanceScope
from backburner.core.run import RunKind
from backburner.core.work.run_facts import RunMeasure
from backburner.ports import ConversationRow
from backburner.web.display import Display, format_count, format_duration, format_money
from backburner.web.rendering import load_words
from backburner.web.views.charts import Chart
from backburner.web.views.run_charts import count_failed, draw_runs

MAX_KNOWN = 12
MAX_VALUE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutFacts:
    #: What the last runs in the background took, and what they cost; without prices, in tokens.
    charts: Sequence[Chart]
    #: How many runs there are to show.
    runs: int
    #: If it is one: when it was, and what it took.
    only_run: str
    failed: int
    known: Sequence[tuple[str, str]]
    spent: Sequence[tuple[str, str]]
    works_with: Sequence[tuple[str, str]]


def show_about(
    row: ConversationRow,
    stats: ConversationStats,
    spent: SpendStatement,
    display: Display,
    *,
    model: str,
) -> AboutFacts:
    """`model` is the default one."""
    conversation, words = row.conversation, load_words().chat.about_this
    ended = [
        one
        for one in stats.runs
        if one.run.kind is not RunKind.REPLY and one.run.ended_at is not None
    ]
    state = conversation.state
    known = [(words.step, state.step)] if state.step not in ("", FIRST_STEP) else []
    known += [(_name(key), _value(value)) for key, value in state.data.items()]
    works_with = [
        (words.folder, conversation.folder_path or ""),
        (words.connections, ", ".join(conversation.connections or ())),
        (words.model, conversation.profile or model),
        (words.tells, ", ".join(place.channel for place in conversation.reports_to) or words.here),
    ]
    return AboutFacts(
        # One bar says nothing.
        charts=list(draw_runs(ended, display)) if len(ended) > 1 else [],
        only_run=_describe_run(ended[0], display) if len(ended) == 1 else "",
        runs=len(ended),
        failed=count_failed(ended),
        known=known[:MAX_KNOWN],
        spent=_describe_spent(spent),
        works_with=[(name, value) for name, value in works_with if value],
    )


def _describe_run(one: RunMeasure, display: Display) -> str:
    words = load_words().chat.about_this
    at = display.past_moment(one.run.started_at)
    return str(words.only_run.format(time=at, took=format_duration(one.worked)))


def _describe_spent(spent: SpendStatement) -> Sequence[tuple[str, str]]:
    words = load_words().chat.about_this
    amount = spent.conversation
    if amount is None:
        return []
    limits = [
        state.allowance.micros
        for state in spent.allowances
        if state.allowance.scope is AllowanceScope.CONVERSATION
    ]
    so_far = format_money(amount.micros)
    if limits and limits[0]:
        so_far = words.of_limit.format(spent=so_far, limit=format_money(limits[0]))
    return [(words.so_far, so_far), (words.tokens, format_count(amount.tokens))]


def _name(key: str) -> str:
    text = key.replace("_", " ").strip()
    return text[:1].upper() + text[1:]


def _value(value: Any) -> str:
    if isinstance(value, dict):
        value = ", ".join(f"{_name(key)}: {_value(part)}" for key, part in value.items())
    elif isinstance(value, list):
        value = ", ".join(_value(part) for part in value)
    return str(value)[:MAX_VALUE]
