"""Spending by day, against the allowance of a day, and by conversation."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from backburner.actions.accounts.profile import SpendStatement
from backburner.core.allowance import AllowanceScope, Amount
from backburner.web.display import Display, format_count, format_money
from backburner.web.rendering import Words, count, load_words
from backburner.web.views.charts import Chart, ChartTexts, Measured, Tone, Unit, draw


@dataclass(frozen=True, slots=True, kw_only=True)
class Spender:
    id: str
    title: str
    spent: str
    tokens: str
    #: Of what the first of them has spent, of 100.
    part: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSpending:
    lead: str
    chart: Chart
    facts: Sequence[tuple[str, str]]
    top: Sequence[Spender]
    has_spent: bool


def show_spending(
    statement: SpendStatement, days: Sequence[datetime], display: Display
) -> ShownSpending:
    """`days` are the starts of all days, today first."""
    words = load_words().spending
    spent = dict(statement.days)
    # Without known prices, tokens are all there is.
    is_money = any(amount.micros for amount in [statement.total, *spent.values()])
    limit = next(
        (
            one.allowance
            for one in statement.allowances
            if one.allowance.scope is AllowanceScope.DAY
        ),
        None,
    )
    most = None if limit is None else limit.micros if is_money else limit.tokens
    return ShownSpending(
        lead=_describe_today(
            statement.today,
            most,
            words,
            is_money=is_money,
            is_unpriced=limit is not None and bool(limit.micros) and not is_money,
        ),
        chart=_draw_days(spent, days, most, display, is_money=is_money),
        facts=[
            (words.today, _format(statement.today, is_money=is_money)),
            (words.last_days, _format(_sum(spent.values()), is_money=is_money)),
            (words.in_all, _format(statement.total, is_money=is_money)),
            *([(words.tokens, format_count(statement.total.tokens))] if is_money else []),
        ],
        top=_list_top(statement, is_money=is_money),
        has_spent=statement.total != Amount(),
    )


def _draw_days(
    spent: Mapping[datetime, Amount],
    days: Sequence[datetime],
    most: int | None,
    display: Display,
    *,
    is_money: bool,
) -> Chart:
    words = load_words().spending
    measured = list[Measured]()
    for day in reversed(days):
        amount = spent.get(day, Amount())
        number = amount.micros if is_money else amount.tokens
        is_over = most is not None and number >= most > 0
        tone = Tone.BAD if is_over else Tone.NOW if day == days[0] else Tone.USUAL
        measured.append(
            Measured(display.day(day), number, _format(amount, is_money=is_money), tone)
        )
    total = _format(_sum(spent.values()), is_money=is_money)
    over = sum(one.tone is Tone.BAD for one in measured)
    sentence = words.sentence.format(number=len(measured), total=total)
    unit = Unit.MICROS if is_money else Unit.TOKENS
    said = words.limit.format(limit=unit.write(most)) if most else ""
    if said:
        sentence = f"{sentence}, {said}"
    if over:
        sentence = f"{sentence}, {count(words.over, over)}"
    about = words.in_days.format(number=len(measured))
    texts = ChartTexts(
        sentence=sentence, title=words.per_day, headline=total, about=about, aside=said
    )
    return draw(measured, unit, texts, limit=most)


def _describe_today(
    today: Amount, most: int | None, words: Words, *, is_money: bool, is_unpriced: bool
) -> str:
    spent = _format(today, is_money=is_money)
    if not most and is_unpriced and today.tokens:
        return str(words.lead_unpriced.format(spent=spent))
    if not most and not is_unpriced:
        return str(words.lead_unlimited.format(spent=spent))
    if not most:
        return str(words.lead_nothing)
    limit = format_money(most) if is_money else format_count(most)
    is_used_up = (today.micros if is_money else today.tokens) >= most
    text = words.lead_used_up if is_used_up else words.lead
    return str(text.format(spent=spent, limit=limit))


def _list_top(statement: SpendStatement, *, is_money: bool) -> Sequence[Spender]:
    most = max(
        (one.spent.micros if is_money else one.spent.tokens for one in statement.top), default=0
    )
    return [
        Spender(
            id=one.id,
            title=one.title,
            spent=_format(one.spent, is_money=is_money),
            tokens=format_count(one.spent.tokens),
            part=round(100 * (one.spent.micros if is_money else one.spent.tokens) / (most or 1), 1),
        )
        for one in statement.top
    ]


def _format(amount: Amount, *, is_money: bool) -> str:
    if is_money:
        return format_money(amount.micros)
    return str(load_words().spending.of_tokens.format(number=format_count(amount.tokens)))


def _sum(amounts: Iterable[Amount]) -> Amount:
    found = list(amounts)
    return Amount(sum(one.micros for one in found), sum(one.tokens for one in found))
