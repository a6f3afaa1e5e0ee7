"""Proposals: repeated ones, the limit on active tasks, and the question to the owner."""

import hashlib
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from backburner.core.conversation import Conversation, Use, Uses
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
from backburner.core.signed_in import SIGNED_IN_TOOL
from backburner.core.validation import canonical_json, check_text, escape_hidden
from backburner.core.work.timeouts import describe_timeout
from backburner.core.work.views import continues_after_failures

MAX_PROPOSALS_PER_RUN = 3
MAX_REASON_CHARS = 2_000
#: Of the prompt, and of each other line, as shown; approval is for the whole proposal.
MAX_PROPOSAL_CHARS = 1_500
MAX_PROPOSAL_LINE_CHARS = 500
#: The part of an id that is shown for typing.
SHORT_ID_CHARS = 12
REJECTION_COOLDOWN = timedelta(hours=24)
DISCOVERY_PROMPT = (
    "Look at the recent messages, the state of the repository, the open tasks and the time of "
    "day. Find background work that would really help: a build to watch, a pull request left "
    "open, something the user wanted to do later, a file that was discussed. Propose it with "
    f"task_propose, at most {MAX_PROPOSALS_PER_RUN} tasks. If nothing is worth the user's "
    "attention, propose nothing. End with complete and without a message: the user is notified "
    "of each proposal."
)


@dataclass(frozen=True, slots=True)
class RejectedProposal:
    """A proposal that the user rejected."""

    title: str
    prompt: str
    rejected_at: datetime


def show_proposals(opened: Sequence[Question], *, since: datetime) -> Sequence[Question]:
    """Select the proposals that a reply which began then has made."""
    return [
        question
        for question in opened
        if question.purpose in (Purpose.PROPOSAL, Purpose.CHANGE) and question.asked_at >= since
    ]


def was_rejected_recently(
    title: str, prompt: str, rejected: Iterable[RejectedProposal], *, now: datetime
) -> bool:
    """Return whether a proposal with this name or prompt was rejected within a day.

    Case, spacing and punctuation are ignored.
    """
    return any(
        now - earlier.rejected_at < REJECTION_COOLDOWN
        and (_plain(title) == _plain(earlier.title) or _plain(prompt) == _plain(earlier.prompt))
        for earlier in rejected
    )


def needs_no_approval(run_kind: RunKind, *, outside_text_read: bool) -> bool:
    """Return whether work that the agent schedules starts, or is only proposed.

    It starts if the user is present in the chat, and no outside text could have suggested it.
    """
    return run_kind is RunKind.REPLY and not outside_text_read


def is_given_sign_ins(tools: tuple[str, ...] | None, uses: Uses) -> bool:
    """Return whether work was given sign-ins by name: in its list of tools, or by its token.

    Work without a list may ask for them, as it may for all tools.
    """
    if tools is None:
        return uses is not None and Use.SIGN_INS in uses
    return SIGNED_IN_TOOL in tools


def check_task_limit(active: Sequence[str], *, limit: int) -> None:
    """Refuse another task at the limit; the hint names the active ones."""
    if len(active) >= limit:
        raise LimitReached(
            f"Limit reached: {limit} active tasks.",
            hint=f"Pause or cancel one first: {', '.join(active)}.",
        )


def proposal_question(
    conversation: Conversation, why: str, *, now: datetime, zone: str = "UTC"
) -> Question:
    """Ask the owner to approve a proposal; the answer binds to everything that is shown.

    `zone` is the time zone for a single time.
    """
    check_text("The reason", why, limit=MAX_REASON_CHARS)
    timeout = conversation.run_timeout
    shown = {
        "title": conversation.title,
        "context": dict(conversation.state.context),
        "schedule": None if conversation.schedule is None else to_json(conversation.schedule),
        "folder": conversation.folder_path,
        "tools": None if conversation.tools is None else list(conversation.tools),
        "connections": list(conversation.connections or ()),
        "recipients": [[to.channel, to.target] for to in conversation.reports_to],
        "notify": conversation.notify.value,
        "max_runs": conversation.max_runs,
        "agent": conversation.agent,
        "profile": conversation.requested_profile,
        "timeout": None if timeout is None else timeout.total_seconds(),
        "on_repeated_failure": conversation.on_repeated_failure.value,
    }
    digest = hashlib.sha256(canonical_json(shown).encode()).hexdigest()
    return Question(
        id=derive_question_id(conversation.id, "proposal", conversation.schedule_revision, digest),
        purpose=Purpose.PROPOSAL,
        type=QuestionType.CONFIRMATION,
        prompt=_describe(conversation, why.strip(), zone),
        options=(YES, NO),
        asked_at=now,
        remind_at=now + FIRST_REMINDER,
        binds_to={"digest": digest, "shown": shown, "why": why, "zone": zone},
    )


def _describe(conversation: Conversation, why: str, zone: str) -> str:
    """Describe the proposal, the reason for it, and how to answer."""
    lines = [f"Proposed task: {conversation.title}"]
    if why:
        lines.append(_quote(why))
    if conversation.schedule is not None:
        limit = conversation.max_runs
        at_most = "" if limit is None else f", at most {limit} times"
        lines.append(f"It would run {describe(conversation.schedule, zone=zone)}{at_most}:")
    prompt = str(conversation.state.context.get("prompt", ""))
    lines.append(_quote(_truncate(prompt, MAX_PROPOSAL_CHARS)))
    if conversation.folder is not None:
        lines.append(f"It would work in {conversation.folder.path}.")
    if conversation.agent is not None:
        lines.append(f"Agent: {conversation.agent}.")
    if conversation.run_timeout is not None:
        lines.append(f"A run may take up to {describe_timeout(conversation.run_timeout)}.")
    if continues_after_failures(conversation):
        lines.append("It would continue after repeated failures.")
    if conversation.tools is not None:
        tools = ", ".join(conversation.tools) or "none"
        lines.append(_truncate(f"Tools: {tools}.", MAX_PROPOSAL_LINE_CHARS))
    if conversation.connections:
        names = ", ".join(conversation.connections)
        lines.append(_truncate(f"It would use: {names}.", MAX_PROPOSAL_LINE_CHARS))
    if conversation.reports_to:
        destinations = ", ".join(f"{to.channel} {to.target}" for to in conversation.reports_to)
        lines.append(_truncate(f"It would report to: {destinations}.", MAX_PROPOSAL_LINE_CHARS))
    short = conversation.id[:SHORT_ID_CHARS]
    lines.append(
        f"Nothing runs before you approve it: `backburner approve {short}`"
        f" or `backburner reject {short}`."
    )
    return escape_hidden("\n".join(line for line in lines if line))


def _quote(text: str) -> str:
    """Mark each line that an agent may have written, so that none can pass for one of ours."""
    return "\n".join(f"> {line}" for line in text.splitlines())


def _truncate(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]} […]"


def _plain(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    # Letters, combining marks (vowels in many scripts) and numbers.
    kept = (c if unicodedata.category(c)[0] in "LMN" else " " for c in folded)
    return " ".join("".join(kept).split()) or folded
