"""Discovery: when the agent may look for work to propose, and what its prompt shows."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from backburner.core.conversation import Conversation, Message
from backburner.core.errors import BadRequest
from backburner.core.outcome import Complete, Outcome
from backburner.core.prompt import format_message, quote_outside, truncate
from backburner.core.schedule.describe import describe
from backburner.core.work.views import task_status

#: Recent chat messages in the prompt: their number, and the characters of each and of all.
MAX_SNIPPETS = 40
MAX_SNIPPET_CHARS = 600
MAX_SNIPPETS_CHARS = 10_000
MAX_REPOSITORY_CHARS = 4_000
MAX_SHOWN_TASKS = 20
#: Of runs of CI and of pull requests.
MAX_LISTED = 10
#: The parameter of discovery that names the repository.
REPOSITORY = "repository"
#: No option of a program, and nothing that a shell would read.
_REPOSITORY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}/[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
#: After this long without a message, the user is considered away and cannot approve anything.
PRESENCE_WINDOW = timedelta(hours=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """Whether the user is around."""

    #: When the user last wrote in a chat; None for never.
    last_message_at: datetime | None
    #: A message of theirs is being answered, or waits for a reply.
    awaits_reply: bool


@dataclass(frozen=True, slots=True)
class Snippet:
    """A chat message with the title of its conversation."""

    title: str
    message: Message


def may_discover(presence: Presence, *, now: datetime, idle_for: timedelta | None) -> bool:
    """Return whether discovery may run: the user is idle, but not away.

    `idle_for` is the silence to wait for; None if discovery is off.
    """
    if idle_for is None or presence.awaits_reply or presence.last_message_at is None:
        return False
    return idle_for <= now - presence.last_message_at <= PRESENCE_WINDOW


def check_repository(name: str) -> str:
    """Refuse what is not the name of a repository: it becomes an argument of gh."""
    if _REPOSITORY.fullmatch(name) is None:
        raise BadRequest(f"{name[:80]!r} is not a repository.", hint="Write it as owner/name.")
    return name


def gh_arguments(repository: str) -> Sequence[Sequence[str]]:
    """List the calls of gh with which discovery looks at CI and pull requests."""
    fixed = ("--repo", repository, "--limit", str(MAX_LISTED))
    return (("run", "list", *fixed), ("pr", "list", *fixed))


def keep_state_only(outcome: Outcome) -> Outcome:
    """Reduce an outcome of discovery to its state.

    Proposals notify the user themselves; discovery sends no other message, asks nothing, and does
    not end.
    """
    return Complete(state_update=outcome.state_update, next_step=outcome.next_step)


def format_surroundings(
    snippets: Sequence[Snippet], tasks: Iterable[Conversation], repository: str, *, zone: str
) -> str:
    """Format recent messages, open tasks and the repository, with outside text as data."""
    sections = {
        "Recent messages in all chats": _format_snippets(snippets),
        "Open tasks": "\n".join(_task_line(task, zone) for task in tasks) or "None.",
        "The state of the repository": _repository(repository),
    }
    return "\n\n".join(f"# {title}\n{body}" for title, body in sections.items() if body)


def _format_snippets(snippets: Sequence[Snippet]) -> str:
    """Format the newest messages that fit, oldest first, with the title of their conversation."""
    lines: list[str] = []
    room = MAX_SNIPPETS_CHARS
    for snippet in reversed(snippets[-MAX_SNIPPETS:]):
        title = " ".join(snippet.title.split())
        line = f"[{title}] {format_message(snippet.message, limit=MAX_SNIPPET_CHARS)}"
        room -= len(line)
        if room < 0:
            break
        lines.insert(0, line)
    return "\n".join(lines)


def _task_line(task: Conversation, zone: str) -> str:
    status = task_status(task)
    when = "" if task.schedule is None else f", {describe(task.schedule, zone=zone)}"
    return f"- {task.title} ({'' if status is None else status.value}{when})"


def _repository(text: str) -> str:
    text = text.strip()
    return quote_outside("repository", truncate(text, MAX_REPOSITORY_CHARS)) if text else ""
