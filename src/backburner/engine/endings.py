"""Answers that a model did not finish: what the user reads below them."""

CUT = "[The answer was cut here: it reached the maximum length of the model.]"
WITHHELD = "[The rest of the answer was withheld by a filter of the model.]"
NOTHING_BUT_WITHHELD = "The answer was withheld by a filter of the model."
NOTHING_BUT_CUT = "The model reached its maximum length before it answered."
#: By the reasons that APIs give.
_NOTES = {
    "length": CUT,
    "max_tokens": CUT,
    "model_context_window_exceeded": CUT,
    "content_filter": WITHHELD,
    "refusal": WITHHELD,
}


def note_for(reason: str | None) -> str:
    """Return what to add to an answer that ended for this reason; nothing if it is whole."""
    return _NOTES.get(reason or "", "")


def explain_nothing(reason: str | None) -> str:
    """Explain why a model that ended for this reason gave no answer at all."""
    empty = {CUT: NOTHING_BUT_CUT, WITHHELD: NOTHING_BUT_WITHHELD}
    return empty.get(note_for(reason), "The model gave no answer.")
