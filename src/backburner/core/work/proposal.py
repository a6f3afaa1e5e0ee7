"""Proposed work: when the agent may look for some, what counts as the same, what a yes is for."""

import hashlib
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from backburner.core.conversation import Conversation
from backburner.core.errors import LimitReached
from backburner.core.ids import derive_question_id
from backburner.core.question import (
    FIRST_REMINDER,
    NO,
    YES,
    Purpose,
    Question,
    QuestionType,
)
from backburner.core.run import RunKind
from backburner.core.schedule.describe import describe
from backburner.core.schedule.serialize import to_json
from backburner.core.validation import canonical, check_text

MAX_PROPOSALS_PER_RUN = 3
MAX_REASON_CHARS = 2_000
#: Of what it would do, and of each other line; all of it belongs to what is approved.
MAX_PROPOSAL_CHARS = 1_500
MAX_PROPOSAL_LINE_CHARS = 500
#: Of an id: enough to be typed.
SHORT_ID_CHARS = 12
REJECTION_COOLDOWN = timedelta(hours=24)
#: Without a word from the user for this long, they are not there to say yes.
PRESENCE_WINDOW = timedelta(hours=2)
DISCOVERY_PROMPT = (
    "Look at what has been talked about lately, the state of the repository, the open tasks and "
    "the time of day. Is there background work that would truly help: a build to watch, a pull "
    "request left open, something the user said they would do later, a file that was being "
    "discussed? Propose it with task_propose, at most three things. If nothing is worth the "
    "user's attention, propose nothing. End with complete, without a message: what you propose "
    "speaks for itself."
)


@dataclass(frozen=True, slots=True)
class RejectedProposal:
    """A proposal that was dismissed."""

    title: str
    prompt: str
    rejected_at: datetime


def may_look(
    *, now: datetime, last_heard_at: datetime | None, idle_for: timedelta, enabled: bool
) -> bool:
    """Decide whether discovery runs: the user fell silent, but not so long that they left."""
    if not enabled or last_heard_at is None:
        return False
    return idle_for <= now - last_heard_at <= PRESENCE_WINDOW


def is_repeat(
    title: str, prompt: str, rejected: Iterable[RejectedProposal], *, now: datetime
) -> bool:
    """Recognise what was rejected within a day: the same name or the same prompt, however spelt."""
    return any(
        now - before.rejected_at < REJECTION_COOLDOWN
        and (_plain(title) == _plain(before.title) or _plain(prompt) == _plain(before.prompt))
        for before in rejected
    )


def starts_at_once(run_kind: RunKind, *, outside_text_read: bool) -> bool:
    """Decide whether work that the agent schedules starts, or is only proposed.

    It starts if it comes from a chat the user is in and nothing from outside could have put the
    idea there.
    """
    return run_kind is RunKind.REPLY and not outside_text_read


def check_room(active: Sequence[str], *, limit: int) -> None:
    """Refuse one more task than a user may have, and name those that could be stopped."""
    if len(active) >= limit:
        raise LimitReached(
            f"There are already {len(active)} active tasks, and {limit} is the limit.",
            hint=f"Stop one of them first: {', '.join(active)}.",
        )


def question(conversation: Conversation, why: str, *, now: datetime, zone: str = "UTC") -> Question:
    """Ask the owner about a proposal, bound to what it would do, when, with what, for whom.

    `zone` is where a single time is told.
    """
    check_text("The reason", why, limit=MAX_REASON_CHARS)
    shown = {
        "title": conversation.title,
        "context": dict(conversation.state.context),
        "schedule": None if conversation.schedule is None else to_json(conversation.schedule),
        "tools": None if conversation.tools is None else list(conversation.tools),
        "recipients": [[place.channel, place.target] for place in conversation.reports_to],
        "notify": conversation.notify.value,
        "max_runs": conversation.max_runs,
        "profile": conversation.requested_profile,
    }
    digest = hashlib.sha256(canonical(shown).encode()).hexdigest()
    return Question(
        id=derive_question_id(conversation.id, "proposal", conversation.schedule_revision, digest),
        purpose=Purpose.PROPOSAL,
        type=QuestionType.CONFIRMATION,
        prompt=_in_words(conversation, why.strip(), zone),
        options=(YES, NO),
        asked_at=now,
        remind_at=now + FIRST_REMINDER,
        binds_to={"digest": digest, "shown": shown, "why": why, "zone": zone},
    )


def _in_words(conversation: Conversation, why: str, zone: str) -> str:
    """Say what is proposed, why, and how to answer."""
    lines = [f"Proposed task: {conversation.title}"]
    if why:
        lines.append(why)
    if conversation.schedule is not None:
        most = conversation.max_runs
        often = "" if most is None else f", {most} times at most"
        lines.append(f"It would run {describe(conversation.schedule, zone=zone)}{often}:")
    lines.append(_cut(str(conversation.state.context.get("prompt", "")), MAX_PROPOSAL_CHARS))
    if conversation.tools is not None:
        lines.append(
            _cut(
                f"It may use: {', '.join(conversation.tools) or 'nothing'}.",
                MAX_PROPOSAL_LINE_CHARS,
            )
        )
    if conversation.reports_to:
        places = ", ".join(f"{one.channel} {one.target}" for one in conversation.reports_to)
        lines.append(_cut(f"It would report to: {places}.", MAX_PROPOSAL_LINE_CHARS))
    short = conversation.id[:SHORT_ID_CHARS]
    lines.append(
        f"Nothing runs before you say yes: `backburner approve {short}`"
        f" or `backburner reject {short}`."
    )
    return "\n".join(line for line in lines if line)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]} […]"


def _plain(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    # Letters, the marks that many scripts write vowels with, and numbers.
    kept = (c if unicodedata.category(c)[0] in "LMN" else " " for c in folded)
    return " ".join("".join(kept).split()) or folded
