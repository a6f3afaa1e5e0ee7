"""Work that a conversation hands out: how much of it, how deep, and when it has settled."""

from collections.abc import Sequence

from backburner.core.conversation import Conversation, Kind, Status
from backburner.core.errors import Conflict, LimitReached
from backburner.core.outcome import Complete
from backburner.core.validation import canonical

#: Under one conversation that nothing handed out, all levels together.
MAX_OPEN_JOBS = 64
#: A job of a chat may hand out jobs, and those may not.
MAX_JOB_DEPTH = 2
MAX_BATCH_CHARS = 100
#: What a job says that has nothing to say.
DONE = "It is done."


def is_settled(job: Conversation) -> bool:
    """See whether nothing more happens by itself: it has ended, stands still, or asks."""
    return job.status is not Status.BACKGROUND


def check_start(ancestry: Sequence[Conversation], *, are_open: int, more: int = 1) -> None:
    """Refuse jobs that would lie too deep, or be too many; `ancestry` begins with who asks."""
    if ancestry[0].status is Status.ARCHIVED:
        raise Conflict("This conversation is archived.", hint="Reopen it first.")
    if sum(one.kind is Kind.JOB for one in ancestry) >= MAX_JOB_DEPTH:
        raise LimitReached(
            "A job that was handed out by a job cannot hand out more.", hint="Do the work here."
        )
    if are_open + more > MAX_OPEN_JOBS:
        raise LimitReached(
            f"There are already {are_open} jobs under way here, and {MAX_OPEN_JOBS} is the limit.",
            hint="Wait for some of them with background_block, or stop some with"
            " background_cancel.",
        )


def tell_result(outcome: Complete) -> str:
    """Put all that a job found into words: what it said, and the bare finding if there is one."""
    if outcome.result is None:
        return outcome.message or DONE
    found = canonical(outcome.result)
    return found if outcome.message is None else f"{outcome.message}\n\nResult: {found}"
