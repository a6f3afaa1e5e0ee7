"""Progress: what a background run says that it is doing."""

from datetime import timedelta

from backburner.actions.deps import Deps
from backburner.core.errors import BadRequest, LimitReached
from backburner.core.run import MAX_PROGRESS_CHARS, Turn
from backburner.core.validation import check_text
from backburner.ports import Tx

#: Between two reports of one run: each is a change that clients are told of.
REPORT_INTERVAL = timedelta(seconds=5)


async def report(deps: Deps, turn: Turn, text: str) -> None:
    """Store what a run is doing; the last report is shown while it runs."""
    line = " ".join(text.split())
    if not line:
        raise BadRequest("The text is empty.", hint="Say in a sentence what you are doing.")
    check_text("The text", line, limit=MAX_PROGRESS_CHARS)

    def work(tx: Tx) -> None:
        tx.turns.hold(turn)
        last = tx.runs.progress_of(turn.user_id, [turn.conversation_id])
        reported_at = last[turn.conversation_id].reported_at if last else None
        if reported_at is not None and reported_at <= tx.now < reported_at + REPORT_INTERVAL:
            seconds = REPORT_INTERVAL.total_seconds()
            raise LimitReached(
                f"Not stored: progress is reported once in {seconds:g} seconds.",
                hint="Continue with the work, and report later.",
            )
        tx.runs.save_progress(turn, line)

    await deps.store.transact(work)
