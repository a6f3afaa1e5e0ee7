"""A proposed task, from all that a yes would bind to: nothing of it is left out or cut."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from backburner.core import schedule as schedules
from backburner.core.conversation import OnRepeatedFailure
from backburner.core.errors import BadSchedule
from backburner.core.question import Purpose, Question
from backburner.core.schedule.serialize import from_json
from backburner.core.validation import escape_hidden
from backburner.core.work.timeouts import describe_timeout
from backburner.web.display import Display
from backburner.web.rendering import count, load_words
from backburner.web.views.schedule import say_schedule, starts_with_day

#: Of its context, those that are shown in places of their own.
_TEXTS = ("prompt", "description")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownProposal:
    title: str
    why: str
    schedule: str
    times: Sequence[datetime]
    brief: str
    facts: Sequence[tuple[str, str]]


def read_proposal(question: Question, display: Display) -> ShownProposal | None:
    """Read what a proposal is; None: it is no proposal, or cannot be read."""
    shown = question.binds_to.get("shown")
    if question.purpose is not Purpose.PROPOSAL or not isinstance(shown, Mapping):
        return None
    words = load_words().question.proposal
    said, times = "", tuple[datetime, ...]()
    if shown["schedule"] is not None:
        try:
            planned = from_json(shown["schedule"])
        except BadSchedule:
            return None
        said = words.runs.format(schedule=_lower_first(say_schedule(planned, display)))
        times = schedules.upcoming(planned, now=display.now)
    context = shown["context"]
    return ShownProposal(
        title=words.title.format(title=escape_hidden(shown["title"])),
        why=escape_hidden(str(question.binds_to.get("why", ""))),
        schedule=said,
        times=times,
        brief=escape_hidden(str(context.get("prompt", ""))),
        facts=list(_list_facts(shown, context)),
    )


def _list_facts(shown: Mapping[str, Any], context: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    words = load_words()
    proposal, tools = words.question.proposal, shown["tools"]
    goes_on = shown["on_repeated_failure"] == OnRepeatedFailure.NOTIFY.value
    timeout, max_runs = shown["timeout"], shown["max_runs"]
    facts = [
        (proposal.description, str(context.get("description", ""))),
        (proposal.folder, shown["folder"]),
        (proposal.connections, ", ".join(shown["connections"])),
        (proposal.tools, None if tools is None else ", ".join(tools) or proposal.no_tools),
        (proposal.recipients, ", ".join(" ".join(place) for place in shown["recipients"])),
        (proposal.notify, words.tasks.notices[shown["notify"]]),
        (proposal.max_runs, count(proposal.max_runs_value, max_runs) if max_runs else None),
        (proposal.agent, shown["agent"]),
        (proposal.profile, shown["profile"]),
        (
            proposal.timeout,
            describe_timeout(timedelta(seconds=timeout)) if timeout is not None else None,
        ),
        (proposal.continues, proposal.continues_value if goes_on else None),
    ]
    # What else an agent has written down for the work.
    facts += [(name, str(value)) for name, value in context.items() if name not in _TEXTS]
    return [(name, escape_hidden(value)) for name, value in facts if value]


def _lower_first(text: str) -> str:
    return text if starts_with_day(text) else text[:1].lower() + text[1:]
