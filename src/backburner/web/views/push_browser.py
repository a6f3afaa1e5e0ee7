"""Browsers that take push messages, as rows of the settings."""

from dataclasses import dataclass

from backburner.core.accounts import Caller
from backburner.core.channels.push import PushSubscription
from backburner.web.display import Display
from backburner.web.rendering import load_words


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownBrowser:
    id: str
    label: str
    #: Its push service, and how it went.
    facts: str
    failed: bool
    is_this: bool


def show_browser(found: PushSubscription, caller: Caller, display: Display) -> ShownBrowser:
    words = load_words().notices.browser
    if found.failed_at is not None:
        state = words.failed.format(why=found.error, time=display.moment(found.failed_at))
    elif found.sent_at is not None:
        state = words.sent.format(time=display.moment(found.sent_at))
    else:
        state = words.made.format(time=display.moment(found.created_at))
    return ShownBrowser(
        id=found.id,
        label=found.label,
        facts=f"{found.service} · {state}",
        failed=found.failed_at is not None,
        is_this=found.session == caller.credential,
    )
