"""Discovery: when the agent may look for work to propose, and what it is shown."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from backburner.core.conversation import Conversation, Message
from backburner.core.outcome import Complete, Outcome
from backburner.core.prompt import format_message, quote_outside, truncate
from backburner.core.schedule.describe import describe
from backburner.core.work.views import task_status

#: Of what was said lately: messages, and characters of each and of all.
MAX_SNIPPETS = 40
MAX_SNIPPET_CHARS = 600
MAX_SNIPPETS_CHARS = 10_000
MAX_REPOSITORY_CHARS = 4_000
MAX_SHOWN_TASKS = 20
#: Without a word from the user for this long, they are not there to say yes.
PRESENCE_WINDOW = timedelta(hours=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """Whether somebody is there."""

    #: When the user last said something in a chat; None: never.
    last_message_at: datetime | None
    #: Something they said is being answered, or waits to be.
    awaits_reply: bool


@dataclass(frozen=True, slots=True)
class Snippet:
    """Something that was said in a chat."""

    title: str
    message: Message


def may_discover(presence: Presence, *, now: datetime, idle_for: timedelta | None) -> bool:
    """Decide whether discovery runs; `after` some silence, or never here."""
    if idle_for is None or presence.awaits_reply or presence.last_message_at is None:
        return False
    return idle_for <= now - presence.last_message_at <= PRESENCE_WINDOW


def keep_state_only(outcome: Outcome) -> Outcome:
    """Take from an outcome all but what the next look has to know.

    What is proposed speaks for itself; nothing else is said or asked, and discovery does not end.
    """
    return Complete(state_update=outcome.state_update, next_step=outcome.next_step)


def format_surroundings(
    talk: Sequence[Snippet], tasks: Iterable[Conversation], repository: str, *, zone: str
) -> str:
    """Show what there is to find work in; what others wrote as data."""
    parts = {
        "What was talked about lately": _talk(talk),
        "Open tasks": "\n".join(_task(one, zone) for one in tasks) or "None.",
        "The state of the repository": _repository(repository),
    }
    return "\n\n".join(f"# {title}\n{body}" for title, body in parts.items() if body)


def _talk(talk: Sequence[Snippet]) -> str:
    """Show the newest of what was said that fits, oldest first, with where it was said."""
    lines: list[str] = []
    room = MAX_SNIPPETS_CHARS
    for snippet in reversed(talk[-MAX_SNIPPETS:]):
        title = " ".join(snippet.title.split())
        said = f"[{title}] {format_message(snippet.message, limit=MAX_SNIPPET_CHARS)}"
        room -= len(said)
        if room < 0:
            break
        lines.insert(0, said)
    return "\n".join(lines)


def _task(task: Conversation, zone: str) -> str:
    status = task_status(task)
    when = "" if task.schedule is None else f", {describe(task.schedule, zone=zone)}"
    return f"- {task.title} ({'' if status is None else status.value}{when})"


def _repository(said: str) -> str:
    return (
        quote_outside("repository", truncate(said.strip(), MAX_REPOSITORY_CHARS))
        if said.strip()
        else ""
    )
