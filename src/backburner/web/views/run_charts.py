"""Charts of the time, cost and tokens of the last runs of a conversation."""

from collections.abc import Iterator, Sequence

from backburner.actions.work.run_pages import MAX_MEASURED_RUNS
from backburner.core.run import Run, RunStatus
from backburner.core.work.run_facts import RunMeasure
from backburner.web.display import Display
from backburner.web.rendering import count, load_words
from backburner.web.views.charts import Chart, ChartTexts, Measured, Tone, Unit, draw, middle


def draw_runs(
    runs: Sequence[RunMeasure], display: Display, *, run_limit: int | None = None
) -> Iterator[Chart]:
    """Draw runs, oldest first: their time, cost and tokens; nothing is drawn that is not known.

    `run_limit` is what one may cost, in micros.
    """
    if not runs:
        return
    words = load_words().charts
    seconds = [one.worked.total_seconds() for one in runs]
    yield _draw(runs, seconds, Unit.SECONDS, display, title=words.time)
    if any(one.micros for one in runs):
        micros = [one.micros for one in runs]
        yield _draw(runs, micros, Unit.MICROS, display, title=words.cost, limit=run_limit)
    if any(one.tokens for one in runs):
        tokens = [one.tokens for one in runs]
        yield _draw(runs, tokens, Unit.TOKENS, display, title=words.tokens)


def count_failed(runs: Sequence[RunMeasure]) -> int:
    return sum(one.run.status is RunStatus.FAILURE for one in runs)


def _draw(
    runs: Sequence[RunMeasure],
    numbers: Sequence[float],
    unit: Unit,
    display: Display,
    *,
    title: str,
    limit: int | None = None,
) -> Chart:
    words, number = load_words().charts, len(runs)
    typical = unit.write(middle(numbers))
    sentence = words.sentence.format(title=title, number=number, median=typical)
    most = "" if limit is None else words.limit.format(amount=unit.write(limit))
    parts = [sentence, most, count(words.failed, count_failed(runs))]
    return draw(
        [
            Measured(
                display.past_moment(one.run.started_at),
                amount,
                unit.write(amount),
                _tone(one.run, runs[-1].run),
            )
            for one, amount in zip(runs, numbers, strict=True)
        ],
        unit,
        ChartTexts(
            sentence=", ".join(part for part in parts if part),
            title=title,
            aside=most or words.last.format(number=number),
            headline=typical,
            about=words.median,
        ),
        limit=limit,
        places=MAX_MEASURED_RUNS,
    )


def _tone(run: Run, last: Run) -> Tone:
    if run.status is RunStatus.FAILURE:
        return Tone.BAD
    return Tone.NOW if run is last else Tone.USUAL
