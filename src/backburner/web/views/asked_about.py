"""The subject of an answered question, in a line: an answer alone says little a day later."""

from backburner.core.question import Purpose, Question
from backburner.core.validation import escape_hidden
from backburner.web.views.exact_text import write_call

MAX_CHARS = 300


def name_question(question: Question) -> str:
    """Name the calls that it asked to make, or else its first line."""
    first = question.prompt.strip().partition("\n")[0]
    calls = question.binds_to.get("calls", ()) if question.purpose is Purpose.APPROVAL else ()
    text = ", ".join(map(write_call, calls)) or first
    return escape_hidden(" ".join(text.split()))[:MAX_CHARS]
