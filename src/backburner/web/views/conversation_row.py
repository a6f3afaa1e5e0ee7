"""Rows of the conversation list, in groups."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup

from backburner.core.conversation import Conversation
from backburner.ports import ConversationRow
from backburner.web.display import Display
from backburner.web.rendering import load_words
from backburner.web.views.conversation_state import ShownState, show_child, show_state
from backburner.web.views.schedule import confirm_run

#: More children than this fold to a line.
MAX_CHILDREN = 3
#: Characters before the first word that a search found.
MAX_BEFORE_HIT = 20


@dataclass(frozen=True, slots=True)
class ShownChild:
    id: str
    title: str
    burner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRow:
    conversation: Conversation
    state: ShownState
    at: datetime
    #: By which rows are ordered.
    changed_at: datetime
    unread: bool
    pinned: bool
    #: Under which heading it stands.
    group: str
    last_line: str
    children: Sequence[ShownChild]
    more_children: str
    #: Where a search found its words.
    hit: Markup
    #: What is asked before it is archived or deleted, or runs now; empty: nothing.
    archive_confirm: str
    delete_confirm: str
    run_confirm: str


def show_row(row: ConversationRow, display: Display) -> ShownRow:
    conversation, last = row.conversation, row.facts.last_message
    state = show_state(row, display)
    at = last.created_at if last is not None else row.updated_at
    open_children = row.children.open[:MAX_CHILDREN]
    words, ends = load_words().list, ""
    if conversation.schedule is not None:
        ends = words.ends_work
    elif open_children:
        ends = words.ends_children
    return ShownRow(
        conversation=conversation,
        state=state,
        at=at,
        changed_at=row.updated_at,
        unread=row.unseen > 0,
        pinned=row.facts.pinned_at is not None,
        group=_name_group(row, display),
        last_line=last.excerpt if last is not None else "",
        children=[
            ShownChild(
                child.conversation.id,
                child.conversation.title,
                show_child(child.conversation, child.running),
            )
            for child in open_children
        ],
        more_children=_describe_more(row, len(open_children)),
        hit=_show_hit(row),
        archive_confirm=ends and words.archive_confirm.format(ends=ends),
        delete_confirm=ends and words.delete_confirm.format(ends=ends),
        run_confirm=confirm_run(conversation, display),
    )


def _name_group(row: ConversationRow, display: Display) -> str:
    """Name the heading: in the order of the list, each comes once."""
    # What a search finds is in the order of time, pinned or not.
    if row.facts.pinned_at is not None and not row.hits:
        return "pinned"
    is_today = display.local(row.updated_at).date() >= display.local(display.now).date()
    return "today" if is_today else "earlier"


def _show_hit(row: ConversationRow) -> Markup:
    """Show the words that were found in a message, marked; the title is shown anyway."""
    hit = next((one for one in row.hits if one.message_id is not None), None)
    if hit is None:
        return Markup()
    first, *others = hit.parts
    before = Markup.escape(_shorten(first.text)) if not first.is_hit else _mark(first.text)
    shown = (_mark(part.text) if part.is_hit else Markup.escape(part.text) for part in others)
    return Markup().join([before, *shown])


def _shorten(text: str) -> str:
    """Leave a few words before what was found, which would be cut off in a narrow line."""
    if len(text) <= MAX_BEFORE_HIT:
        return text
    _, _, words = text[-MAX_BEFORE_HIT:].partition(" ")
    return f"…{words}"


def _mark(text: str) -> Markup:
    return Markup("<mark>{}</mark>").format(text)


def _describe_more(row: ConversationRow, shown: int) -> str:
    count = row.children.count
    if count <= shown:
        return ""
    done = count - len(row.children.open)
    return str(load_words().list.children_done.format(done=done, all=count))
