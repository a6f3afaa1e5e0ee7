"""Notices as rows: what they say, of which conversation, and what became of their deliveries."""

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from backburner.core.channels.push import PUSH, compose_payload
from backburner.core.content.excerpt import MAX_READ_CHARS, plain_text
from backburner.core.ids import QuestionId
from backburner.core.notice import NoticeKind, find_address
from backburner.ports import DeliveryRow, DeliveryState, NoticeRow
from backburner.web.display import Display
from backburner.web.rendering import count, load_words

MAX_TEXT = 300
_BURNERS = {
    NoticeKind.RESULT: "done",
    NoticeKind.QUESTION: "needs",
    NoticeKind.FAILURE: "failed",
    NoticeKind.STOPPED: "paused",
}


@dataclass(frozen=True, slots=True)
class ShownDelivery:
    text: str
    #: Empty: nothing is wrong.
    tone: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownNotice:
    id: str
    href: str
    burner: str
    #: What kind of notice it is, in a word.
    kind: str
    text: str
    title: str
    at: datetime
    unseen: bool
    deliveries: Sequence[ShownDelivery]
    #: JSON for a notification of the browser; empty: it was seen.
    payload: str = ""


def show_notice(
    row: NoticeRow, display: Display, open_questions: Container[QuestionId]
) -> ShownNotice:
    words = load_words()
    is_open = row.question_id in open_questions
    is_settled = row.kind is NoticeKind.QUESTION and not is_open
    text = plain_text(row.text[:MAX_READ_CHARS])
    href = find_address(row.conversation_id, row.question_id if is_open else None)
    title = row.title or words.common.untitled
    return ShownNotice(
        id=row.id,
        href=href,
        burner="rest" if is_settled else _BURNERS[row.kind],
        kind=words.notices.kinds["settled" if is_settled else row.kind.value],
        text=text,
        title=title,
        at=row.created_at,
        unseen=row.seen_at is None,
        deliveries=list(_show_deliveries(row.deliveries, display)),
        payload="" if row.seen_at else _compose(row, title, text, href),
    )


def _compose(row: NoticeRow, title: str, text: str, href: str) -> str:
    """Write what the browser shows as it writes what it was pushed."""
    payload = compose_payload(
        title=title, text=text[:MAX_TEXT], address=href, tag=row.id, kind=row.kind.value
    )
    return payload.decode()


def _show_deliveries(rows: Sequence[DeliveryRow], display: Display) -> Iterator[ShownDelivery]:
    words = load_words().notices
    browsers = Counter(_group(row) for row in rows if row.channel == PUSH)
    for group, number in browsers.items():
        place = count(words.browsers, number)
        yield ShownDelivery(words.deliveries[group].format(place=place), _tone(group))
    for row in rows:
        if row.channel != PUSH:
            yield _show_delivery(row, display)


def _show_delivery(row: DeliveryRow, display: Display) -> ShownDelivery:
    words, group = load_words().notices, _group(row)
    text = words.deliveries[group].format(place=_name_place(row))
    why = (row.error or "").strip().rstrip(".")
    if row.state is not DeliveryState.SENT and why:
        text = f"{text}: {why}"
        if row.next_try_at is not None and row.state is DeliveryState.WAITING:
            text = f"{text}. {words.next_try.format(time=display.moment(row.next_try_at))}"
    return ShownDelivery(text, _tone(group))


def _name_place(row: DeliveryRow) -> str:
    channels = load_words().notices.channels
    known = row.channel in channels
    parts = (channels[row.channel] if known else row.channel, row.target)
    return ", ".join(part for part in parts if part)


def _group(row: DeliveryRow) -> str:
    """Say in which of the words for deliveries it is."""
    if row.state is DeliveryState.WAITING:
        return "late" if row.error else "waiting"
    return row.state.value


def _tone(group: str) -> str:
    return {"failed": "bad", "late": "warn"}.get(group, "")
