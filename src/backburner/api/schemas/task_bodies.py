"""What requests about tasks bring."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from pydantic import Field, model_validator

from backburner.actions.schedules import Timing
from backburner.actions.work.control import TaskChanges
from backburner.actions.work.tasks import NewTask
from backburner.api.schemas.base import LONGEST_RUN, Body, example
from backburner.core.conversation import MAX_TITLE_CHARS, Destination, Notify
from backburner.core.errors import BadRequest
from backburner.core.ids import QuestionId
from backburner.core.schedule import AfterCondition
from backburner.core.transitions import Terms
from backburner.core.work.views import TaskKind

MOST_RUNS = 1_000_000
MOST_PLACES = 20


class PlaceBody(Body):
    channel: str = Field(max_length=100)
    target: str = Field(max_length=500)


class Times(Body):
    """When: one of these."""

    interval: str | None = Field(
        default=None, max_length=200, description="`30m`, `2h`, `1d` and so on."
    )
    when: str | None = Field(default=None, max_length=200, description="In words, or as cron.")
    after: str | None = Field(
        default=None,
        max_length=MAX_TITLE_CHARS,
        description="The name or id of the task that it comes after.",
    )
    after_on: AfterCondition = Field(
        default=AfterCondition.SUCCESS,
        description="`any`: also when that one fails or is cancelled.",
    )
    schedule: dict[str, Any] | None = Field(default=None, description="In full; events too.")

    def timing(self, kind: TaskKind | None = None) -> Timing:
        return Timing(self.when, self.schedule, self.interval, self.after, self.after_on, kind)


class NewTaskBody(Times):
    model_config = example(
        name="watch-ci-main",
        prompt="Look whether CI on main is green.",
        kind="scheduled",
        interval="30m",
        notify="on_change",
    )

    name: str = Field(min_length=1, max_length=MAX_TITLE_CHARS)
    prompt: str = Field(min_length=1, description="What to do in each run.")
    description: str = Field(default="", max_length=2_000)
    kind: TaskKind | None = Field(
        default=None, description="Has to fit the time; `oneshot` without one runs at once."
    )
    notify: Notify = Notify.ON_CHANGE
    max_runs: int | None = Field(default=None, ge=1, le=MOST_RUNS)
    run_timeout: float | None = Field(
        default=None, ge=1, le=LONGEST_RUN.total_seconds(), description="In seconds."
    )
    tools: list[str] | None = Field(default=None, max_length=200)
    reports_to: list[PlaceBody] = Field(default=[], max_length=MOST_PLACES)
    profile: str | None = Field(default=None, description="A named model; null: as is usual.")

    def task(self) -> NewTask:
        return NewTask(
            name=self.name,
            prompt=self.prompt,
            timing=self.timing(self.kind),
            description=self.description,
            notify=self.notify,
            max_runs=self.max_runs,
            run_timeout=_seconds(self.run_timeout),
            tools=self.tools,
            profile=self.profile,
            reports_to=_places(self.reports_to),
        )


class TaskChangesIn(Times):
    """What is left out stays as it is; null takes a limit away."""

    model_config = example(interval="2h", notify="always")

    name: str | None = Field(default=None, max_length=MAX_TITLE_CHARS)
    prompt: str | None = None
    description: str | None = Field(default=None, max_length=2_000)
    notify: Notify | None = None
    max_runs: int | None = Field(default=None, ge=1, le=MOST_RUNS)
    run_timeout: float | None = Field(default=None, ge=1, le=LONGEST_RUN.total_seconds())
    tools: list[str] | None = Field(default=None, max_length=200)
    reports_to: list[PlaceBody] | None = Field(default=None, max_length=MOST_PLACES)

    @model_validator(mode="after")
    def _keeps_what_is_needed(self) -> "TaskChangesIn":
        for name in ("name", "prompt", "description", "notify", "reports_to"):
            if name in self.model_fields_set and getattr(self, name) is None:
                raise BadRequest(f"`{name}` cannot be null.", hint="Leave it out.")
        return self

    def changes(self) -> TaskChanges:
        timed = self.timing()
        return TaskChanges(terms=self._rework, timing=timed if timed.is_given else None)

    def _rework(self, terms: Terms) -> Terms:
        given = {
            _TERMS[name]: _READ.get(name, _as_it_is)(getattr(self, name))
            for name in self.model_fields_set & _TERMS.keys()
        }
        return replace(terms, **given)


class Shown(Body):
    model_config = example(question_id="q_0123456789abcdefghjkmnpqrs")

    question_id: str | None = Field(
        default=None,
        max_length=100,
        description="The question that was shown: if the proposal was changed since, nothing is"
        " done. Left out: as it is now.",
    )

    @property
    def question(self) -> QuestionId | None:
        return None if self.question_id is None else QuestionId(self.question_id)


class Cancelling(Body):
    model_config = example(reason="The branch was merged.")

    reason: str = Field(default="", max_length=2_000, description="Kept as a message in the task.")


def _seconds(given: float | None) -> timedelta | None:
    return None if given is None else timedelta(seconds=given)


def _places(given: list[PlaceBody]) -> tuple[Destination, ...]:
    return tuple(Destination(place.channel, place.target) for place in given)


def _as_it_is(value: Any) -> Any:
    return value


#: What a field of a change is called among the terms of work, and how it is read.
_TERMS = {
    "name": "title",
    **{
        name: name
        for name in (
            *("prompt", "description", "notify", "max_runs", "run_timeout", "tools"),
            "reports_to",
        )
    },
}
_READ: dict[str, Callable[[Any], Any]] = {
    "run_timeout": _seconds,
    "tools": lambda given: None if given is None else tuple(dict.fromkeys(given)),
    "reports_to": _places,
}
